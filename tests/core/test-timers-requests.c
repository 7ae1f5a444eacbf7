// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every request with every flag and every kind of id: the reply, the errno, and
 * that a refused record changes only its status and nothing in the queue.
 */
#include "horrible.h"
#include "support.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
#define NOW	(1000 * SECOND)
#define ROWS	16

/* Names of ids for the tables below. */
enum which {
	ZERO,
	ARMED,		/* armed, deadline NOW + SECOND, cookie 11 */
	PERIODIC,	/* likewise, cookie 12, every 500 ms */
	UNACKED,	/* delivered (acknowledging queues), cookie 13 */
	CANCELLED,
	REUSED,		/* was a timer; ARMED has its slot on a plain queue */
	BEYOND,		/* no such slot was ever used */
	NO_SLOT,	/* a generation, slot number 0 */
	ONES,
	NEVER_GIVEN,
	WHICH_NR,
};

/**
 * struct subject - a queue with a timer of each kind, and its twin
 */
struct subject {
	struct test_queue queue;
	struct horrible horrible;
	u64 ids[WHICH_NR];
};

static u64 subject_arm(struct subject *subject, u64 id, u64 deadline_ns,
		       u64 cookie, u32 period_ms)
{
	struct expiry_record request = {
		.op = EXPIRY_OP_ARM,
		.period_ms = period_ms,
		.id = subject->queue.config.mode & KEYED ? id : 0,
		.deadline_ns = deadline_ns,
		.cookie = cookie,
	}, reply = request;

	assert_int_equal(test_submit(&subject->queue, &reply, NOW), 0);
	horrible_submit(&subject->horrible, &request, NOW, reply.id);
	return reply.id;
}

static void subject_cancel(struct subject *subject, u64 id)
{
	struct expiry_record request = { .op = EXPIRY_OP_CANCEL, .id = id };
	struct expiry_record reply = request;

	assert_int_equal(test_submit(&subject->queue, &reply, NOW), 0);
	horrible_submit(&subject->horrible, &request, NOW, 0);
}

static void subject_init(struct subject *subject, u32 mode)
{
	struct expiry_record record;
	u64 *ids = subject->ids;

	test_queue_init(&subject->queue, mode, 5, test_seed);
	horrible_init(&subject->horrible, mode, 5);
	ids[ZERO] = 0;
	ids[UNACKED] = subject_arm(subject, 103, NOW, 13, 0);
	assert_int_equal(test_deliver(&subject->queue, &record, 1, NOW), 1);
	assert_null(horrible_deliver(&subject->horrible, &record, NOW, false));
	ids[PERIODIC] = subject_arm(subject, 102, NOW + SECOND, 12, 500);
	ids[REUSED] = subject_arm(subject, 105, NOW + SECOND, 15, 0);
	ids[CANCELLED] = subject_arm(subject, 104, NOW + SECOND, 14, 0);
	subject_cancel(subject, ids[CANCELLED]);
	subject_cancel(subject, ids[REUSED]);
	ids[ARMED] = subject_arm(subject, 101, NOW + SECOND, 11, 0);
	ids[BEYOND] = 1ULL << 32 | 77777;
	ids[NO_SLOT] = 1ULL << 32;
	ids[ONES] = ~0ULL;
	ids[NEVER_GIVEN] = (u64)-3 << 32 | (u32)ids[ARMED];
}

static void subject_free(struct subject *subject)
{
	horrible_free(&subject->horrible);
	test_queue_free(&subject->queue);
}

static void unchanged(struct subject *subject, const struct expiry_record *rows,
		      u32 nr)
{
	struct expiry_record now[ROWS];

	assert_int_equal(test_list(&subject->queue, now, ROWS), nr);
	assert_memory_equal(rows, now, nr * sizeof(*now));
}

struct refusal {
	u32 mode;
	u8 op;
	u8 flags;
	short status;
	enum which id;
	int error;
};

