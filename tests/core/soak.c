// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Very many operations on struct timers, against a table of the armed ones:
 *
 *	soak OPERATIONS [SEED]
 *
 * Every reply and every expiration is compared with the table. The counts are
 * compared from time to time, and a walk goes through heap, slots and index. A
 * quarter of the operations each on plain and on keyed queues of either layout.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support.h"

#define TIMERS		60000U
#define BATCH		64U
#define PHASE		400000U		/* operations between full and empty */
#define WALK		4000000U	/* operations between two walks */

/**
 * struct known - an expected timer
 * @id: 0 = not armed
 * @deadline: of the timer
 * @batch: the last batch with it, so that none has it twice
 */
struct known {
	u64 id;
	u64 deadline;
	u64 batch;
};

struct soak {
	struct test_queue queue;
	struct known known[TIMERS];
	u64 random;
	u64 now;
	u64 batches;
	u64 operations;
	u64 armed, cancelled, delivered, cleared;
	u64 checksum;
};

#define check(soak, x) do {						\
	if (!(x)) {							\
		printf("not ok: %s, line %d, after %llu operations\n",	\
		       #x, __LINE__, (soak)->operations);		\
		exit(1);						\
	}								\
} while (0)

static bool is_keyed(const struct soak *soak)
{
	return soak->queue.config.mode & EXPIRY_MODE_KEYED;
}

/* Returns a deadline, mostly within milliseconds, sometimes far off. */
static u64 any_deadline(struct soak *soak)
{
	u64 shift = test_below(&soak->random, 25);

	return soak->now + test_below(&soak->random, 1ULL << (10 + shift));
}

static void any_request(struct soak *soak, struct expiry_record *record,
			u32 nr)
{
	struct known *known = &soak->known[nr];
	bool filling = soak->operations / PHASE % 2;
	u64 dice = test_below(&soak->random, 100);

	memset(record, 0, sizeof(*record));
	record->cookie = nr;
	record->id = known->id;
	record->deadline_ns = any_deadline(soak);
	if (!known->id) {
		record->op = EXPIRY_OP_ARM;
		if (is_keyed(soak))
			record->id = (soak->batches << 20 | nr) + 1;
	} else if (dice < (filling ? 10 : 60)) {
		record->op = EXPIRY_OP_CANCEL;
	} else {
		record->op = EXPIRY_OP_REFRESH;
		if (dice >= 80)		/* to later, as sessions do */
			record->deadline_ns += 1ULL << 34;
	}
}

static void submit(struct soak *soak)
{
	struct expiry_record record[BATCH];
	u32 number[BATCH], op[BATCH], i, n = 0;

	soak->batches++;
	for (i = 0; i < BATCH; i++) {
		u32 nr = test_below(&soak->random, TIMERS);

		if (soak->known[nr].batch == soak->batches)
			continue;
		soak->known[nr].batch = soak->batches;
		any_request(soak, &record[n], nr);
		op[n] = record[n].op;
		number[n++] = nr;
	}
	check(soak, timers_submit(&soak->queue.timers, record, n,
				  soak->now) == n);
	for (i = 0; i < n; i++) {
		struct known *known = &soak->known[number[i]];

		check(soak, !record[i].status);
		if (op[i] == EXPIRY_OP_CANCEL) {
			check(soak, record[i].deadline_ns == known->deadline);
			known->id = 0;
			soak->cancelled++;
			continue;
		}
		soak->armed += op[i] == EXPIRY_OP_ARM;
		check(soak, record[i].cookie == number[i]);
		known->id = record[i].id;
		known->deadline = record[i].deadline_ns;
	}
	soak->operations += n;
}

/* Takes everything that is due, in order. */
static void deliver(struct soak *soak)
{
	struct expiry_record record[BATCH];
	u64 before = 0;
	int i, n;

	while (timers_due(&soak->queue.timers, soak->now)) {
		n = timers_deliver(&soak->queue.timers, record, BATCH,
				   soak->now, false);
		check(soak, n >= 0);
		for (i = 0; i < n; i++) {
			struct known *known = &soak->known[record[i].cookie];

			check(soak, record[i].cookie < TIMERS);
			check(soak, known->id && known->id == record[i].id);
			check(soak, known->deadline == record[i].deadline_ns);
			check(soak, known->deadline <= soak->now);
			check(soak, known->deadline >= before);
			before = known->deadline;
			known->id = 0;
			soak->checksum = soak->checksum * 31 + before;
		}
		soak->delivered += n;
		soak->operations += n;
	}
}

static void walk(struct soak *soak)
{
	u64 live = 0;
	u32 i;

	for (i = 0; i < TIMERS; i++) {
		live += !!soak->known[i].id;
		check(soak, !soak->known[i].id ||
		      soak->known[i].deadline > soak->now);
	}
	check(soak, timers_nr(&soak->queue.timers) == live);
	check(soak, soak->queue.timers.armed == live);
	check(soak, soak->armed == soak->cancelled + soak->delivered +
	      soak->cleared + live);
	check(soak, !timers_validate(&soak->queue.timers));
	check(soak, soak->queue.timers.heap.nr <=
	      2 * TIMERS + 4 * BHEAP_NODES_PER_PAGE);
	test_queue_trim(&soak->queue);
}

static void clear(struct soak *soak)
{
	struct expiry_record record = { .op = EXPIRY_OP_CLEAR };
	u32 i;

	check(soak, !test_submit(&soak->queue, &record, soak->now));
	soak->cleared += record.cookie;
	for (i = 0; i < TIMERS; i++)
		soak->known[i].id = 0;
	walk(soak);
	check(soak, !test_queue_pages(&soak->queue));
}

static void run(u64 operations, u32 mode)
{
	struct soak *soak = calloc(1, sizeof(*soak));
	u64 next_walk = WALK;
	time_t begin = time(NULL);

	if (!soak)
		abort();
	soak->random = test_seed;
	soak->now = SECOND;
	test_queue_init(&soak->queue, mode, TIMERS, test_seed);
	while (soak->operations < operations) {
		submit(soak);
		soak->now += test_below(&soak->random, 20000);
		if (test_one_in(&soak->random, 50000))
			soak->now += 20 * SECOND;	/* a storm */
		deliver(soak);
		if (soak->operations >= next_walk) {
			next_walk += WALK;
			walk(soak);
			if (test_one_in(&soak->random, 8))
				clear(soak);
		}
	}
	walk(soak);
	clear(soak);
	printf("ok %s, %s queue: %llu operations (%llu armed, %llu cancelled, %llu delivered, %llu cleared), checksum %016llx, %lld s\n",
	       test_layout->name, is_keyed(soak) ? "keyed" : "plain",
	       soak->operations, soak->armed, soak->cancelled, soak->delivered,
	       soak->cleared, soak->checksum, (s64)(time(NULL) - begin));
	fflush(stdout);
	test_queue_free(&soak->queue);
	free(soak);
}

int main(int argc, char **argv)
{
	u64 operations = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	printf("1..6\n# %llu operations, seed %llu, pages of %u bytes\n",
	       operations, test_seed, CORE_PAGE_SIZE);
	test_layout = &bheap_subtree;
	run(operations / 6, 0);
	run(operations / 6, EXPIRY_MODE_KEYED);
	test_layout = &bheap_sorted;
	run(operations / 6, 0);
	run(operations / 6, EXPIRY_MODE_KEYED);
	test_layout = &bheap_radix;
	run(operations / 6, 0);
	run(operations / 6, EXPIRY_MODE_KEYED);
	return 0;
}
