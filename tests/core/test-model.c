// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * struct timers against its naive twin, under random sequences of everything
 * that can be asked of it, with pages that go away and come back, or fail to.
 *
 *	test-model [SEED [ROUNDS]]
 *
 * Round n has seed SEED + n; a failure says which, so that the round can be
 * run alone: test-model THAT 1.
 */
#include <stdio.h>
#include <stdlib.h>

#include "horrible.h"
#include "support.h"

#define KEYS		40U	/* ids that clients of a keyed queue use */
#define OLD_IDS		64U	/* ids a plain queue gave, to be tried again */
#define BATCH		16U
#define DELIVER_MAX	12U

/**
 * struct subject - a queue and its twin
 * @now: on their clock; goes on most of the time
 * @old: ids that were given, live or stale
 * @evict: pages of each run that go out of memory after a step
 * @faults: one in that many operations meets missing pages; 0 = none
 * @thorough: compare and validate after one in that many steps
 * @restored: deliveries were taken back: the count of them is not exact
 */
struct subject {
	struct test_queue queue;
	struct horrible horrible;
	u64 seed;
	u64 random;
	u64 now;
	u64 old[OLD_IDS];
	u32 step;
	u32 evict;
	u32 faults;
	u32 thorough;
	bool restored;
	struct expiry_record *rows;
};

#define check(subject, true_, ...) do {					\
	if (!(true_)) {							\
		print_error("seed %llu, step %u: ", (subject)->seed,	\
			    (subject)->step);				\
		print_error(__VA_ARGS__);				\
		print_error("\n");					\
		fail();							\
	}								\
} while (0)

static u64 chance(struct subject *subject, u64 n)
{
	return test_below(&subject->random, n);
}

static u64 any_id(struct subject *subject)
{
	if (chance(subject, 40) == 0)
		return chance(subject, 2) ? test_random(&subject->random) : 0;
	if (subject->queue.timers.mode & EXPIRY_MODE_KEYED)
		return (1 + chance(subject, KEYS)) * 0x9e3779b97f4a7c15ULL;
	return subject->old[chance(subject, OLD_IDS)];
}

/* Around now, for the most part; and the ends of time. */
static u64 any_deadline(struct subject *subject, u8 flags)
{
	switch (chance(subject, 24)) {
	case 0:
		return 0;
	case 1:
		return EXPIRY_NEVER;
	case 2:
		return EXPIRY_NEVER - chance(subject, 2 * subject->now);
	case 3:
		return chance(subject, 100 * MILLISECOND);
	}
	if (flags & EXPIRY_F_RELATIVE)
		return chance(subject, 30) * MILLISECOND;
	return subject->now - 5 * MILLISECOND +
	       chance(subject, 40) * MILLISECOND;
}

static u8 any_flags(struct subject *subject, u8 op)
{
	u8 flags = 0;

	if (chance(subject, 60) == 0)
		return test_random(&subject->random);
	if (op == EXPIRY_OP_ARM || op == EXPIRY_OP_REFRESH) {
		if (chance(subject, 3) == 0)
			flags |= EXPIRY_F_RELATIVE;
		if (chance(subject, 4) == 0)
			flags |= EXPIRY_F_LATER;
	}
	if (op == EXPIRY_OP_ARM && chance(subject, 8) == 0)
		flags |= EXPIRY_F_NEW;
	return flags;
}

static u8 any_op(struct subject *subject)
{
	static const u8 ops[] = {
		EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_ARM,
		EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_REFRESH,
		EXPIRY_OP_REFRESH, EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL,
		EXPIRY_OP_CANCEL, EXPIRY_OP_ACK, EXPIRY_OP_ACK,
		EXPIRY_OP_QUERY,
	};

	switch (chance(subject, 200)) {
	case 0:
		return EXPIRY_OP_CLEAR;
	case 1:
		return test_random(&subject->random);
	}
	return ops[chance(subject, ARRAY_SIZE(ops))];
}

