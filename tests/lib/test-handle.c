// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A client's guarantees about its handle: lists, counters, batches, credit,
 * names.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support-queue.h"

#define SCANNED	5000

static void scan(void **state)
{
	static struct expiry_record records[SCANNED];
	static unsigned char seen[SCANNED];
	struct expiry *h = open_queue(0);
	struct expiry_record rows[333];
	uint64_t cursor = 0;
	int i, nr, total = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	assert_int_equal(expiry_scan(h, &cursor, rows, 333), 0);
	assert_true(cursor == 0);
	for (i = 0; i < SCANNED; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.flags = EXPIRY_F_RELATIVE,
			.deadline_ns = HOUR + i,
			.cookie = i,
		};
	assert_int_equal(expiry_submit(h, records, SCANNED), SCANNED);
	do {
		nr = expiry_scan(h, &cursor, rows, 333);
		assert_true(nr >= 0 && nr <= 333);
		for (i = 0; i < nr; i++) {
			uint64_t cookie = rows[i].cookie;

			assert_int_equal(rows[i].op, EXPIRY_OP_QUERY);
			assert_true(cookie < SCANNED);
			assert_true(rows[i].id == records[cookie].id);
			assert_true(rows[i].deadline_ns ==
				    records[cookie].deadline_ns);
			assert_int_equal(seen[cookie]++, 0);
		}
		total += nr;
	} while (cursor);
	assert_int_equal(total, SCANNED);
	expiry_close(h);
}

static void counters(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_server_stat server;
	uint64_t id, id2, total = 0;
	struct expiry_record record;
	struct expiry_stat stat;
	int i;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, HOUR, 0, 0, EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_arm(h, &id2, 0, 0, 0, 0), 0);
	take_due(h, &record, 1);
	assert_int_equal(expiry_refresh(h, id, 2 * HOUR, EXPIRY_F_RELATIVE,
					NULL), 0);
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, &server, sizeof(server)), 0);
	assert_int_equal(stat.clock_id, CLOCK_MONOTONIC);
	assert_true(stat.armed == 0 && stat.arms == 2);
	assert_true(stat.refreshes == 1 && stat.cancels == 1);
	assert_true(stat.delivered == 1 && stat.refused == 1);
	assert_true(stat.now_ns <= expiry_now(h));
	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		total += stat.lateness[i];
	assert_true(total + stat.past + stat.held == 1);
	if (on_device())
		assert_int_equal(server.engine, 0);
	else
		assert_true(server.engine && server.connections &&
			    server.consumers == 1);
	expiry_close(h);
}

/* More than the window in one call, while every second one is due at once:
 * nothing is lost, nothing comes twice, and no call blocks for ever.
 */
static void batch_above_the_window(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record *records, got[256];
	struct expiry_info info;
	unsigned char *seen;
	uint32_t i, count;
	int nr, left;

	(void)state;
	expiry_info(h, &info, sizeof(info));
	count = 2 * info.window + 17;
	records = calloc(count, sizeof(*records));
	seen = calloc(count, 1);
	assert_non_null(records);
	assert_non_null(seen);
	for (i = 0; i < count; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.deadline_ns = i % 2 ? i : EXPIRY_NEVER,
			.cookie = i,
		};
	assert_int_equal(expiry_submit(h, records, count), count);
	for (i = 0; i < count; i++) {
		assert_int_equal(records[i].status, 0);
		assert_true(records[i].cookie == i && records[i].id);
	}
	for (left = count / 2; left; left -= nr) {
		nr = expiry_receive(h, got, left < 256 ? left : 256, WAIT_MS);
		assert_true(nr > 0);
		for (i = 0; i < (uint32_t)nr; i++) {
			assert_true(got[i].cookie % 2 && got[i].cookie < count);
			assert_int_equal(seen[got[i].cookie]++, 0);
		}
	}
	assert_nothing(h);
	free(records);
	free(seen);
	expiry_close(h);
}

#define POSTED	20000

