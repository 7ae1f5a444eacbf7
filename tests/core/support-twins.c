// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Twins: see twins.h. All requests to struct timers, with pages that leave and
 * return, or fail to.
 */
#include <stdio.h>
#include <stdlib.h>

#include "twins-check.h"

#define KEYS		40U	/* ids that clients of a keyed queue use most */
#define KEYS_RARE	600U	/* all ids that they use */
#define BATCH		16U
#define DELIVER_MAX	12U
#define STORM_MAX	160U	/* in one batch: more than are prefetched together */

u64 twins_chance(struct twins *twins, u64 n)
{
	u32 i, width = n <= 1U << 8 ? 1 : n <= 1U << 16 ? 2 : 8;
	u64 number = 0;

	if (!twins->data)
		return test_below(&twins->random, n);
	for (i = 0; i < width && twins->data < twins->data_end; i++)
		number = number << 8 | *twins->data++;
	return number % n;
}

static bool is_keyed(const struct twins *twins)
{
	return twins->queue.timers.mode & EXPIRY_MODE_KEYED;
}

static u64 key(u64 nr)
{
	return (1 + nr) * 0x9e3779b97f4a7c15ULL;
}

static u64 any_id(struct twins *twins)
{
	if (twins_chance(twins, 40) == 0)
		return twins_chance(twins, 2) ? test_random(&twins->random) : 0;
	if (is_keyed(twins))
		return key(twins_chance(twins, twins_chance(twins, 8) ?
					KEYS : KEYS_RARE));
	return twins->old[twins_chance(twins, TWINS_OLD_IDS)];
}

/* Returns a deadline, mostly around now; sometimes an end of time. */
static u64 any_deadline(struct twins *twins, u8 flags)
{
	switch (twins_chance(twins, 24)) {
	case 0:
		return 0;
	case 1:
		return EXPIRY_NEVER;
	case 2:
		return EXPIRY_NEVER - twins_chance(twins, 2 * twins->now);
	case 3:
		return twins_chance(twins, 100 * MILLISECOND);
	}
	if (flags & EXPIRY_F_RELATIVE)
		return twins_chance(twins, 30) * MILLISECOND;
	return twins->now - 5 * MILLISECOND +
	       twins_chance(twins, 40) * MILLISECOND;
}

static u8 any_flags(struct twins *twins, u8 op)
{
	/* timers_deliver() says what may not come while deliveries are held. */
	u8 allowed = twins->horrible.nr_held ? ~EXPIRY_F_REDELIVERED : ~0;
	u8 flags = 0;

	if (twins_chance(twins, 60) == 0)
		return twins_chance(twins, 256) & allowed;
	if (op == EXPIRY_OP_ARM || op == EXPIRY_OP_REFRESH) {
		if (twins_chance(twins, 3) == 0)
			flags |= EXPIRY_F_RELATIVE;
		if (twins_chance(twins, 4) == 0)
			flags |= EXPIRY_F_LATER;
	}
	if (op == EXPIRY_OP_ARM && twins_chance(twins, 8) == 0)
		flags |= EXPIRY_F_NEW;
	if (op == EXPIRY_OP_ARM && twins_chance(twins, 8) == 0)
		flags |= EXPIRY_F_REDELIVERED;
	return flags & allowed;
}

static u8 any_op(struct twins *twins)
{
	static const u8 ops[] = {
		EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_ARM,
		EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_REFRESH,
		EXPIRY_OP_REFRESH, EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL,
		EXPIRY_OP_CANCEL, EXPIRY_OP_ACK, EXPIRY_OP_ACK,
		EXPIRY_OP_QUERY,
	};

	switch (twins_chance(twins, 200)) {
	case 0:
		return EXPIRY_OP_CLEAR;
	case 1:
		return twins_chance(twins, 256);
	}
	return ops[twins_chance(twins, ARRAY_SIZE(ops))];
}

static struct expiry_record any_record(struct twins *twins)
{
	struct expiry_record record = { .op = any_op(twins) };

