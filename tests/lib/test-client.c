// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a client is owed, on whichever engine is behind $EXPIRY_ADDRESS: a
 * daemon's socket or the device. Without it, a daemon of the test's own with the
 * engine $EXPIRY_ENGINE; if that is the kernel, the device itself as well.
 *
 * Nothing here waits for time to pass: only for what must come, for as long as
 * an emulated machine may need.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <expiry/expiry.h>
#include "support.h"

#define WAIT_MS		100000
#define MS		1000000ULL
#define HOUR		(3600 * 1000 * MS)

static const char *address;

static struct expiry *open_options(const struct expiry_options *options)
{
	struct expiry *h = NULL;
	int ret = expiry_open(&h, address, options);

	if (ret)
		fail_msg("%s: %s", address, strerror(-ret));
	return h;
}

/* A queue of our own. */
static struct expiry *open_queue(uint32_t flags)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.clock_id = CLOCK_MONOTONIC,
	};

	return open_options(&options);
}

/* A named queue, different in every test. */
static int open_named(struct expiry **h, const char *name, uint32_t flags)
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

static bool on_device(void)
{
	return strncmp(address, "device:", 7) == 0;
}

/* Take exactly @nr expirations, none of them early. */
static void take(struct expiry *h, struct expiry_record *records, int nr)
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

/* Nothing is there, and nothing was on its way: the query's reply would have
 * come behind it.
 */
static void assert_nothing(struct expiry *h)
{
	struct expiry_record record;

	assert_int_equal(expiry_query(h, 0xffffffff00000001, NULL), -ENOENT);
	assert_int_equal(expiry_next(h, &record, 1), 0);
}

static void arm_refresh_query_cancel(void **state)
{
	struct expiry *h = open_queue(0);
	uint64_t now = expiry_now(h), id = 77, deadline = 0;
	struct expiry_record timer;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 4711, 0), 0);
	assert_true(id != 77 && id != 0);
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_true(timer.id == id && timer.deadline_ns == now + HOUR);
	assert_true(timer.cookie == 4711 && timer.period_ms == 0);

	/* later, earlier, and not earlier */
	assert_int_equal(expiry_refresh(h, id, now + 3 * HOUR, 0, &deadline), 0);
	assert_true(deadline == now + 3 * HOUR);
	assert_int_equal(expiry_refresh(h, id, now + 2 * HOUR, 0, &deadline), 0);
	assert_true(deadline == now + 2 * HOUR);
	assert_int_equal(expiry_refresh(h, id, now + HOUR, EXPIRY_F_LATER,
					&deadline), 0);
	assert_true(deadline == now + 2 * HOUR);
	assert_int_equal(expiry_refresh(h, id, 5 * HOUR, EXPIRY_F_RELATIVE,
					&deadline), 0);
	assert_true(deadline >= now + 5 * HOUR &&
		    deadline <= expiry_now(h) + 5 * HOUR);

	assert_int_equal(expiry_cancel(h, id, &timer), 0);
	assert_true(timer.deadline_ns == deadline && timer.cookie == 4711);
	timer.cookie = 1;
	assert_int_equal(expiry_cancel(h, id, &timer), -ENOENT);
	assert_true(timer.cookie == 1);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_refresh(h, id, now + HOUR, 0, NULL), -ENOENT);
	expiry_close(h);
}

/* An id whose timer is gone never means the one that has its place. */
static void stale_ids(void **state)
{
	struct expiry *h = open_queue(0);
	uint64_t first, second;

	(void)state;
	assert_int_equal(expiry_arm(h, &first, HOUR, 0, 1,
				    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_cancel(h, first, NULL), 0);
	assert_int_equal(expiry_arm(h, &second, HOUR, 0, 2,
				    EXPIRY_F_RELATIVE), 0);
	assert_true(first != second);
	assert_int_equal(expiry_cancel(h, first, NULL), -ENOENT);
	assert_int_equal(expiry_query(h, second, NULL), 0);
	expiry_close(h);
}

#define ORDERED	2000

static void delivered_in_order(void **state)
{
	static struct expiry_record records[ORDERED];
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL);
	uint64_t now = expiry_now(h), sum = 0;
	unsigned int seed = 1;
	int i;

	(void)state;
	for (i = 0; i < ORDERED; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.deadline_ns = now - 50 * MS + rand_r(&seed) % (100 * MS),
			.cookie = i,
		};
	assert_int_equal(expiry_submit(h, records, ORDERED), ORDERED);
	for (i = 0; i < ORDERED; i++)
		assert_int_equal(records[i].status, 0);
	memset(records, 0, sizeof(records));

	/* Only now may they come. */
	for (i = 0; i < ORDERED; i += 1000) {
		assert_int_equal(expiry_credit(h, 1000), 0);
		take(h, records + i, 1000);
	}
	for (i = 0; i < ORDERED; i++) {
		sum += records[i].cookie;
		if (i)
			assert_true(records[i - 1].deadline_ns <=
				    records[i].deadline_ns);
	}
	assert_true(sum == (uint64_t)ORDERED * (ORDERED - 1) / 2);
	assert_nothing(h);
	expiry_close(h);
}