/* The same without waiting, by poll(): replies in order, each timer once. */
static void posted(void **state)
{
	static struct expiry_record records[POSTED];
	static unsigned char seen[POSTED];
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	int sent = 0, replies = 0, expired = 0, i, nr;
	struct expiry_record got[100];
	struct pollfd pfd;

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < POSTED; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.deadline_ns = 1 + i,
			.cookie = i,
		};
	while (replies < POSTED || expired < POSTED) {
		nr = expiry_post(h, records + sent,
				 POSTED - sent < 700 ? POSTED - sent : 700);
		assert_true(nr >= 0);
		sent += nr;
		nr = expiry_next(h, got, 100);
		assert_true(nr >= 0);
		for (i = 0; i < nr; i++) {
			assert_int_equal(got[i].status, 0);
			if (got[i].op == EXPIRY_OP_ARM) {
				assert_int_equal(got[i].cookie, replies++);
				continue;
			}
			assert_int_equal(got[i].op, EXPIRY_OP_EXPIRED);
			assert_true(got[i].cookie < POSTED);
			assert_int_equal(seen[got[i].cookie]++, 0);
			expired++;
		}
		if (nr || expiry_pending(h) || sent < POSTED)
			continue;
		pfd.fd = expiry_fd(h);
		pfd.events = expiry_events(h);
		assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	}
	assert_nothing(h);
	expiry_close(h);
}

/* The fd reports an expiration without any call before. */
static void pollable(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record;
	struct pollfd pfd = { .fd = expiry_fd(h) };
	uint64_t id;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, 20 * MS, 0, 1,
				    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_flush(h), 0);
	while (!expiry_next(h, &record, 1)) {
		pfd.events = expiry_events(h);
		assert_int_equal(pfd.events, POLLIN);
		assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	}
	assert_true(record.id == id);
	expiry_close(h);
}

static void credit(void **state)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL,
		.clock_id = CLOCK_MONOTONIC,
		.credit = 5,
	};
	struct expiry *h = open_options(&options);
	struct expiry_record records[10];
	struct expiry_stat stat;
	uint64_t id;
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		assert_int_equal(expiry_arm(h, &id, 1 + i, 0, i, 0), 0);
	assert_nothing(h);
	assert_int_equal(expiry_credit(h, 6), -ENOBUFS);
	assert_int_equal(expiry_credit(h, 3), 0);
	take_due(h, records, 3);
	assert_true(records[2].cookie == 2);
	assert_nothing(h);
	/* An expiration not requested yet can still be cancelled. */
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 6);
	assert_int_equal(expiry_credit(h, 5), 0);
	take_due(h, records, 5);
	assert_true(records[4].cookie == 7);
	expiry_close(h);
}