	record.flags = any_flags(twins, record.op);
	record.status = twins_chance(twins, 100) ? 0 : -1;
	record.period_ms = twins_chance(twins, 4) ? 0 : 1 + twins_chance(twins, 9);
	record.id = any_id(twins);
	if (record.op == EXPIRY_OP_ARM && twins_chance(twins, 50) &&
	    !is_keyed(twins))
		record.id = 0;
	record.deadline_ns = any_deadline(twins, record.flags);
	record.cookie = test_random(&twins->random);
	return record;
}

/* Sometimes all pages are out and one of the first to return fails. */
static bool faults_begin(struct twins *twins)
{
	const int errors[] = { -ENOMEM, -EIO, -EAGAIN };
	struct test_faults *faults = &twins->queue.faults;

	if (!twins->faults || twins_chance(twins, twins->faults))
		return false;
	test_queue_evict_all(&twins->queue);
	faults->fail_in = 1 + twins_chance(twins, 6);
	faults->for_good = twins_chance(twins, 2);
	faults->error = errors[twins_chance(twins, ARRAY_SIZE(errors))];
	return true;
}

static void faults_end(struct twins *twins)
{
	twins->queue.faults.fail_in = 0;
	twins->queue.faults.for_good = false;
}

/* Returns whether missing pages explain an error; -ENOMEM also if faults had
 * kept the index from growing before.
 */
static bool is_fault(const struct twins *twins, int error)
{
	return error == twins->queue.faults.error || error == -ENOMEM;
}

static void check_reply(struct twins *twins,
			const struct expiry_record *request,
			const struct expiry_record *reply)
{
	struct expiry_record expected = *request;
	u64 given = reply->status ? 0 : reply->id;

	horrible_submit(&twins->horrible, &expected, twins->now, given);
	check(twins, !memcmp(&expected, reply, sizeof(expected)),
	      "op %u flags %#x id %#llx deadline %llu period %u: "
	      "status %d id %#llx deadline %llu period %u flags %#x, not "
	      "status %d id %#llx deadline %llu period %u flags %#x",
	      request->op, request->flags, request->id, request->deadline_ns,
	      request->period_ms, reply->status, reply->id, reply->deadline_ns,
	      reply->period_ms, reply->flags, expected.status, expected.id,
	      expected.deadline_ns, expected.period_ms, expected.flags);
	if (reply->op == EXPIRY_OP_ARM && !reply->status)
		twins->old[test_below(&twins->random, TWINS_OLD_IDS)] =
			reply->id;
}

/* Submits up to STORM_MAX records to both. */
static void submit(struct twins *twins, const struct expiry_record *request,
		   u32 n)
{
	struct expiry_record reply[STORM_MAX], unchanged;
	bool faults = faults_begin(twins);
	u32 i, done = 0;

	memcpy(reply, request, n * sizeof(*reply));
	while (done < n) {
		i = done;
		done += timers_submit(&twins->queue.timers, reply + i, n - i,
				      twins->now);
		check(twins, done == n || faults, "%u of %u records",
		      done, n);
		for (; i < done; i++) {
			check(twins, reply[i].status != -EAGAIN,
			      "-EAGAIN in a record that was processed");
			/* Refused for a page: nothing happened, try again. */
			unchanged = request[i];
			unchanged.status = reply[i].status;
			if (faults && reply[i].status &&
			    is_fault(twins, reply[i].status) &&
			    !memcmp(&unchanged, &reply[i],
				    sizeof(unchanged))) {
				twins->horrible.refused++;
				continue;
			}
			check_reply(twins, &request[i], &reply[i]);
		}
		check(twins, done == n ||
		      !memcmp(&request[done], &reply[done],
			      (n - done) * sizeof(*reply)),
		      "records not processed, and changed");
		faults_end(twins);
		faults = false;
	}
}

static void step_submit(struct twins *twins)
{
	u32 i, n = twins_chance(twins, 3) ? 1 : 1 + twins_chance(twins, BATCH);
	struct expiry_record request[BATCH];

	for (i = 0; i < n; i++)
		request[i] = any_record(twins);
	submit(twins, request, n);
}

/* Makes many of a kind: ARMs with increasing deadlines, or the same request for
 * a share of the timers.
 */