static struct expiry_record any_record(struct subject *subject)
{
	struct expiry_record record = { .op = any_op(subject) };

	record.flags = any_flags(subject, record.op);
	record.status = chance(subject, 100) ? 0 : -1;
	record.period_ms = chance(subject, 4) ? 0 : 1 + chance(subject, 9);
	record.id = any_id(subject);
	if (record.op == EXPIRY_OP_ARM && chance(subject, 50) &&
	    !(subject->queue.timers.mode & EXPIRY_MODE_KEYED))
		record.id = 0;
	record.deadline_ns = any_deadline(subject, record.flags);
	record.cookie = test_random(&subject->random);
	return record;
}

/* Now and then all pages are out and one of the first to come back fails. */
static bool faults_begin(struct subject *subject)
{
	const int errors[] = { -ENOMEM, -EIO, -EAGAIN };
	struct test_faults *faults = &subject->queue.faults;

	if (!subject->faults || chance(subject, subject->faults))
		return false;
	test_queue_evict_all(&subject->queue);
	faults->fail_in = 1 + chance(subject, 6);
	faults->for_good = chance(subject, 2);
	faults->error = errors[chance(subject, ARRAY_SIZE(errors))];
	return true;
}

static void faults_end(struct subject *subject)
{
	subject->queue.faults.fail_in = 0;
	subject->queue.faults.for_good = false;
}

/* An error that the pages explain; -ENOMEM also when the index was kept from
 * growing before.
 */
static bool is_fault(const struct subject *subject, int error)
{
	return error == subject->queue.faults.error || error == -ENOMEM;
}

static void check_reply(struct subject *subject,
			const struct expiry_record *request,
			const struct expiry_record *reply)
{
	struct expiry_record expected = *request;
	u64 given = reply->status ? 0 : reply->id;

	horrible_submit(&subject->horrible, &expected, subject->now, given);
	check(subject, !memcmp(&expected, reply, sizeof(expected)),
	      "op %u flags %#x id %#llx deadline %llu period %u: "
	      "status %d id %#llx deadline %llu period %u flags %#x, not "
	      "status %d id %#llx deadline %llu period %u flags %#x",
	      request->op, request->flags, request->id, request->deadline_ns,
	      request->period_ms, reply->status, reply->id, reply->deadline_ns,
	      reply->period_ms, reply->flags, expected.status, expected.id,
	      expected.deadline_ns, expected.period_ms, expected.flags);
	if (reply->op == EXPIRY_OP_ARM && !reply->status)
		subject->old[chance(subject, OLD_IDS)] = reply->id;
}

static void step_submit(struct subject *subject)
{
	struct expiry_record request[BATCH], reply[BATCH], unchanged;
	u32 i, n = chance(subject, 3) ? 1 : 1 + chance(subject, BATCH);
	u32 done = 0;
	bool faults;

	for (i = 0; i < n; i++)
		request[i] = reply[i] = any_record(subject);

	faults = faults_begin(subject);
	while (done < n) {
		i = done;
		done += timers_submit(&subject->queue.timers, reply + i, n - i,
				      subject->now);
		check(subject, done == n || faults, "%u of %u records",
		      done, n);
		for (; i < done; i++) {
			check(subject, reply[i].status != -EAGAIN,
			      "-EAGAIN in a record that was processed");
			/* Refused for a page: nothing happened, ask again. */
			unchanged = request[i];
			unchanged.status = reply[i].status;
			if (faults && reply[i].status &&
			    is_fault(subject, reply[i].status) &&
			    !memcmp(&unchanged, &reply[i],
				    sizeof(unchanged))) {
				subject->horrible.refused++;
				continue;
			}
			check_reply(subject, &request[i], &reply[i]);
		}
		check(subject, done == n ||
		      !memcmp(&request[done], &reply[done],
			      (n - done) * sizeof(*reply)),
		      "records not processed, and changed");
		faults_end(subject);
		faults = false;
	}
}