/* Each bad record is refused alone, and returns otherwise unchanged. */
static void bad_records(void **state)
{
	static const struct {
		struct expiry_record record;
		int status;
	} cases[] = {
		{ { .op = 0 }, -EOPNOTSUPP },
		{ { .op = 7 }, -EOPNOTSUPP },
		{ { .op = 63 }, -EOPNOTSUPP },
		{ { .op = EXPIRY_OP_ARM, .flags = 0x80 }, -EINVAL },
		{ { .op = EXPIRY_OP_ARM, .flags = EXPIRY_F_REDELIVERED },
		  -EINVAL },
		{ { .op = EXPIRY_OP_ARM, .flags = EXPIRY_F_NEW }, -EINVAL },
		{ { .op = EXPIRY_OP_ARM, .status = 1 }, -EINVAL },
		{ { .op = EXPIRY_OP_ARM, .status = -1 }, -EINVAL },
		{ { .op = EXPIRY_OP_ARM, .id = 1 }, -EINVAL },
		{ { .op = EXPIRY_OP_REFRESH }, -EINVAL },
		{ { .op = EXPIRY_OP_REFRESH, .id = 1, .flags = EXPIRY_F_NEW },
		  -EINVAL },
		{ { .op = EXPIRY_OP_REFRESH, .id = UINT64_MAX }, -ENOENT },
		{ { .op = EXPIRY_OP_CANCEL, .id = 1ULL << 63 }, -ENOENT },
		{ { .op = EXPIRY_OP_CANCEL, .id = 1,
		    .flags = EXPIRY_F_RELATIVE }, -EINVAL },
		{ { .op = EXPIRY_OP_QUERY, .id = 0xffffffff }, -ENOENT },
		{ { .op = EXPIRY_OP_ACK, .id = 1 }, -EINVAL },
	};
	static const uint8_t others[] = {
		EXPIRY_OP_EXPIRED, EXPIRY_OP_CLOCK_SET, EXPIRY_OP_HELLO,
		EXPIRY_OP_CREDIT, EXPIRY_OP_QUEUES, UINT8_MAX
	};
	enum { CASES = sizeof(cases) / sizeof(*cases) };
	struct expiry_record records[CASES + 2], sent;
	struct expiry *h = open_queue(0);
	int i;

	(void)state;
	memset(records, 0, sizeof(records));
	for (i = 0; i < CASES; i++)
		records[1 + i] = cases[i].record;
	for (i = 0; i <= CASES + 1; i += CASES + 1) {
		records[i].op = EXPIRY_OP_ARM;
		records[i].deadline_ns = EXPIRY_NEVER;
	}
	assert_int_equal(expiry_submit(h, records, CASES + 2), CASES + 2);
	assert_int_equal(records[0].status, 0);
	assert_int_equal(records[CASES + 1].status, 0);
	for (i = 0; i < CASES; i++) {
		if (records[1 + i].status != cases[i].status)
			fail_msg("case %d: status %d", i,
				 records[1 + i].status);
		sent = cases[i].record;
		sent.status = records[1 + i].status;
		assert_memory_equal(&records[1 + i], &sent, sizeof(sent));
	}
	/* The calls for one timer take no flag that does not fit a record. */
	assert_int_equal(expiry_refresh(h, records[0].id, 0, 0x100, NULL),
			 -EINVAL);
	assert_int_equal(expiry_refresh(h, records[0].id, 0, 0x40, NULL),
			 -EINVAL);
	assert_int_equal(expiry_query(h, records[0].id, NULL), 0);
	/* Requests that look like an expiration, or that end the connection,
	 * are not even sent.
	 */
	for (i = 0; i < (int)(sizeof(others) / sizeof(others[0])); i++) {
		sent = (struct expiry_record) { .op = others[i] };
		assert_int_equal(expiry_submit(h, &sent, 1), -EINVAL);
		assert_int_equal(expiry_post(h, &sent, 1), -EINVAL);
	}
	assert_int_equal(expiry_query(h, records[0].id, NULL), 0);
	expiry_close(h);
}

/* Named queues: two producers, one consumer, one clock, one kind. */
static void named(void **state)
{
	struct expiry *producer = NULL, *consumer = NULL, *other = NULL;
	struct expiry_record record;
	struct expiry_info info;
	uint64_t id;

	(void)state;
	if (on_device()) {
		assert_int_equal(open_named(&other, "named", 0), -EOPNOTSUPP);
		return;
	}
	assert_int_equal(open_named(&producer, "named", 0), 0);
	assert_int_equal(open_named(&consumer, "named", EXPIRY_OPEN_CONSUME),
			 0);
	assert_int_equal(open_named(&other, "named", EXPIRY_OPEN_CONSUME),
			 -EBUSY);
	assert_int_equal(open_named(&other, "named", EXPIRY_OPEN_KEYED),
			 -EINVAL);
	assert_int_equal(open_named(&other, "named", EXPIRY_OPEN_ACK), -EINVAL);
	assert_int_equal(expiry_arm(producer, &id, 1, 0, 5, 0), 0);
	take_due(consumer, &record, 1);
	assert_true(record.id == id && record.cookie == 5);
	assert_int_equal(expiry_drop(producer), -EBUSY);

	/* The queue outlives its connections. */
	assert_int_equal(expiry_arm(producer, &id, EXPIRY_NEVER, 0, 6, 0), 0);
	expiry_close(producer);
	expiry_close(consumer);
	assert_int_equal(open_named(&other, "named", 0), 0);
	expiry_info(other, &info, sizeof(info));
	assert_true(info.timers == 1);
	assert_int_equal(expiry_query(other, id, &record), 0);
	assert_true(record.cookie == 6);
	/* Those who left may not be gone yet. */
	while (expiry_drop(other) == -EBUSY)
		;
	assert_int_equal(expiry_query(other, id, &record), -ENOTCONN);
	expiry_close(other);

	assert_int_equal(open_named(&other, "named", EXPIRY_OPEN_KEYED), 0);
	expiry_info(other, &info, sizeof(info));
	assert_true(info.timers == 0);
	assert_int_equal(expiry_drop(other), 0);
	expiry_close(other);
}

