// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT on a real daemon whose queue lives on while a connection is
 * cut. tests/sim cuts them at any byte.
 */
#include <string.h>
#include <time.h>

#include "support-cut.h"
#include "support-queue.h"

/* A periodic timer that was delivered is armed and not acknowledged: HELLO may take
 * it for two. The queue is no other for that.
 */
static void periodic_timer_counts_once(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.queue = "periodic",
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK |
			 EXPIRY_OPEN_KEYED,
		.clock_id = CLOCK_MONOTONIC,
	};
	struct expiry *h = open_options(&options);
	struct expiry_record record;
	struct expiry_info info;
	struct expiry_stat stat;
	struct cutter cutter;
	uint64_t id = 1;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, 0, 3600000, 0, 0), 0);
	take_due(h, &record, 1);
	expiry_close(h);

	cutter_start(&cutter, address + strlen("unix:"));
	options.flags = EXPIRY_OPEN_ACK | EXPIRY_OPEN_KEYED |
			EXPIRY_OPEN_RECONNECT;
	assert_int_equal(expiry_open(&h, cutter.address, &options), 0);
	expiry_info(h, &info, sizeof(info));
	assert_true(info.timers >= 1);
	cutter_cut(&cutter);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.arms == 1);
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.reconnects, 1);
	expiry_close(h);
	cutter_stop(&cutter);
}

static int start_server(void **state)
{
	(void)state;
	address = server_start();
	return address ? 0 : -1;
}

static int stop_server(void **state)
{
	(void)state;
	return server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periodic_timer_counts_once),
	};

	return cmocka_run_group_tests_name("cuts", tests, start_server,
					   stop_server);
}