#define RELATIVE	EXPIRY_F_RELATIVE
#define REDELIVERED	EXPIRY_F_REDELIVERED
#define NEW		EXPIRY_F_NEW
#define LATER		EXPIRY_F_LATER

static const struct refusal refusals[] = {
	/* Ops: other fields are ignored. */
	{ 0, 0, 0, 0, ZERO, -EOPNOTSUPP },
	{ 0, 7, 0, 0, ARMED, -EOPNOTSUPP },
	{ 0, 7, 0xff, -1, ARMED, -EOPNOTSUPP },
	{ 0, EXPIRY_OP_EXPIRED, 0, 0, ARMED, -EOPNOTSUPP },
	{ 0, EXPIRY_OP_CLOCK_SET, 0, 0, ARMED, -EOPNOTSUPP },
	{ 0, 64, 0, 0, ZERO, -EOPNOTSUPP },
	{ 0, 255, 0, 0, ZERO, -EOPNOTSUPP },

	/* Status: an answer is no request. */
	{ 0, EXPIRY_OP_ARM, 0, 1, ZERO, -EINVAL },
	{ KEYED, EXPIRY_OP_ARM, 0, -EINVAL, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_REFRESH, 0, -1, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_CANCEL, 0, 1, ARMED, -EINVAL },
	{ ACK, EXPIRY_OP_ACK, 0, -2, UNACKED, -EINVAL },
	{ 0, EXPIRY_OP_QUERY, 0, -32768, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_CLEAR, 0, 1, ZERO, -EINVAL },

	/* Flags: unknown, of another direction, of another op. */
	{ 0, EXPIRY_OP_ARM, 0x10, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_ARM, 0x80, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_ARM, REDELIVERED, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_ARM, NEW, 0, ZERO, -EINVAL },
	{ KEYED, EXPIRY_OP_ARM, REDELIVERED, 0, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_REFRESH, NEW, 0, ARMED, -EINVAL },
	{ KEYED, EXPIRY_OP_REFRESH, NEW, 0, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_REFRESH, 0x20, 0, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_CANCEL, RELATIVE, 0, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_CANCEL, LATER, 0, ARMED, -EINVAL },
	{ ACK, EXPIRY_OP_ACK, RELATIVE, 0, UNACKED, -EINVAL },
	{ 0, EXPIRY_OP_QUERY, RELATIVE, 0, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_CLEAR, RELATIVE, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_CLEAR, 0x40, 0, ZERO, -EINVAL },

	/* Ids: who gives them, and a missing one. */
	{ 0, EXPIRY_OP_ARM, 0, 0, ARMED, -EINVAL },
	{ 0, EXPIRY_OP_ARM, 0, 0, NEVER_GIVEN, -EINVAL },
	{ KEYED, EXPIRY_OP_ARM, 0, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_REFRESH, 0, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_CANCEL, 0, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_QUERY, 0, 0, ZERO, -EINVAL },
	{ KEYED, EXPIRY_OP_CANCEL, 0, 0, ZERO, -EINVAL },
	{ ACK, EXPIRY_OP_ACK, 0, 0, ZERO, -EINVAL },
	{ 0, EXPIRY_OP_ACK, 0, 0, ARMED, -EINVAL },
	{ KEYED, EXPIRY_OP_ACK, 0, 0, ARMED, -EINVAL },
	{ KEYED, EXPIRY_OP_ARM, NEW, 0, ARMED, -EEXIST },
	{ KEYED | ACK, EXPIRY_OP_ARM, NEW, 0, PERIODIC, -EEXIST },

	/* Ids without a timer. */
	{ 0, EXPIRY_OP_REFRESH, 0, 0, CANCELLED, -ENOENT },
	{ 0, EXPIRY_OP_REFRESH, 0, 0, REUSED, -ENOENT },
	{ 0, EXPIRY_OP_CANCEL, 0, 0, CANCELLED, -ENOENT },
	{ 0, EXPIRY_OP_CANCEL, 0, 0, REUSED, -ENOENT },
	{ 0, EXPIRY_OP_CANCEL, 0, 0, UNACKED, -ENOENT },
	{ 0, EXPIRY_OP_QUERY, 0, 0, REUSED, -ENOENT },
	{ 0, EXPIRY_OP_QUERY, 0, 0, BEYOND, -ENOENT },
	{ 0, EXPIRY_OP_QUERY, 0, 0, NO_SLOT, -ENOENT },
	{ 0, EXPIRY_OP_QUERY, 0, 0, ONES, -ENOENT },
	{ 0, EXPIRY_OP_CANCEL, 0, 0, NEVER_GIVEN, -ENOENT },
	{ KEYED, EXPIRY_OP_CANCEL, 0, 0, CANCELLED, -ENOENT },
	{ KEYED, EXPIRY_OP_CANCEL, 0, 0, UNACKED, -ENOENT },
	{ KEYED, EXPIRY_OP_QUERY, 0, 0, ONES, -ENOENT },
	{ KEYED, EXPIRY_OP_REFRESH, 0, 0, NEVER_GIVEN, -ENOENT },

	/* Delivered, unacknowledged: no longer armed. */
	{ ACK, EXPIRY_OP_REFRESH, 0, 0, UNACKED, -ENOENT },
	{ ACK, EXPIRY_OP_CANCEL, 0, 0, UNACKED, -ENOENT },
	{ ACK, EXPIRY_OP_QUERY, 0, 0, UNACKED, -ENOENT },
	{ KEYED | ACK, EXPIRY_OP_CANCEL, 0, 0, UNACKED, -ENOENT },
	{ ACK, EXPIRY_OP_ACK, 0, 0, ARMED, -ENOENT },
	{ ACK, EXPIRY_OP_ACK, 0, 0, PERIODIC, -ENOENT },
	{ ACK, EXPIRY_OP_ACK, 0, 0, CANCELLED, -ENOENT },
	{ KEYED | ACK, EXPIRY_OP_ACK, 0, 0, BEYOND, -ENOENT },
};

