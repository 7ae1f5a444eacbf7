// SPDX-License-Identifier: LGPL-2.1-or-later
/* The alarms of one clock, against an array that is searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/engine/alarm.h"
#include "tests/daemon/fake-loop.h"

#define ALARMS	100
#define STEPS	20000

static struct alarm alarm_of[ALARMS];
static uint64_t deadlines[ALARMS];	/* 0: not set */
static uint64_t last_ns;
static uint32_t nr_rung;

static void ring(struct alarm *alarm)
{
	uint64_t deadline_ns = deadlines[alarm - alarm_of];

	assert_true(deadline_ns && deadline_ns == alarm->deadline_ns);
	assert_true(deadline_ns >= last_ns && deadline_ns <= fake_now_ns);
	assert_int_equal(alarm->position, 0);
	last_ns = deadline_ns;
	deadlines[alarm - alarm_of] = 0;
	nr_rung++;
}

/* Due alarms ring, each once and in order; no other does. */
static void turn(struct alarms *alarms)
{
	uint64_t first_ns = UINT64_MAX;
	uint32_t nr = 0, i;

	last_ns = 0;
	alarms_turn(alarms);
	for (i = 0; i < ALARMS; i++) {
		if (!deadlines[i])
			continue;
		assert_true(deadlines[i] > fake_now_ns);
		if (deadlines[i] < first_ns)
			first_ns = deadlines[i];
		nr++;
	}
	assert_int_equal(alarms->nr, nr);
	/* The timeout is for the first one, or earlier. */
	assert_true(!nr || (alarms->armed_ns && alarms->armed_ns <= first_ns));
}

static void alarms_ring_once_and_in_order(void **state)
{
	struct loop loop = { 0 };
	struct alarms alarms;
	uint32_t step, i;

	(void)state;
	alarms_init(&alarms, &loop, 0, ring);
	for (step = 0; step < STEPS; step++) {
		i = rand() % ALARMS;
		switch (rand() % 8) {
		case 0:
			fake_now_ns += rand() % 100;
			turn(&alarms);
			break;
		case 1:
		case 2:
			alarm_unset(&alarms, &alarm_of[i]);
			deadlines[i] = 0;
			break;
		default:
			deadlines[i] = fake_now_ns + 1 + rand() % 1000;
			assert_int_equal(alarms_reserve(&alarms, alarms.nr + 1),
					 0);
			alarm_set(&alarms, &alarm_of[i], deadlines[i]);
		}
	}
	assert_true(nr_rung > STEPS / 20);
	alarms_deinit(&alarms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alarms_ring_once_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
