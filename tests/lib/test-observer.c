// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Handles that observe: copies of what the consumer is sent, and MISSED where
 * there is none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support-queue.h"

#define STORM	3000

static int open_observer(struct expiry **h, const char *name, uint32_t credit)
{
	char queue[EXPIRY_NAME_MAX + 1];
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_OBSERVE,
		.queue = queue,
		.clock_id = CLOCK_MONOTONIC,
		.credit = credit,
	};

	snprintf(queue, sizeof(queue), "%s-%d", name, getpid());
	return expiry_open(h, address, &options);
}

/* The queue of this name: a consumer of it and an observer. */
static void open_both(const char *name, struct expiry **consumer,
		      struct expiry **observer, uint32_t credit)
{
	assert_int_equal(open_named(consumer, name, EXPIRY_OPEN_CONSUME), 0);
	assert_int_equal(open_observer(observer, name, credit), 0);
}

static void close_both(struct expiry *consumer, struct expiry *observer)
{
	/* An observer does not keep a queue from being dropped. */
	assert_int_equal(expiry_drop(consumer), 0);
	expiry_close(consumer);
	expiry_close(observer);
}

static void arm_due(struct expiry *h, uint32_t nr)
{
	static struct expiry_record records[STORM];
	uint32_t i;

	for (i = 0; i < nr; i++)
		records[i] = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = i + 1,
			.cookie = i,
		};
	assert_int_equal(expiry_submit(h, records, nr), nr);
	for (i = 0; i < nr; i++)
		assert_int_equal(records[i].status, 0);
}

static void copies_are_the_consumers(void **state)
{
	struct expiry_record got[100], copies[100];
	struct expiry *consumer = NULL, *observer = NULL;
	struct expiry_info info;
	int done = 0, nr;

	(void)state;
	if (on_device()) {
		assert_int_equal(open_observer(&observer, "copies", 0),
				 -EOPNOTSUPP);
		return;
	}
	assert_int_equal(open_observer(&observer, "copies", 0), -ENOENT);
	open_both("copies", &consumer, &observer, 0);
	expiry_info(observer, &info, sizeof(info));
	assert_true(!info.timers && info.credit == EXPIRY_CREDIT_DEFAULT);
	assert_int_equal(expiry_receive(observer, copies, 1, 0), 0);
	arm_due(consumer, 100);
	take_due(consumer, got, 100);
	while (done < 100) {
		nr = expiry_receive(observer, copies + done, 100 - done,
				    WAIT_MS);
		assert_true(nr > 0);
		done += nr;
	}
	assert_memory_equal(copies, got, sizeof(got));
	assert_int_equal(expiry_receive(observer, copies, 1, 0), 0);
	assert_int_equal(expiry_credit(observer, 1), -EINVAL);
	close_both(consumer, observer);
}

/* Copies that come while a call waits are held up to the credit, then counted. */
static void calls_wait_between_copies(void **state)
{
	static struct expiry_record got[STORM], copies[STORM];
	static const uint32_t credits[] = { 1, 2, 8, EXPIRY_CREDIT_MAX };
	struct expiry *consumer = NULL, *observer = NULL;
	uint64_t told, missed;
	size_t c;
	int i, nr;

	(void)state;
	if (on_device())
		return;
	for (c = 0; c < sizeof(credits) / sizeof(*credits); c++) {
		open_both("calls", &consumer, &observer, credits[c]);
		arm_due(consumer, STORM);
		take_due(consumer, got, STORM);
		assert_int_equal(expiry_query(observer, 1ULL << 40 | 1, NULL),
				 -ENOENT);
		assert_true(expiry_pending(observer) > 0);
		told = 0;
		missed = 0;
		while (told < STORM) {
			nr = expiry_receive(observer, copies, 5, WAIT_MS);
			assert_true(nr > 0);
			for (i = 0; i < nr; i++) {
				if (copies[i].op == EXPIRY_OP_MISSED) {
					assert_true(copies[i].cookie);
					told += copies[i].cookie;
					missed += copies[i].cookie;
					continue;
				}
				assert_true(told < STORM);
				assert_memory_equal(&copies[i], &got[told],
						    sizeof(*got));
				told++;
			}
			/* Calls in between: replies differ from copies. */
			assert_int_equal(expiry_query(observer, 1ULL << 40 | 1,
						      NULL), -ENOENT);
		}
		assert_true(told == STORM);
		if (credits[c] < EXPIRY_CREDIT_MAX)
			assert_true(missed > STORM / 2);
		else
			assert_true(missed == 0);
		close_both(consumer, observer);
	}
}

static void an_observer_only_looks(void **state)
{
	struct expiry *consumer = NULL, *observer = NULL;
	uint64_t id, armed, cursor = 0;
	struct expiry_server_stat server;
	struct expiry_record record;
	struct expiry_queue row;
	struct expiry_stat stat;

	(void)state;
	if (on_device())
		return;
	open_both("looks", &consumer, &observer, 0);
	assert_int_equal(expiry_arm(consumer, &armed, HOUR, 0, 3,
				    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_query(observer, armed, &record), 0);
	assert_true(record.cookie == 3);
	assert_int_equal(expiry_scan(observer, &cursor, &record, 1), 1);
	assert_true(record.id == armed);
	assert_int_equal(expiry_stat(observer, &stat, &server, sizeof(server)),
			 0);
	assert_true(stat.armed == 1 && server.producers == 1 &&
		    server.consumers == 1);
	cursor = 0;
	assert_int_equal(expiry_queues(observer, &cursor, &row, 1), 1);
	assert_int_equal(expiry_arm(observer, &id, HOUR, 0, 0, 0), -EACCES);
	assert_int_equal(expiry_refresh(observer, armed, 1, 0, NULL), -EACCES);
	assert_int_equal(expiry_cancel(observer, armed, NULL), -EACCES);
	assert_int_equal(expiry_ack(observer, armed), -EACCES);
	assert_int_equal(expiry_clear(observer, &id), -EACCES);
	assert_int_equal(expiry_drop(observer), -EACCES);
	assert_int_equal(expiry_query(consumer, armed, NULL), 0);
	close_both(consumer, observer);
}

static void options_that_do_not_go_together(void **state)
{
	static const uint32_t flags[] = {
		EXPIRY_OPEN_CONSUME, EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK,
		EXPIRY_OPEN_MANUAL, EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL,
	};
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_OBSERVE,
	};
	struct expiry *h = NULL;
	size_t i;

	(void)state;
	assert_int_equal(expiry_open(&h, address, &options), -EINVAL);
	options.flags |= EXPIRY_OPEN_EXISTING;
	assert_int_equal(expiry_open(&h, address, &options), -EINVAL);
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		assert_int_equal(open_named(&h, "looks",
					    EXPIRY_OPEN_OBSERVE | flags[i]),
				 -EINVAL);
	assert_null(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_the_consumers),
		cmocka_unit_test(calls_wait_between_copies),
		cmocka_unit_test(an_observer_only_looks),
		cmocka_unit_test(options_that_do_not_go_together),
	};

	return run_on_engines("observer", tests,
			      sizeof(tests) / sizeof(*tests));
}