static void refusals_by_the_table(void **state)
{
	struct expiry_record rows[ROWS], request, reply;
	const struct refusal *refusal;
	struct subject subject;
	u32 nr;

	(void)state;
	for (refusal = refusals; refusal < refusals + ARRAY_SIZE(refusals);
	     refusal++) {
		subject_init(&subject, refusal->mode);
		nr = test_list(&subject.queue, rows, ROWS);
		request = (struct expiry_record) {
			.op = refusal->op,
			.flags = refusal->flags,
			.status = refusal->status,
			.period_ms = 7,
			.id = subject.ids[refusal->id],
			.deadline_ns = 12345,
			.cookie = 0xc00c1e,
		};
		reply = request;
		if (test_submit(&subject.queue, &reply, NOW) != refusal->error)
			fail_msg("line %d of the table: status %d, not %d",
				 (int)(refusal - refusals), reply.status,
				 refusal->error);
		request.status = refusal->error;
		assert_memory_equal(&request, &reply, sizeof(reply));
		unchanged(&subject, rows, nr);
		assert_int_equal(subject.queue.timers.stat.refused, 1);
		assert_int_equal(timers_validate(&subject.queue.timers), 0);
		subject_free(&subject);
	}
}

/* Tries one combination of all; the twin gives the expected result. Returns
 * whether it succeeded.
 */
static bool combination(struct subject *subject, u8 op, u32 n)
{
	static const short statuses[] = { 0, 1, -22 };
	static const u64 deadlines[] = { 0, NOW + 2 * SECOND, EXPIRY_NEVER };
	struct expiry_record request = {
		.op = op,
		.flags = n % 256,
		.status = statuses[n / 256 % 3],
		.id = subject->ids[n / 256 / 3],
		.deadline_ns = deadlines[n % 3],
		.cookie = n,
	}, reply = request;

	test_submit(&subject->queue, &reply, NOW);
	horrible_submit(&subject->horrible, &request, NOW, reply.id);
	assert_memory_equal(&request, &reply, sizeof(reply));
	return !reply.status;
}

