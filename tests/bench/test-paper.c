// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The basis of bench/paper's figures. The one pass for every number of resident
 * pages agrees with a plain simulation of one number. The compiler's report of
 * a heap agrees with the processor's.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "bench/paper/experiment.h"
#include "bench/paper/lru.h"
#include "bench/paper/watch.h"

#define RECORDS		10000U
#define PAGES_MAX	4096U
#define PAGES_FEW	64U	/* up to here each number is simulated plainly */
#define SPREAD		16U	/* numbers above that, up to all pages */

/* ------------------------------------------------------------------------
 * The plain simulation: a list, the page touched last in front
 */

struct plain {
	u32 resident;
	u32 nr;
	u32 list[PAGES_MAX];
	bool dirty[PAGES_MAX];
	bool made[PAGES_MAX];
	struct lru_count count;
};

static void plain_touch(struct plain *plain, u32 page, bool write)
{
	u32 i;

	for (i = 0; i < plain->nr && plain->list[i] != page; i++)
		;
	if (i == plain->nr) {
		if (plain->made[page])
			plain->count.in++;
		plain->made[page] = true;
		if (plain->nr < plain->resident) {
			plain->nr++;
		} else {
			i--;
			plain->count.out += plain->dirty[plain->list[i]];
			plain->dirty[plain->list[i]] = false;
		}
	}
	for (; i; i--)
		plain->list[i] = plain->list[i - 1];
	plain->list[0] = page;
	plain->dirty[page] |= write;
}

/**
 * struct both - the two side by side
 * @sizes: how many memories are simulated plainly
 * @plain: by number of resident pages: each to PAGES_FEW, then a spread
 */
struct both {
	struct lru lru;
	u32 sizes;
	struct plain plain[PAGES_FEW + SPREAD];
};

static struct both *both_new(u32 nr)
{
	struct both *both = test_calloc(1, sizeof(*both));
	u32 i;

	assert_true(nr <= PAGES_MAX);
	lru_init(&both->lru, nr);
	for (i = 1; i <= nr && i <= PAGES_FEW; i++)
		both->plain[both->sizes++].resident = i;
	for (i = 1; nr > PAGES_FEW && i <= SPREAD; i++)
		both->plain[both->sizes++].resident =
			PAGES_FEW + (nr - PAGES_FEW) * i / SPREAD;
	return both;
}

static void both_touch(void *context, u32 page, bool write)
{
	struct both *both = context;
	u32 i;

	lru_touch(&both->lru, page, write);
	for (i = 0; i < both->sizes; i++)
		plain_touch(&both->plain[i], page, write);
}

static void both_compare(struct both *both)
{
	struct lru_count counts[PAGES_MAX];
	const struct lru_count *count;
	u32 i;

	lru_counts(&both->lru, counts);
	for (i = 0; i < both->sizes; i++) {
		count = &counts[both->plain[i].resident - 1];
		assert_int_equal(count->in, both->plain[i].count.in);
		assert_int_equal(count->out, both->plain[i].count.out);
	}
	lru_deinit(&both->lru);
	test_free(both);
}

/* ------------------------------------------------------------------------ */

/* Counted by hand: four pages touched in turn, three times; page 0 written
 * the first time round, page 1 each time.
 */
static void one_pass_counts_as_by_hand(void **state)
{
	struct lru_count counts[4];
	struct lru lru;
	u32 round, page, i;

	(void)state;
	lru_init(&lru, 4);
	for (round = 0; round < 3; round++) {
		for (page = 0; page < 4; page++)
			lru_touch(&lru, page, page == 1 ||
					      (page == 0 && round == 0));
	}
	lru_counts(&lru, counts);
	for (i = 0; i < 3; i++) {
		assert_int_equal(counts[i].in, 8);
		/* Page 0 once; page 1 twice, and where it has left by the end
		 * a third time.
		 */
		assert_int_equal(counts[i].out, i < 2 ? 4 : 3);
	}
	assert_int_equal(counts[3].in, 0);
	assert_int_equal(counts[3].out, 0);
	lru_deinit(&lru);
}

static void one_pass_is_every_plain_simulation(void **state)
{
	uint64_t random = 1;
	struct both *both;
	u32 round, i, nr, near, writes, page;

	(void)state;
	for (round = 0; round < 120; round++) {
		nr = 1 + bench_below(&random, round % 2 ? PAGES_MAX : PAGES_FEW);
		near = 1 + bench_below(&random, nr);
		writes = bench_below(&random, 5);
		both = both_new(nr);
		for (i = 0; i < 2000; i++) {
			page = bench_below(&random, 8) ?
				bench_below(&random, near) :
				bench_below(&random, nr);
			both_touch(both, page,
				   bench_below(&random, 4) < writes);
		}
		both_compare(both);
	}
}

