// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ARMs for which a queue has no room at the start: what is left of random ones is what a
 * plain array has, and a start takes time by their number, not by its square.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "daemon/queue/crowded.h"

#define QUEUES	3
#define IDS	300
#define ROUNDS	200000
#define MANY	200000

static char queues[QUEUES];
static uint64_t model[QUEUES][IDS + 1];	/* cookies, 0 = none */
static uint64_t found;

static struct queue *queue_at(uint32_t number)
{
	return (struct queue *)&queues[number];
}

static int check(void *data, struct queue *queue,
		 const struct expiry_record *arm)
{
	uint32_t number = (char *)queue - queues;

	(void)data;
	assert_true(number < QUEUES && arm->id && arm->id <= IDS);
	assert_int_equal(arm->op, EXPIRY_OP_ARM);
	assert_int_equal(arm->cookie, model[number][arm->id]);
	found++;
	return 0;
}

static void compare(const struct crowded *crowded)
{
	uint64_t nr = 0;
	uint32_t q, id;

	for (q = 0; q < QUEUES; q++)
		for (id = 1; id <= IDS; id++)
			nr += !!model[q][id];
	found = 0;
	assert_int_equal(crowded_visit(crowded, check, NULL), 0);
	assert_int_equal(found, nr);
	assert_true(nr <= crowded->nr);
}

static void what_is_left(void **state)
{
	struct crowded crowded = { 0 };
	uint32_t i, id;

	(void)state;
	srand(1);
	for (i = 1; i <= ROUNDS; i++) {
		uint32_t q = rand() % QUEUES, kind = rand() % 1000;
		struct expiry_record arm = {
			.op = EXPIRY_OP_ARM,
			.id = 1 + rand() % IDS,
			.cookie = i,
		};

		if (kind < 600) {
			assert_int_equal(crowded_add(&crowded, queue_at(q),
						     &arm), 0);
			model[q][arm.id] = i;
		} else if (kind < 999) {
			crowded_forget(&crowded, queue_at(q), arm.id);
			model[q][arm.id] = 0;
		} else {
			assert_int_equal(crowded_forget_all(&crowded,
							    queue_at(q)), 0);
			for (id = 1; id <= IDS; id++)
				model[q][id] = 0;
		}
		if (!(i % 500))
			compare(&crowded);
	}
	/* It does not grow by what is forgotten. */
	assert_true(crowded.size <= 4096);
	crowded_free(&crowded);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* By the square it would be minutes. */
static void many(void **state)
{
	struct crowded crowded = { 0 };
	double began = seconds();
	uint64_t id;

	(void)state;
	for (id = 1; id <= MANY; id++) {
		struct expiry_record arm = { .op = EXPIRY_OP_ARM, .id = id };

		assert_int_equal(crowded_add(&crowded, queue_at(0), &arm), 0);
	}
	for (id = 1; id <= MANY; id++)
		crowded_forget(&crowded, queue_at(1), id);
	for (id = MANY; id; id--)
		assert_int_equal(crowded_forget_all(&crowded, queue_at(2)), 0);
	for (id = MANY; id; id--)
		crowded_forget(&crowded, queue_at(0), id);
	assert_int_equal(crowded.nr, 0);
	crowded_free(&crowded);
	assert_true(seconds() - began < 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left),
		cmocka_unit_test(many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("what has no room at the start",
					   tests, NULL, NULL);
}