static void every_op_flag_status_and_id(void **state)
{
	static const u8 ops[] = { 0, 1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 64, 255 };
	struct expiry_record rows[ROWS];
	struct subject subject;
	u32 mode, op, n, nr;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		subject_init(&subject, test_modes[mode]);
		nr = test_list(&subject.queue, rows, ROWS);
		for (op = 0; op < ARRAY_SIZE(ops); op++) {
			for (n = 0; n < 256 * 3 * WHICH_NR; n++) {
				if (combination(&subject, ops[op], n)) {
					subject_free(&subject);
					subject_init(&subject, test_modes[mode]);
				} else if (n % 61 == 0) {
					unchanged(&subject, rows, nr);
				}
			}
			unchanged(&subject, rows, nr);
			assert_true(subject.queue.timers.stat.refused ==
				    subject.horrible.refused);
		}
		subject_free(&subject);
	}
}

static void arm_replies(void **state)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.flags = RELATIVE | LATER,
		.period_ms = 250,
		.deadline_ns = 5 * SECOND,
		.cookie = 42,
	};
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	assert_int_equal(test_submit(&queue, &record, NOW), 0);
	assert_int_equal(record.op, EXPIRY_OP_ARM);
	assert_int_equal(record.flags, 0);
	assert_int_equal(record.period_ms, 250);
	assert_true(record.deadline_ns == NOW + 5 * SECOND);
	assert_true(record.cookie == 42);
	assert_int_equal((u32)record.id, 1);
	assert_true(record.id >> 32 != 0);

	id = record.id;
	record = test_op(&queue, EXPIRY_OP_QUERY, id);
	assert_int_equal(record.status, 0);
	assert_int_equal(record.flags, 0);
	assert_true(record.deadline_ns == NOW + 5 * SECOND);
	assert_true(record.cookie == 42 && record.period_ms == 250);
	record = test_op(&queue, EXPIRY_OP_CANCEL, id);
	assert_int_equal(record.status, 0);
	assert_true(record.deadline_ns == NOW + 5 * SECOND);
	assert_true(record.cookie == 42 && record.period_ms == 250);
	test_queue_free(&queue);
}

static void relative_deadlines_never_wrap(void **state)
{
	static const struct {
		u64 now, in, out;
	} cases[] = {
		{ 0, 0, 0 },
		{ NOW, 0, NOW },
		{ NOW, EXPIRY_NEVER, EXPIRY_NEVER },
		{ NOW, EXPIRY_NEVER - NOW - 1, EXPIRY_NEVER - 1 },
		{ NOW, EXPIRY_NEVER - NOW, EXPIRY_NEVER },
		{ NOW, EXPIRY_NEVER - NOW + 1, EXPIRY_NEVER },
		{ 0, EXPIRY_NEVER, EXPIRY_NEVER },
		{ EXPIRY_NEVER, 1, EXPIRY_NEVER },
	};
	struct expiry_record record, armed;
	struct test_queue queue;
	u32 i;

	(void)state;
	test_queue_init(&queue, 0, 100, test_seed);
	armed = test_arm(&queue, 0, 77, 0, 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		record = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.flags = RELATIVE,
			.deadline_ns = cases[i].in,
		};
		assert_int_equal(test_submit(&queue, &record, cases[i].now), 0);
		assert_true(record.deadline_ns == cases[i].out);
		record = (struct expiry_record) {
			.op = EXPIRY_OP_REFRESH,
			.flags = RELATIVE,
			.id = armed.id,
			.deadline_ns = cases[i].in,
		};
		assert_int_equal(test_submit(&queue, &record, cases[i].now), 0);
		assert_true(record.deadline_ns == cases[i].out);
	}
	test_queue_free(&queue);
}