static void check_deliveries(struct subject *subject,
			     const struct expiry_record *records, int nr,
			     bool hold)
{
	const char *wrong;
	int i;

	for (i = 0; i < nr; i++) {
		wrong = horrible_deliver(&subject->horrible, &records[i],
					 subject->now, hold);
		check(subject, !wrong,
		      "%s: id %#llx deadline %llu period %u flags %#x at %llu",
		      wrong, records[i].id, records[i].deadline_ns,
		      records[i].period_ms, records[i].flags, subject->now);
	}
}

static int deliver(struct subject *subject, struct expiry_record *records,
		   u32 count, bool hold)
{
	struct timers *timers = &subject->queue.timers;
	bool faults = faults_begin(subject);
	int ret;

	ret = timers_deliver(timers, records, count, subject->now, hold);
	faults_end(subject);
	check(subject, ret <= (int)count, "%d of %u delivered", ret, count);
	check(subject, ret >= 0 || (faults && is_fault(subject, ret)),
	      "deliver: error %d", ret);
	check_deliveries(subject, records, ret, hold);
	check(subject, timers_due(timers, subject->now) ||
	      horrible_next_ns(&subject->horrible) > subject->now ||
	      horrible_next_ns(&subject->horrible) == EXPIRY_NEVER,
	      "something is due, and not told");
	return ret < 0 ? 0 : ret;
}

static void step_deliver(struct subject *subject)
{
	struct expiry_record records[DELIVER_MAX];

	deliver(subject, records, chance(subject, DELIVER_MAX + 1), false);
}

/* As a reader does whose copy may fail: hold, and then tell what reached it.
 * Meanwhile others go on. The later ones are restored first, so that a timer
 * which is among both is not lost.
 */
static void step_hold(struct subject *subject)
{
	struct expiry_record records[DELIVER_MAX];
	u32 i, nr, reached;
	int ret;

	nr = deliver(subject, records, chance(subject, DELIVER_MAX + 1), true);
	while (chance(subject, 3))
		step_submit(subject);

	reached = chance(subject, 2) ? nr : chance(subject, nr + 1);
	if (faults_begin(subject)) {
		ret = timers_restore(&subject->queue.timers, records + reached,
				     nr - reached);
		faults_end(subject);
		check(subject, !ret || is_fault(subject, ret),
		      "restore: error %d", ret);
	}
	ret = timers_restore(&subject->queue.timers, records + reached,
			     nr - reached);
	check(subject, !ret, "restore: error %d", ret);
	for (i = reached; i < nr; i++)
		horrible_restore(&subject->horrible, &records[i]);
	subject->restored |= reached < nr;

	timers_release(&subject->queue.timers, records, reached);
	for (i = 0; i < reached; i++)
		horrible_release(&subject->horrible, records[i].id);
}

static void step_rewind(struct subject *subject)
{
	u64 cursor = 0;
	u32 calls = 0;
	bool faults = faults_begin(subject);
	int ret;

	do {
		ret = timers_rewind(&subject->queue.timers, &cursor);
		check(subject, ret >= 0 || (faults && is_fault(subject, ret)),
		      "rewind: error %d", ret);
		faults = false;
		faults_end(subject);
		check(subject, calls++ < 1000, "rewind has no end");
	} while (ret);
	check(subject, !subject->queue.timers.unacked, "rewound, and unacked");
	horrible_rewind(&subject->horrible);
}

static void step_settle(struct subject *subject)
{
	struct timers *timers = &subject->queue.timers;
	u64 next_ns = horrible_next_ns(&subject->horrible);
	bool faults = faults_begin(subject);
	int ret = timers_settle(timers, chance(subject, 20));

	faults_end(subject);
	check(subject, ret == 0 || ret == 1 ||
	      (faults && is_fault(subject, ret)), "settle: %d", ret);
	if (ret == 1)
		check(subject, timers_next_ns(timers) == next_ns,
		      "settled on %llu, not %llu", timers_next_ns(timers),
		      next_ns);
}