static void one_pass_is_every_plain_simulation_of_heaps(void **state)
{
	struct experiment experiment = { .records = RECORDS };
	const struct bheap_layout *const *layout;
	struct arena arena;
	struct both *both;

	(void)state;
	arena_init(&arena, RECORDS);
	experiment.arena = &arena;
	experiment.keys = experiment_keys(RECORDS);
	for (layout = experiment_layouts; *layout; layout++) {
		experiment.layout = *layout;
		both = both_new(arena.pages.nr_max);
		watch(arena.memory, arena.pages.nr_max, CORE_PAGE_SHIFT,
		      both_touch, both);
		experiment_run(&experiment);
		watch(NULL, 0, 0, NULL, NULL);
		assert_in_range(both->lru.touched,
				RECORDS / BHEAP_NODES_PER_PAGE,
				arena.pages.nr_max);
		both_compare(both);
	}
	free(experiment.keys);
	arena_deinit(&arena);
}

/* ------------------------------------------------------------------------
 * The processor as a witness: before each operation no page may be touched;
 * each fault allows the one page a little more.
 */

enum seen { UNTOUCHED, READ, WRITTEN };

static struct {
	struct arena arena;
	enum seen reported[PAGES_MAX];
	volatile sig_atomic_t seen[PAGES_MAX];
	u32 operations;
	u32 writes;
} witness;

static void protect(u32 page, u32 nr, int protection)
{
	if (mprotect(witness.arena.memory + (size_t)page * CORE_PAGE_SIZE,
		     (size_t)nr * CORE_PAGE_SIZE, protection))
		abort();
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	size_t page = ((uintptr_t)info->si_addr -
		       (uintptr_t)witness.arena.memory) / CORE_PAGE_SIZE;

	(void)signal;
	(void)context;
	if (page >= witness.arena.pages.nr_max ||
	    witness.seen[page] == WRITTEN)
		abort();
	witness.seen[page]++;
	protect(page, 1, witness.seen[page] == READ ? PROT_READ :
						      PROT_READ | PROT_WRITE);
}

static void on_report(void *context, u32 page, bool write)
{
	(void)context;
	if (write)
		witness.reported[page] = WRITTEN;
	else if (witness.reported[page] == UNTOUCHED)
		witness.reported[page] = READ;
}

static void after_operation(void *context)
{
	u32 i;

	(void)context;
	for (i = 0; i < witness.arena.pages.nr_max; i++) {
		assert_int_equal(witness.reported[i], witness.seen[i]);
		witness.writes += witness.seen[i] == WRITTEN;
		witness.reported[i] = witness.seen[i] = UNTOUCHED;
	}
	witness.operations++;
	protect(0, witness.arena.pages.nr_max, PROT_NONE);
}

static void what_is_reported_is_what_the_processor_sees(void **state)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before;
	struct experiment experiment = {
		.records = RECORDS,
		.arena = &witness.arena,
		.after = after_operation,
	};
	const struct bheap_layout *const *layout;
	struct core_pages *pages = &witness.arena.pages;

	(void)state;
	if (sysconf(_SC_PAGESIZE) != CORE_PAGE_SIZE)
		skip();
	arena_init(&witness.arena, RECORDS);
	assert_true(pages->nr_max <= PAGES_MAX);
	experiment.keys = experiment_keys(RECORDS);
	action.sa_sigaction = on_fault;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (layout = experiment_layouts; *layout; layout++) {
		experiment.layout = *layout;
		witness.operations = witness.writes = 0;
		protect(0, pages->nr_max, PROT_NONE);
		watch(witness.arena.memory, pages->nr_max, CORE_PAGE_SHIFT,
		      on_report, NULL);
		experiment_run(&experiment);
		watch(NULL, 0, 0, NULL, NULL);
		assert_int_equal(witness.operations,
				 RECORDS * EXPERIMENT_OPS);
		assert_true(witness.writes >= RECORDS);
	}
	protect(0, pages->nr_max, PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &before, NULL);
	free(experiment.keys);
	arena_deinit(&witness.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_pass_counts_as_by_hand),
		cmocka_unit_test(one_pass_is_every_plain_simulation),
		cmocka_unit_test(one_pass_is_every_plain_simulation_of_heaps),
		cmocka_unit_test(what_is_reported_is_what_the_processor_sees),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