static void refresh_both_ways(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	id = test_arm(&queue, 0, 1000, 5, 30).id;
	record = test_refresh(&queue, id, 400, 0);
	assert_int_equal(record.status, 0);
	assert_true(record.deadline_ns == 400 && record.cookie == 5);
	assert_int_equal(record.period_ms, 30);
	assert_true(timers_next_ns(&queue.timers) == 400);
	record = test_refresh(&queue, id, 2000, LATER);
	assert_true(record.deadline_ns == 2000 && record.flags == 0);
	record = test_refresh(&queue, id, 1500, LATER);
	assert_int_equal(record.status, 0);
	assert_true(record.deadline_ns == 2000 && record.flags == 0);
	record = test_refresh(&queue, id, EXPIRY_NEVER, LATER);
	assert_true(record.deadline_ns == EXPIRY_NEVER);
	record = test_refresh(&queue, id, 0, 0);
	assert_true(record.deadline_ns == 0);
	assert_true(test_op(&queue, EXPIRY_OP_QUERY, id).deadline_ns == 0);
	test_queue_free(&queue);
}

/* A plain queue has no index, and a keyed one has it at once. */
static void reserves_for_ids_alone(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u32 mode, index, i;

	(void)state;
	for (mode = 0; mode <= KEYED; mode += KEYED) {
		test_queue_init(&queue, mode, 5000, test_seed);
		assert_int_equal(timers_reserve(&queue.timers, 5000), 0);
		index = queue.runs[TIMERS_PAGES_INDEX].pages.nr;
		assert_true(mode ? index > 5000 / 7 * 64 / CORE_PAGE_SIZE :
				   !index);
		for (i = 1; i <= 5000; i++)
			test_arm(&queue, mode ? i : 0, 1000 + i, i, 0);
		assert_int_equal(timers_reserve(&queue.timers, 0), 0);
		if (mode) {
			record = test_op(&queue, EXPIRY_OP_QUERY, 777);
			assert_true(record.cookie == 777);
		}
		assert_int_equal(queue.runs[TIMERS_PAGES_INDEX].pages.nr,
				 index);
		test_queue_free(&queue);
	}
}

static void keyed_arm_is_an_upsert(void **state)
{
	struct expiry_record record;
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, KEYED, 2, test_seed);
	test_arm(&queue, ~0ULL, 1000, 5, 30);
	record = test_arm(&queue, ~0ULL, 500, 6, 0);
	assert_int_equal(record.status, 0);
	assert_true(record.id == ~0ULL && record.deadline_ns == 500);
	record = test_op(&queue, EXPIRY_OP_QUERY, ~0ULL);
	assert_true(record.deadline_ns == 500 && record.cookie == 6);
	assert_int_equal(record.period_ms, 0);
	assert_true(timers_nr(&queue.timers) == 1);

	record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM, .flags = LATER, .id = ~0ULL,
		.deadline_ns = 100, .cookie = 7, .period_ms = 9,
	};
	assert_int_equal(test_submit(&queue, &record, 0), 0);
	assert_true(record.deadline_ns == 500);
	record = test_op(&queue, EXPIRY_OP_QUERY, ~0ULL);
	assert_true(record.deadline_ns == 500 && record.cookie == 7);
	assert_int_equal(record.period_ms, 9);

	/* In place: also when the queue is full. */
	assert_int_equal(test_arm(&queue, 2, 1, 0, 0).status, 0);
	assert_int_equal(test_arm(&queue, 3, 1, 0, 0).status, -ENOSPC);
	assert_int_equal(test_arm(&queue, 2, 9, 0, 0).status, 0);
	test_queue_free(&queue);
}