static void compare(struct subject *subject)
{
	struct horrible *horrible = &subject->horrible;
	struct timers *timers = &subject->queue.timers;
	struct horrible_timer *timer;
	struct expiry_record *row;
	u32 nr, armed = horrible_armed(horrible);
	int ret;

	ret = timers_validate(timers);
	check(subject, !ret, "not valid: %d", ret);
	check(subject, timers_nr(timers) == horrible->nr,
	      "%llu timers, not %u", timers_nr(timers), horrible->nr);
	check(subject, timers->armed == armed, "%llu armed, not %u",
	      timers->armed, armed);
	check(subject, timers_next_ns(timers) <= horrible_next_ns(horrible),
	      "next at %llu, not %llu", timers_next_ns(timers),
	      horrible_next_ns(horrible));
	check(subject, timers->heap.nr <=
	      2 * timers->limit + 4 * BHEAP_NODES_PER_PAGE,
	      "%u nodes for at most %llu timers", timers->heap.nr,
	      timers->limit);
	if (!horrible->nr)
		check(subject, !timers->heap.nr && !timers->heap.pages->nr &&
		      !timers->slots.pages->nr, "empty, and has pages");

	nr = test_list(&subject->queue, subject->rows, timers->limit + 1);
	check(subject, nr == horrible->nr, "%u rows for %u timers", nr,
	      horrible->nr);
	for (row = subject->rows; row < subject->rows + nr; row++) {
		timer = horrible_find(horrible, row->id);
		check(subject, timer, "row %#llx is no timer", row->id);
		check(subject, row == subject->rows || row[-1].id != row->id,
		      "row %#llx twice", row->id);
		check(subject, row->op == EXPIRY_OP_QUERY && !row->status &&
		      row->flags == (timer->armed ? 0 : EXPIRY_F_REDELIVERED) &&
		      row->deadline_ns == timer->deadline &&
		      row->cookie == timer->cookie &&
		      row->period_ms == timer->period_ms,
		      "row %#llx: flags %#x deadline %llu, not %llu",
		      row->id, row->flags, row->deadline_ns, timer->deadline);
	}
}

static void compare_counters(struct subject *subject)
{
	struct horrible *horrible = &subject->horrible;
	struct expiry_stat stat;
	u64 on_time = 0;
	u32 i;

	memset(&stat, 0, sizeof(stat));
	timers_stat(&subject->queue.timers, &stat);
	check(subject, stat.arms == horrible->arms &&
	      stat.refreshes == horrible->refreshes &&
	      stat.cancels == horrible->cancels &&
	      stat.acks == horrible->acks, "counts of requests");
	check(subject, stat.refused == horrible->refused &&
	      stat.refused_limit == horrible->refused_limit,
	      "%llu refused, not %llu; for the limit %llu, not %llu",
	      stat.refused, horrible->refused, stat.refused_limit,
	      horrible->refused_limit);
	if (subject->restored)
		return;
	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		on_time += stat.lateness[i];
	check(subject, stat.delivered == horrible->delivered &&
	      stat.redelivered == horrible->redelivered &&
	      on_time == stat.delivered - stat.redelivered,
	      "counts of deliveries");
}

static void step(struct subject *subject)
{
	u64 kind = chance(subject, 100);

	if (kind < 70)
		step_submit(subject);
	else if (kind < 84)
		step_deliver(subject);
	else if (kind < 90)
		step_hold(subject);
	else if (kind < 93)
		step_rewind(subject);
	else
		step_settle(subject);

	if (chance(subject, 500) == 0)
		subject->now += SECOND;
	else if (chance(subject, 100) == 0)
		subject->now -= 20 * MILLISECOND;
	else
		subject->now += chance(subject, 3 * MILLISECOND);
	if (subject->step++ % subject->thorough == 0)
		compare(subject);
	if (subject->evict) {
		test_queue_trim(&subject->queue);
		test_queue_evict(&subject->queue, subject->evict);
	}
}

