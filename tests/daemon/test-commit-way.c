// SPDX-License-Identifier: LGPL-2.1-or-later
/* The choice between two ways of a commit, where each takes a time of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/journal/commit-way.h"

#define MANY	(64 * COMMIT_WAY_TRIAL)
/* Until eight trials are won by twice and more. Only the first one takes its time. */
#define SOON	(COMMIT_WAY_TRIAL + \
		 2 * COMMIT_WAY_SCORE / COMMIT_WAY_UNIT * (COMMIT_WAY_SLOW + 1))

static uint32_t random_bits = 1;

/* Returns about @ns: half as much to half as much again. */
static uint64_t about(uint64_t ns)
{
	random_bits = random_bits * 1103515245 + 12345;
	return ns / 2 + ns * (random_bits >> 16) / 65536;
}

/* Commits. Returns how many were linked pairs. */
static uint32_t commit(struct commit_way *way, uint32_t nr, uint64_t linked_ns,
		       uint64_t flushing_ns)
{
	uint32_t linked = 0;
	bool is_linked;

	while (nr--) {
		is_linked = commit_way_is_linked(way);
		linked += is_linked;
		commit_way_took(way, about(is_linked ? linked_ns : flushing_ns));
	}
	return linked;
}

static void keeps_the_faster(void **state)
{
	struct commit_way way = {0};

	(void)state;
	commit(&way, COMMIT_WAY_SLOW, 190000, 60000);
	assert_int_equal(commit(&way, MANY, 190000, 60000),
			 MANY / COMMIT_WAY_TRIAL);
	assert_false(way.is_linked);
}

/* A third less is enough, in a while. */
static void finds_the_faster(void **state)
{
	struct commit_way way = { .is_linked = true };

	(void)state;
	commit(&way, MANY, 190000, 130000);
	assert_false(way.is_linked);
}

/* A little faster most of the time, and at times much slower, is slower. */
static void weighs_what_trials_take(void **state)
{
	struct commit_way way = { .is_linked = true };
	uint32_t i, trials = 0;

	(void)state;
	for (i = 0; i < MANY; i++) {
		if (commit_way_is_linked(&way))
			commit_way_took(&way, 130000);
		else
			commit_way_took(&way, ++trials % 4 ? 118000 : 4000000);
		assert_true(way.is_linked);
	}
	assert_true(trials > 50);
}

static void changes_and_changes_back(void **state)
{
	struct commit_way way = {0};

	(void)state;
	commit(&way, SOON, 130000, 740000);
	assert_true(way.is_linked);
	assert_int_equal(commit(&way, MANY, 130000, 740000),
			 MANY - MANY / COMMIT_WAY_TRIAL);
	commit(&way, SOON, 740000, 130000);
	assert_false(way.is_linked);
}

/* A disk that stands still for a while says nothing of the way. */
static void one_slow_commit_changes_nothing(void **state)
{
	struct commit_way way = {0};
	uint32_t i;

	(void)state;
	for (i = 0; i < MANY; i++) {
		bool is_linked = commit_way_is_linked(&way);

		assert_false(way.is_linked);
		/* Every fifth time it is the commit before a trial, too. */
		if (i % 50 == 0 || i % (5 * COMMIT_WAY_TRIAL) == COMMIT_WAY_TRIAL - 2)
			commit_way_took(&way, 9000000);
		else
			commit_way_took(&way, is_linked ? 190000 : 140000);
	}
}

/* The next commit is the trial then, for a failed one took no time that counts. */
static void failed_trial_comes_again(void **state)
{
	struct commit_way way = {0};

	(void)state;
	commit(&way, COMMIT_WAY_SLOW - 1, 1000, 1000);
	assert_true(commit_way_is_linked(&way));
	assert_true(commit_way_is_linked(&way));
	commit_way_took(&way, 1000);
	assert_false(commit_way_is_linked(&way));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_faster),
		cmocka_unit_test(finds_the_faster),
		cmocka_unit_test(weighs_what_trials_take),
		cmocka_unit_test(changes_and_changes_back),
		cmocka_unit_test(one_slow_commit_changes_nothing),
		cmocka_unit_test(failed_trial_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