static void every_clock(void **state)
{
	static const uint32_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME
	};
	struct expiry_record record;
	uint64_t id, deadline;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		const struct expiry_options options = {
			.size = sizeof(options),
			.flags = EXPIRY_OPEN_CONSUME,
			.clock_id = clocks[i],
		};
		struct expiry *h = open_options(&options);

		deadline = expiry_now(h) + 5 * MS;
		assert_int_equal(expiry_arm(h, &id, deadline, 0, i, 0), 0);
		take(h, &record, 1);
		assert_true(record.deadline_ns == deadline);
		assert_true(record.id == id && record.cookie == i);
		assert_int_equal(record.flags, 0);
		assert_int_equal(record.status, 0);
		assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
		expiry_close(h);
	}
}

static void relative_and_past(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.flags = EXPIRY_F_RELATIVE,
		.deadline_ns = MS,
		.cookie = 1,
	};
	uint64_t before = expiry_now(h), id;

	(void)state;
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(record.status, 0);
	assert_true(record.deadline_ns >= before + MS);
	assert_true(record.deadline_ns <= expiry_now(h) + MS);
	take(h, &record, 1);

	assert_int_equal(expiry_arm(h, &id, 0, 0, 2, 0), 0);
	take(h, &record, 1);
	assert_true(record.cookie == 2 && record.deadline_ns == 0);
	expiry_close(h);
}

static void never(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record;
	struct expiry_stat stat;
	uint64_t id, other;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, EXPIRY_NEVER, 0, 1, 0), 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1 && stat.next_ns == EXPIRY_NEVER);
	assert_int_equal(expiry_arm(h, &other, 0, 0, 2, 0), 0);
	take(h, &record, 1);
	assert_true(record.cookie == 2);
	assert_nothing(h);
	/* It can still be called. */
	assert_int_equal(expiry_refresh(h, id, 1, 0, NULL), 0);
	take(h, &record, 1);
	assert_true(record.cookie == 1);
	expiry_close(h);
}

static void refreshed_to_now(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record;
	uint64_t near, far;

	(void)state;
	assert_int_equal(expiry_arm(h, &far, 2 * HOUR, 0, 1,
				    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_arm(h, &near, HOUR, 0, 2,
				    EXPIRY_F_RELATIVE), 0);
	assert_nothing(h);
	assert_int_equal(expiry_refresh(h, far, MS, EXPIRY_F_RELATIVE, NULL), 0);
	take(h, &record, 1);
	assert_true(record.id == far);
	assert_nothing(h);
	expiry_close(h);
}

static void periodic(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record records[5], timer;
	uint64_t id, start = expiry_now(h);
	int i;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, start, 20, 9, 0), 0);
	take(h, records, 5);
	for (i = 0; i < 5; i++) {
		assert_true(records[i].id == id && records[i].cookie == 9);
		assert_int_equal(records[i].period_ms, 20);
		assert_true(records[i].deadline_ns == start + i * 20 * MS);
	}
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_int_equal(timer.period_ms, 20);
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	expiry_close(h);
}

static void keyed(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_KEYED | EXPIRY_OPEN_CONSUME);
	uint64_t id = UINT64_MAX, zero = 0, now = expiry_now(h);
	struct expiry_record timer;
	struct expiry_stat stat;

	(void)state;
	assert_int_equal(expiry_arm(h, &zero, now, 0, 0, 0), -EINVAL);
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 1, EXPIRY_F_NEW), 0);
	assert_true(id == UINT64_MAX);
	assert_int_equal(expiry_arm(h, &id, now, 0, 2, EXPIRY_F_NEW), -EEXIST);

	/* in place: one timer, with what came last */
	assert_int_equal(expiry_arm(h, &id, now + 2 * HOUR, 7, 3, 0), 0);
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_true(timer.deadline_ns == now + 2 * HOUR && timer.cookie == 3);
	assert_int_equal(timer.period_ms, 7);
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 4, EXPIRY_F_LATER),
			 0);
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_true(timer.deadline_ns == now + 2 * HOUR);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1);
	assert_int_equal(stat.mode, EXPIRY_MODE_KEYED);

	assert_int_equal(expiry_arm(h, &id, now, 0, 5, 0), 0);
	take(h, &timer, 1);
	assert_true(timer.id == UINT64_MAX && timer.cookie == 5);
	assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
	/* gone, so it is new again */
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 6, EXPIRY_F_NEW), 0);
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	expiry_close(h);
}