static void step_storm(struct twins *twins)
{
	static const u8 ops[] = { EXPIRY_OP_ARM, EXPIRY_OP_ARM,
				  EXPIRY_OP_CANCEL, EXPIRY_OP_REFRESH,
				  EXPIRY_OP_ACK };
	const s64 gaps[] = { 1000, -1000, 0, 7 * MILLISECOND };
	u8 op = ops[twins_chance(twins, ARRAY_SIZE(ops))];
	u64 deadline = twins->now + twins_chance(twins, 40) * MILLISECOND;
	s64 gap = gaps[twins_chance(twins, ARRAY_SIZE(gaps))];
	u32 nr = 1 + twins_chance(twins, STORM_MAX);
	u32 first = twins_chance(twins, KEYS_RARE);
	u32 every = 1 + twins_chance(twins, 4), i;
	struct expiry_record request[STORM_MAX];

	for (i = 0; i < nr; i++) {
		u32 pick = first % KEYS + i * every;

		if (op == EXPIRY_OP_ARM)
			pick = first + i;
		else if (pick >= twins->horrible.nr)
			break;
		request[i] = (struct expiry_record) {
			.op = op,
			.id = op != EXPIRY_OP_ARM ?
			      twins->horrible.timer[pick].id :
			      is_keyed(twins) ? key(pick) : 0,
			.deadline_ns = deadline + i * gap,
			.cookie = i,
		};
	}
	if (i)
		submit(twins, request, i);
}

static void check_deliveries(struct twins *twins,
			     const struct expiry_record *records, int nr,
			     bool hold)
{
	const char *wrong;
	int i;

	for (i = 0; i < nr; i++) {
		wrong = horrible_deliver(&twins->horrible, &records[i],
					 twins->now, hold);
		check(twins, !wrong,
		      "%s: id %#llx deadline %llu count %u flags %#x at %llu",
		      wrong, records[i].id, records[i].deadline_ns,
		      records[i].count, records[i].flags, twins->now);
	}
}

static int deliver(struct twins *twins, struct expiry_record *records,
		   u32 count, bool hold)
{
	struct timers *timers = &twins->queue.timers;
	bool faults = faults_begin(twins);
	int ret;

	ret = timers_deliver(timers, records, count, twins->now, hold);
	faults_end(twins);
	check(twins, ret <= (int)count, "%d of %u delivered", ret, count);
	check(twins, ret >= 0 || (faults && is_fault(twins, ret)),
	      "deliver: error %d", ret);
	check_deliveries(twins, records, ret, hold);
	check(twins, timers_due(timers, twins->now) ||
	      horrible_next_ns(&twins->horrible) > twins->now ||
	      horrible_next_ns(&twins->horrible) == EXPIRY_NEVER,
	      "something is due, and not told");
	return ret < 0 ? 0 : ret;
}

static void step_deliver(struct twins *twins)
{
	struct expiry_record records[DELIVER_MAX];

	deliver(twins, records, twins_chance(twins, DELIVER_MAX + 1), false);
}

/* Acts as a reader whose copy may fail: holds deliveries, then reports which
 * arrived. Meanwhile others go on. The later ones are restored first, so that a
 * timer in both parts is not lost.
 */
static void step_hold(struct twins *twins)
{
	struct expiry_record records[DELIVER_MAX];
	u32 i, nr, reached;
	int ret;

	nr = deliver(twins, records, twins_chance(twins, DELIVER_MAX + 1), true);
	while (twins_chance(twins, 3))
		step_submit(twins);

	reached = twins_chance(twins, 2) ? nr : twins_chance(twins, nr + 1);
	if (faults_begin(twins)) {
		ret = timers_restore(&twins->queue.timers, records + reached,
				     nr - reached);
		faults_end(twins);
		check(twins, !ret || is_fault(twins, ret),
		      "restore: error %d", ret);
	}
	ret = timers_restore(&twins->queue.timers, records + reached,
			     nr - reached);
	check(twins, !ret, "restore: error %d", ret);
	for (i = reached; i < nr; i++)
		horrible_restore(&twins->horrible, &records[i]);
	twins->restored |= reached < nr;

	timers_release(&twins->queue.timers, records, reached);
	for (i = 0; i < reached; i++)
		horrible_release(&twins->horrible, records[i].id);
	horrible_end_held(&twins->horrible);
}