/* A new ARM of an id by a producer acknowledges it. */
static void keyed_arm_acknowledges(void **state)
{
	struct expiry_record record, expired;
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, KEYED | ACK, 1, test_seed);
	test_arm(&queue, 9, 100, 5, 0);
	assert_int_equal(test_deliver(&queue, &expired, 1, 100), 1);
	assert_true(queue.timers.unacked == 1 && !queue.timers.armed);
	record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM, .flags = NEW | LATER, .id = 9,
		.deadline_ns = 50,
	};
	assert_int_equal(test_submit(&queue, &record, 0), 0);
	assert_true(record.deadline_ns == 50);
	assert_true(!queue.timers.unacked && queue.timers.armed == 1);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, 9).status, -ENOENT);
	test_rewind(&queue);
	assert_int_equal(test_deliver(&queue, &expired, 1, 100), 1);
	assert_true(expired.deadline_ns == 50 && !expired.flags);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, 9).status, 0);
	test_queue_free(&queue);
}

static void the_limit_counts_all(void **state)
{
	struct expiry_record expired[3];
	struct test_queue queue;
	u64 id;
	u32 i;

	(void)state;
	test_queue_init(&queue, ACK, 3, test_seed);
	for (i = 0; i < 3; i++)
		id = test_arm(&queue, 0, 100 + i, 0, 0).id;
	assert_int_equal(test_arm(&queue, 0, 100, 0, 0).status, -ENOSPC);
	assert_int_equal(test_deliver(&queue, expired, 3, 100), 1);
	assert_int_equal(test_arm(&queue, 0, 100, 0, 0).status, -ENOSPC);
	assert_int_equal(queue.timers.stat.refused_limit, 2);
	assert_int_equal(queue.timers.stat.refused, 2);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, expired[0].id).status,
			 0);
	assert_int_equal(test_arm(&queue, 0, 100, 0, 0).status, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, id).status, 0);
	assert_int_equal(test_arm(&queue, 0, 100, 0, 0).status, 0);
	assert_int_equal(test_arm(&queue, 0, 100, 0, 0).status, -ENOSPC);
	test_queue_free(&queue);
}

/* However a timer ended, and whichever timer has its slot now, its id stays
 * stale.
 */
static void stale_ids_never_match(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 stale[600];
	u32 i, j, nr = 0;

	(void)state;
	test_queue_init(&queue, 0, 3, test_seed);
	for (i = 0; i < 200; i++) {
		for (j = 0; j < 3; j++)
			stale[nr + j] = test_arm(&queue, 0, 10, 0, 0).id;
		switch (i % 3) {
		case 0:
			for (j = 0; j < 3; j++)
				test_op(&queue, EXPIRY_OP_CANCEL,
					stale[nr + j]);
			break;
		case 1:
			record = test_op(&queue, EXPIRY_OP_CLEAR, 0);
			assert_int_equal(record.status, 0);
			assert_true(record.cookie == 3);
			break;
		default:
			while (test_deliver(&queue, &record, 1, 10))
				;
		}
		nr += 3;
		assert_true(!timers_nr(&queue.timers));

		for (j = 0; j < 3; j++)
			test_arm(&queue, 0, 10, 0, 0);
		for (j = 0; j < nr; j++) {
			record = test_op(&queue, EXPIRY_OP_CANCEL, stale[j]);
			assert_int_equal(record.status, -ENOENT);
		}
		test_op(&queue, EXPIRY_OP_CLEAR, 0);
		if (i % 2)
			test_queue_trim(&queue);
	}
	test_queue_free(&queue);
}

/* All bits of the generation are in the id. */
static void ids_come_round_late(void **state)
{
	struct test_queue queue;
	u64 id;
	u32 bit;

	(void)state;
	test_queue_init(&queue, 0, 3, test_seed);
	queue.timers.generation = 0;
	id = test_arm(&queue, 0, 10, 0, 0).id;
	test_op(&queue, EXPIRY_OP_CLEAR, 0);
	for (bit = 0; bit < 32; bit++) {
		queue.timers.generation = 1U << bit;
		assert_true(test_arm(&queue, 0, 10, 0, 0).id != id);
		assert_int_equal(test_op(&queue, EXPIRY_OP_QUERY, id).status,
				 -ENOENT);
		test_op(&queue, EXPIRY_OP_CLEAR, 0);
	}
	test_queue_free(&queue);
}

