// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The main job's ledger where a server ends with a request in doubt: what is right in
 * either case, and what stays wrong.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "demo/ledger.h"

#define FIRST	1000
#define LATER	2000
#define NOW	3000

static struct ledger ledger;

static void answer(uint8_t op, uint64_t deadline, int status)
{
	const struct expiry_record record = {
		.op = op, .id = 7, .deadline_ns = deadline, .status = status,
	};

	ledger_answer(&ledger, &record, NOW);
}

static void expire(uint64_t deadline)
{
	const struct expiry_record record = {
		.op = EXPIRY_OP_EXPIRED, .id = 7, .deadline_ns = deadline,
	};

	ledger_expired(&ledger, &record, NOW);
}

/* A timer whose REFRESH, to LATER, is in flight. */
static void begin(void)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM, .id = 7, .deadline_ns = FIRST,
	};

	assert_int_equal(ledger_init(&ledger, 1), 0);
	ledger_sent(&ledger, &record);
	answer(EXPIRY_OP_ARM, FIRST, 0);
	record.op = EXPIRY_OP_REFRESH;
	record.deadline_ns = LATER;
	ledger_sent(&ledger, &record);
}

/* The server ends. The REFRESH, sent again, finds no timer: it comes at @deadline. Returns
 * how many came for another deadline than theirs.
 */
static uint64_t in_doubt(uint64_t deadline, bool is_answered_first)
{
	uint64_t misdated;

	begin();
	ledger_broken(&ledger);
	if (is_answered_first)
		answer(EXPIRY_OP_REFRESH, LATER, -ENOENT);
	expire(deadline);
	if (!is_answered_first)
		answer(EXPIRY_OP_REFRESH, LATER, -ENOENT);
	misdated = ledger.misdated;
	assert_int_equal(ledger_clean(&ledger), !misdated);
	ledger_deinit(&ledger);
	return misdated;
}

static void test_a_first_attempt_may_have_moved_it(void **state)
{
	(void)state;
	assert_int_equal(in_doubt(LATER, false), 0);
	assert_int_equal(in_doubt(LATER, true), 0);
}

static void test_a_first_attempt_may_not(void **state)
{
	(void)state;
	assert_int_equal(in_doubt(FIRST, false), 0);
	assert_int_equal(in_doubt(FIRST, true), 0);
}

static void test_another_deadline_is_wrong(void **state)
{
	(void)state;
	assert_int_equal(in_doubt(LATER + 1, false), 1);
	assert_int_equal(in_doubt(LATER + 1, true), 1);
}

static void test_without_an_end_it_must_not_have_moved(void **state)
{
	(void)state;
	begin();
	expire(LATER);
	answer(EXPIRY_OP_REFRESH, LATER, -ENOENT);
	assert_int_equal(ledger.misdated, 1);
	ledger_deinit(&ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_first_attempt_may_have_moved_it),
		cmocka_unit_test(test_a_first_attempt_may_not),
		cmocka_unit_test(test_another_deadline_is_wrong),
		cmocka_unit_test(test_without_an_end_it_must_not_have_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
