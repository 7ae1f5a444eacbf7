// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Queues for the tests, on whichever engine is behind them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support-queue.h"

const char *address;

struct expiry *open_options(const struct expiry_options *options)
{
	struct expiry *h = NULL;
	int ret = expiry_open(&h, address, options);

	if (ret)
		fail_msg("%s: %s", address, strerror(-ret));
	return h;
}

struct expiry *open_queue(uint32_t flags)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.clock_id = CLOCK_MONOTONIC,
	};

	return open_options(&options);
}

int open_named(struct expiry **h, const char *name, uint32_t flags)
{
	char queue[EXPIRY_NAME_MAX + 1];
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.queue = queue,
		.clock_id = CLOCK_MONOTONIC,
	};

	snprintf(queue, sizeof(queue), "%s-%d", name, getpid());
	return expiry_open(h, address, &options);
}

bool on_device(void)
{
	return strncmp(address, "device:", 7) == 0;
}

void take_due(struct expiry *h, struct expiry_record *records, int nr)
{
	int i, done = 0, ret;

	while (done < nr) {
		ret = expiry_receive(h, records + done, nr - done, WAIT_MS);
		if (ret <= 0)
			fail_msg("%d of %d expirations, then %d", done, nr, ret);
		for (i = done; i < done + ret; i++) {
			assert_int_equal(records[i].op, EXPIRY_OP_EXPIRED);
			assert_true(records[i].deadline_ns <= expiry_now(h));
		}
		done += ret;
	}
}

void assert_nothing(struct expiry *h)
{
	struct expiry_record record;

	assert_int_equal(expiry_query(h, 0xffffffff00000001, NULL), -ENOENT);
	assert_int_equal(expiry_next(h, &record, 1), 0);
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

static int start_device(void **state)
{
	(void)state;
	address = "device:/dev/expiry";
	return 0;
}

int run_on_engines(const char *name, const struct CMUnitTest *tests, size_t nr)
{
	int failed;

	failed = _cmocka_run_group_tests(name, tests, nr, start_server, stop_server);
	if (!getenv("EXPIRY_ADDRESS") && !strcmp(server_engine(), "kernel"))
		failed += _cmocka_run_group_tests(name, tests, nr, start_device,
						  NULL);
	return failed;
}