static void acknowledged(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_ACK | EXPIRY_OPEN_CONSUME);
	struct expiry_record records[2];
	struct expiry_stat stat;
	uint64_t id, other;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, 0, 0, 1, 0), 0);
	assert_int_equal(expiry_arm(h, &other, HOUR, 0, 2,
				    EXPIRY_F_RELATIVE), 0);
	take(h, records, 1);
	assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1 && stat.unacked == 1);
	assert_int_equal(expiry_ack(h, other), -ENOENT);
	assert_int_equal(expiry_ack(h, id), 0);
	assert_int_equal(expiry_ack(h, id), -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1 && stat.unacked == 0);
	expiry_close(h);
}

/* What was read and not acknowledged comes again, marked: on a socket when the
 * consumer comes back, on a device when it rewinds.
 */
static void delivered_again(void **state)
{
	const uint32_t flags = EXPIRY_OPEN_ACK | EXPIRY_OPEN_CONSUME;
	struct expiry_record records[3];
	struct expiry *h = NULL;
	uint64_t ids[3];
	int i;

	(void)state;
	if (on_device())
		h = open_queue(flags);
	else
		assert_int_equal(open_named(&h, "again", flags), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(expiry_arm(h, &ids[i], 1 + i, 0, i, 0), 0);
	take(h, records, 3);
	assert_int_equal(expiry_ack(h, ids[1]), 0);

	if (on_device()) {
		assert_int_equal(expiry_rewind(h), 0);
	} else {
		assert_int_equal(expiry_rewind(h), -EOPNOTSUPP);
		expiry_close(h);
		/* The daemon may need a turn to see that we left. */
		do
			i = open_named(&h, "again", flags);
		while (i == -EBUSY);
		assert_int_equal(i, 0);
	}
	take(h, records, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(records[i].flags, EXPIRY_F_REDELIVERED);
		assert_true(records[i].id == ids[i * 2]);
		assert_int_equal(expiry_ack(h, records[i].id), 0);
	}
	assert_nothing(h);
	if (!on_device())
		assert_int_equal(expiry_drop(h), 0);
	expiry_close(h);
}

static void clear(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	uint64_t id, count = 0;
	struct expiry_stat stat;
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(expiry_arm(h, &id, HOUR, 0, i,
					    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_true(count == 100);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 0);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_true(count == 0);
	expiry_close(h);
}

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
	take(h, &record, 1);
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
	assert_true(total == 1);
	if (on_device())
		assert_int_equal(server.engine, 0);
	else
		assert_true(server.engine && server.connections &&
			    server.consumers == 1);
	expiry_close(h);
}

/* More than the window in one call, while every second of them is due at once:
 * nothing is lost, nothing comes twice, and nobody waits for ever.
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

/* The fd tells of an expiration without any call before. */
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
	take(h, records, 3);
	assert_true(records[2].cookie == 2);
	assert_nothing(h);
	/* What was not asked for can still be cancelled. */
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 6);
	assert_int_equal(expiry_credit(h, 5), 0);
	take(h, records, 5);
	assert_true(records[4].cookie == 7);
	expiry_close(h);
}

/* Each bad record is refused alone, with the rest as it was sent. */
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
	take(consumer, &record, 1);
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

static int start(void **state)
{
	(void)state;
	address = server_start();
	return address ? 0 : -1;
}

static int stop(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arm_refresh_query_cancel),
		cmocka_unit_test(stale_ids),
		cmocka_unit_test(delivered_in_order),
		cmocka_unit_test(every_clock),
		cmocka_unit_test(relative_and_past),
		cmocka_unit_test(never),
		cmocka_unit_test(refreshed_to_now),
		cmocka_unit_test(periodic),
		cmocka_unit_test(keyed),
		cmocka_unit_test(acknowledged),
		cmocka_unit_test(delivered_again),
		cmocka_unit_test(clear),
		cmocka_unit_test(scan),
		cmocka_unit_test(counters),
		cmocka_unit_test(batch_above_the_window),
		cmocka_unit_test(posted),
		cmocka_unit_test(pollable),
		cmocka_unit_test(credit),
		cmocka_unit_test(bad_records),
		cmocka_unit_test(named),
		cmocka_unit_test(anonymous_is_nobody_elses),
	};

	int failed;

	failed = cmocka_run_group_tests_name("client", tests, start, stop);
	if (!getenv("EXPIRY_ADDRESS") && !strcmp(server_engine(), "kernel"))
		failed += cmocka_run_group_tests_name("client on the device",
						      tests, start_device, NULL);
	return failed;
}