/* What is armed with a deadline comes out in the end, once and in order. */
static void drain(struct subject *subject)
{
	struct expiry_record records[DELIVER_MAX];
	struct horrible *horrible = &subject->horrible;
	u32 i, calls = 0;

	subject->faults = 0;
	for (i = 0; i < horrible->nr; i++) {
		struct expiry_record request = {
			.op = EXPIRY_OP_CANCEL,
			.id = horrible->timer[i].id,
		}, reply = request;

		/* Periodic ones have no end, and those that are never due. */
		if (!horrible->timer[i].armed ||
		    (!horrible->timer[i].period_ms &&
		     horrible->timer[i].deadline != EXPIRY_NEVER))
			continue;
		test_submit(&subject->queue, &reply, subject->now);
		check_reply(subject, &request, &reply);
		i = -1;
	}
	subject->now = EXPIRY_NEVER;
	while (horrible_armed(horrible)) {
		deliver(subject, records, DELIVER_MAX, false);
		check(subject, calls++ < 100000, "draining has no end");
	}
	compare(subject);
	for (i = 0; horrible->nr; i++) {
		struct expiry_record request = {
			.op = EXPIRY_OP_ACK,
			.id = horrible->timer[0].id,
		}, reply = request;

		test_submit(&subject->queue, &reply, subject->now);
		check_reply(subject, &request, &reply);
		check(subject, !reply.status, "ack: %d", reply.status);
	}
	compare(subject);
	test_queue_trim(&subject->queue);
	check(subject, !test_queue_pages(&subject->queue), "pages are left");
}

static void sequence(u64 seed, u32 mode, u32 limit, u32 steps, u32 thorough)
{
	struct subject subject = { .seed = seed, .random = seed };

	subject.now = SECOND + chance(&subject, SECOND);
	subject.evict = chance(&subject, 2) ? 1 + chance(&subject, 6) : 0;
	subject.faults = chance(&subject, 3) ? 2 + chance(&subject, 20) : 0;
	subject.thorough = thorough;
	subject.rows = calloc(limit + 1UL, sizeof(*subject.rows));
	assert_non_null(subject.rows);
	test_queue_init(&subject.queue, mode, limit, seed);
	horrible_init(&subject.horrible, mode, limit);

	while (subject.step < steps)
		step(&subject);
	compare(&subject);
	compare_counters(&subject);
	drain(&subject);

	horrible_free(&subject.horrible);
	test_queue_free(&subject.queue);
	free(subject.rows);
}

static void many_short(u32 mode)
{
	u64 seed, random;

	for (seed = test_seed; seed < test_seed + test_rounds; seed++) {
		random = ~seed;
		sequence(seed, mode, 1 + test_below(&random, 60),
			 20 + test_below(&random, 400), 1);
	}
}

static void few_long(u32 mode)
{
	u64 seed, rounds = test_rounds / 100 + 1;

	for (seed = test_seed; seed < test_seed + rounds; seed++)
		sequence(seed, mode, 1500, 8000, 200);
}

static void plain(void **state)
{
	(void)state;
	many_short(0);
}

static void keyed(void **state)
{
	(void)state;
	many_short(EXPIRY_MODE_KEYED);
}

static void acking(void **state)
{
	(void)state;
	many_short(EXPIRY_MODE_ACK);
}

static void keyed_acking(void **state)
{
	(void)state;
	many_short(EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK);
}

static void long_plain(void **state)
{
	(void)state;
	few_long(0);
}

static void long_keyed_acking(void **state)
{
	(void)state;
	few_long(EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(plain),
		test_with_layouts(keyed),
		test_with_layouts(acking),
		test_with_layouts(keyed_acking),
		test_with_layouts(long_plain),
		test_with_layouts(long_keyed_acking),
	};

	test_arguments(argc, argv, 200);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