static void clear_forgets_all(void **state)
{
	struct expiry_record record, rows[ROWS];
	struct subject subject;
	u32 i, nr;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(test_modes); i++) {
		subject_init(&subject, test_modes[i]);
		nr = test_list(&subject.queue, rows, ROWS);
		assert_int_equal(nr, test_modes[i] & ACK ? 3 : 2);
		record = test_op(&subject.queue, EXPIRY_OP_CLEAR, 0);
		assert_int_equal(record.status, 0);
		assert_true(record.cookie == nr);
		assert_int_equal(test_list(&subject.queue, rows, ROWS), 0);
		assert_true(timers_next_ns(&subject.queue.timers) ==
			    EXPIRY_NEVER);
		test_queue_trim(&subject.queue);
		assert_int_equal(test_queue_pages(&subject.queue), 0);
		record = test_op(&subject.queue, EXPIRY_OP_CLEAR, 0);
		assert_true(!record.status && !record.cookie);
		subject_free(&subject);
	}
}

/* A batch is as many requests, in order; each has its own status. */
static void a_batch_in_order(void **state)
{
	struct expiry_record batch[5] = {
		{ .op = EXPIRY_OP_ARM, .id = 7, .deadline_ns = 100 },
		{ .op = EXPIRY_OP_REFRESH, .id = 7, .deadline_ns = 50 },
		{ .op = EXPIRY_OP_QUERY, .id = 8 },
		{ .op = EXPIRY_OP_CANCEL, .id = 7 },
		{ .op = EXPIRY_OP_CANCEL, .id = 7 },
	};
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, KEYED, 10, test_seed);
	assert_int_equal(timers_submit(&queue.timers, batch, 0, 0), 0);
	assert_int_equal(timers_submit(&queue.timers, batch, 5, 0), 5);
	assert_int_equal(batch[0].status, 0);
	assert_int_equal(batch[1].status, 0);
	assert_int_equal(batch[2].status, -ENOENT);
	assert_int_equal(batch[3].status, 0);
	assert_true(batch[3].deadline_ns == 50);
	assert_int_equal(batch[4].status, -ENOENT);
	test_queue_free(&queue);
}

static void init_refuses(void **state)
{
	static const struct {
		u32 mode;
		u64 limit;
		int error;
	} cases[] = {
		{ 0, 0, -EINVAL },
		{ 0, TIMERS_MAX + 1, -EINVAL },
		{ 0, ~0ULL, -EINVAL },
		{ 1, 10, -EINVAL },
		{ 4, 10, -EINVAL },
		{ EXPIRY_MODE_ALL | 0x10, 10, -EINVAL },
		{ 0x80000000U, 10, -EINVAL },
		{ EXPIRY_MODE_ALL, 1, 0 },
		{ 0, TIMERS_MAX, 0 },
	};
	struct core_pages *pages[TIMERS_PAGES_NR];
	struct timers_config config = { .layout = test_layout };
	struct test_queue queue;
	struct timers timers;
	u32 i;

	(void)state;
	test_queue_init(&queue, 0, 1, test_seed);
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		pages[i] = &queue.runs[i].pages;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		config.mode = cases[i].mode;
		config.limit = cases[i].limit;
		assert_int_equal(timers_setup(&timers, &config, pages),
				 cases[i].error);
	}
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(refusals_by_the_table),
		test_with_layouts(every_op_flag_status_and_id),
		test_with_layouts(arm_replies),
		test_with_layouts(relative_deadlines_never_wrap),
		test_with_layouts(refresh_both_ways),
		test_with_layouts(reserves_for_ids_alone),
		test_with_layouts(keyed_arm_is_an_upsert),
		test_with_layouts(keyed_arm_acknowledges),
		test_with_layouts(the_limit_counts_all),
		test_with_layouts(stale_ids_never_match),
		test_with_layouts(ids_come_round_late),
		test_with_layouts(clear_forgets_all),
		test_with_layouts(a_batch_in_order),
		test_with_layouts(init_refuses),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