static void anonymous_is_nobody_elses(void **state)
{
	struct expiry *h = open_queue(0), *other = open_queue(0);
	uint64_t id;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, EXPIRY_NEVER, 0, 0, 0), 0);
	assert_int_equal(expiry_query(other, id, NULL), -ENOENT);
	assert_int_equal(expiry_drop(h), on_device() ? -EOPNOTSUPP : -EINVAL);
	assert_int_equal(expiry_query(h, id, NULL), 0);
	expiry_close(h);
	expiry_close(other);
}

/* Counts how often the queue @name is listed, @at_once rows at a time. */
static int times_listed(struct expiry *h, const char *name, uint32_t at_once,
			struct expiry_queue *found)
{
	struct expiry_queue rows[8];
	uint64_t cursor = 0;
	int i, nr, times = 0;

	do {
		nr = expiry_queues(h, &cursor, rows, at_once);
		assert_true(nr >= 0 && nr <= (int)at_once);
		for (i = 0; i < nr; i++) {
			if (strcmp(rows[i].name, name))
				continue;
			*found = rows[i];
			times++;
		}
	} while (cursor);
	return times;
}

static void queues(void **state)
{
	static const char longest[] = "a.name-of-24_characters.";
	struct expiry *h, *other = open_queue(0);
	struct expiry_queue row = { 0 };
	uint64_t id, cursor = 0;

	(void)state;
	if (on_device()) {
		assert_int_equal(expiry_queues(other, &cursor, &row, 1),
				 -EOPNOTSUPP);
		expiry_close(other);
		return;
	}
	assert_int_equal(expiry_queues(other, &cursor, &row, 0), -EINVAL);
	assert_int_equal(times_listed(other, longest, 8, &row), 0);
	assert_int_equal(open_named(&h, longest, EXPIRY_OPEN_CONSUME), 0);
	assert_int_equal(expiry_arm(h, &id, EXPIRY_NEVER, 0, 0, 0), 0);
	assert_int_equal(times_listed(other, longest, 1, &row), 1);
	assert_true(row.stat.armed == 1 && row.stat.arms == 1);
	assert_int_equal(row.stat.clock_id, CLOCK_MONOTONIC);
	assert_true(row.daemon.uid == getuid() && row.daemon.number);
	assert_int_equal(row.daemon.consumer_pid, getpid());
	assert_true(row.daemon.connections == 1 && row.daemon.consumers == 1);
	/* Listing has not attached to it. */
	assert_int_equal(expiry_drop(h), 0);
	assert_int_equal(times_listed(other, longest, 8, &row), 0);
	expiry_close(h);
	expiry_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan),
		cmocka_unit_test(counters),
		cmocka_unit_test(batch_above_the_window),
		cmocka_unit_test(posted),
		cmocka_unit_test(pollable),
		cmocka_unit_test(credit),
		cmocka_unit_test(bad_records),
		cmocka_unit_test(named),
		cmocka_unit_test(anonymous_is_nobody_elses),
		cmocka_unit_test(queues),
	};

	return run_on_engines("handle", tests,
			      sizeof(tests) / sizeof(*tests));
}