static void step_rewind(struct twins *twins)
{
	u64 cursor = 0;
	u32 calls = 0;
	bool faults = faults_begin(twins);
	int ret;

	do {
		ret = timers_rewind(&twins->queue.timers, &cursor,
				    twins->now);
		check(twins, ret >= 0 || (faults && is_fault(twins, ret)),
		      "rewind: error %d", ret);
		faults = false;
		faults_end(twins);
		check(twins, calls++ < 1000, "rewind has no end");
	} while (ret);
	check(twins, !twins->queue.timers.unacked, "rewound, and unacked");
	horrible_rewind(&twins->horrible, twins->now);
}

static void step_drop_stale(struct twins *twins)
{
	struct timers *timers = &twins->queue.timers;
	u64 next_ns = horrible_next_ns(&twins->horrible);
	bool faults = faults_begin(twins);
	int ret = timers_drop_stale(timers, twins_chance(twins, 20));

	faults_end(twins);
	check(twins, ret == 0 || ret == 1 ||
	      (faults && is_fault(twins, ret)), "drop stale: %d", ret);
	if (ret == 1)
		check(twins, timers_next_ns(timers) == next_ns,
		      "the top is at %llu, not %llu", timers_next_ns(timers),
		      next_ns);
}

void twins_step(struct twins *twins)
{
	u64 kind = twins_chance(twins, 100);

	if (kind < 70)
		step_submit(twins);
	else if (kind < 84)
		step_deliver(twins);
	else if (kind < 90)
		step_hold(twins);
	else if (kind < 93)
		step_rewind(twins);
	else if (kind < 98)
		step_drop_stale(twins);
	else
		step_storm(twins);

	if (twins_chance(twins, 500) == 0)
		twins->now += SECOND;
	else if (twins_chance(twins, 100) == 0 && twins->now > SECOND)
		twins->now -= 20 * MILLISECOND;
	else
		twins->now += twins_chance(twins, 3 * MILLISECOND);
	if (twins->step++ % twins->thorough == 0)
		twins_compare(twins);
	else if (twins->walk)
		check(twins, !timers_validate(&twins->queue.timers),
		      "not valid after a step");
	if (twins->evict) {
		test_queue_trim(&twins->queue);
		test_queue_evict(&twins->queue, twins->evict);
	}
}

void twins_drain(struct twins *twins)
{
	struct expiry_record records[DELIVER_MAX];
	struct horrible *horrible = &twins->horrible;
	u32 i, calls = 0;

	twins->faults = 0;
	for (i = 0; i < horrible->nr; i++) {
		struct expiry_record request = {
			.op = EXPIRY_OP_CANCEL,
			.id = horrible->timer[i].id,
		}, reply = request;

		/* Periodic timers have no end, nor have those that are never
		 * due.
		 */
		if (!horrible->timer[i].armed ||
		    (!horrible->timer[i].period_ms &&
		     horrible->timer[i].deadline != EXPIRY_NEVER))
			continue;
		test_submit(&twins->queue, &reply, twins->now);
		check_reply(twins, &request, &reply);
		i = -1;
	}
	twins->now = EXPIRY_NEVER;
	while (horrible_armed(horrible)) {
		deliver(twins, records, DELIVER_MAX, false);
		check(twins, calls++ < 100000, "draining has no end");
	}
	twins_compare(twins);
	for (i = 0; horrible->nr; i++) {
		struct expiry_record request = {
			.op = EXPIRY_OP_ACK,
			.id = horrible->timer[0].id,
		}, reply = request;

		test_submit(&twins->queue, &reply, twins->now);
		check_reply(twins, &request, &reply);
		check(twins, !reply.status, "ack: %d", reply.status);
	}
	twins_compare(twins);
	test_queue_trim(&twins->queue);
	check(twins, !test_queue_pages(&twins->queue), "pages are left");
}

void twins_init(struct twins *twins, u32 mode, u32 limit, u64 seed)
{
	twins->rows = calloc(limit + 1UL, sizeof(*twins->rows));
	assert_non_null(twins->rows);
	test_queue_init(&twins->queue, mode, limit, seed);
	horrible_init(&twins->horrible, mode, limit);
}

void twins_free(struct twins *twins)
{
	horrible_free(&twins->horrible);
	test_queue_free(&twins->queue);
	free(twins->rows);
}
