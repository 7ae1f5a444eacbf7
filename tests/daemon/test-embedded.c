// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded engine while nobody uses a queue: timers that are left move to the first
 * slots, and the pages of the others are given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "daemon/engine/arena.h"
#include "daemon/engine/engine.h"
#include "daemon/loop/clock-watch.h"

#define TIMERS	20000U
#define LEFT	100U	/* one in a hundred stays */
#define S	1000000000ULL

extern const struct engine_ops engine_embedded;

static uint64_t now_ns = 1000 * S;
static struct budget budget;

/* A loop that only has the time. */
uint64_t loop_now(struct loop *loop, uint32_t clock_id)
{
	(void)loop;
	(void)clock_id;
	return now_ns;
}

struct io_uring_sqe *loop_sqe(struct loop *loop, struct loop_op *op)
{
	static struct io_uring_sqe sqe;

	(void)loop;
	(void)op;
	return &sqe;
}

void loop_fail(struct loop *loop, const char *what, int result)
{
	(void)loop;
	(void)what;
	(void)result;
	fail();
}

int loop_clock(uint32_t clock_id)
{
	return clock_id == CLOCK_MONOTONIC ? 1 : clock_id == CLOCK_BOOTTIME ? 2 : 0;
}

uint32_t loop_timeout_clock(uint32_t clock_id)
{
	(void)clock_id;
	return 0;
}

struct __kernel_timespec loop_timespec(int64_t ns)
{
	return (struct __kernel_timespec) { .tv_nsec = ns };
}

bool clock_is_ahead_of_watch(const struct loop *loop)
{
	(void)loop;
	return false;
}

static struct engine_queue *queue_new(struct engine **enginep, struct loop *loop,
				      uint32_t mode)
{
	struct expiry_config config = {
		.clock_id = CLOCK_MONOTONIC,
		.mode = mode,
		.limit = TIMERS,
	};
	struct engine_queue *queue;

	budget_init(&budget, 1ULL << 30);
	assert_int_equal(engine_embedded.open(enginep, loop, NULL, &budget), 0);
	assert_int_equal(engine_embedded.queue_new(*enginep, &config,
						   EXPIRY_LAYOUT_RADIX, &queue), 0);
	return queue;
}

static void queue_end(struct engine *engine, struct engine_queue *queue)
{
	engine_embedded.queue_free(queue);
	engine_embedded.close(engine);
}

/* Turns until no more are wanted. */
static void turn(struct engine *engine)
{
	uint32_t turns = 0;

	while (engine_embedded.turn(engine))
		assert_true(turns++ < 1000);
}

static uint64_t pages(struct engine_queue *queue)
{
	struct expiry_stat stat;

	assert_int_equal(engine_embedded.stat(queue, &stat), 0);
	return stat.pages_resident;
}

static uint64_t request(struct engine_queue *queue, struct expiry_record record)
{
	struct engine_io io = { .records = &record, .count = 1 };

	assert_int_equal(engine_embedded.submit(queue, &io), 0);
	assert_int_equal(record.status, 0);
	return record.id;
}

/* Arms all timers. Those that stay are due far later than the others. */
static void arm_all(struct engine_queue *queue, uint64_t *ids)
{
	uint32_t i;

	for (i = 0; i < TIMERS; i++)
		ids[i] = request(queue, (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = now_ns + (i % LEFT ? 10 * S : 1000000 * S),
		});
}

/* Of a queue that has lost its timers by delivery no record pays for that. */
static void drained_queue_gives_its_pages_back(void **state)
{
	static struct expiry_record records[512];
	struct engine_io io = { .records = records, .count = 512 };
	static uint64_t ids[TIMERS];
	struct engine_queue *queue;
	struct loop loop = { 0 };
	struct engine *engine;
	uint64_t before;
	uint32_t i, nr = 0;
	int r;

	(void)state;
	queue = queue_new(&engine, &loop, 0);
	arm_all(queue, ids);
	before = pages(queue);
	now_ns += 11 * S;
	while (nr < TIMERS - TIMERS / LEFT) {
		r = engine_embedded.collect(queue, &io);
		assert_true(r >= 0);
		nr += r;
		turn(engine);
	}
	now_ns += S - 1;
	turn(engine);
	assert_true(pages(queue) > before / 10);
	now_ns += 1;
	turn(engine);
	assert_true(pages(queue) <= before / 10);
	for (i = 0; i < TIMERS; i += LEFT)
		request(queue, (struct expiry_record) {
			.op = EXPIRY_OP_QUERY, .id = ids[i],
		});
	queue_end(engine, queue);
}

/* A scan that is not continued holds the pages for a minute. */
static void scan_that_is_left_is_given_up(void **state)
{
	static struct expiry_record rows[32];
	static uint64_t ids[TIMERS];
	struct engine_queue *queue;
	struct loop loop = { 0 };
	struct engine *engine;
	uint64_t before, cursor = 0;
	uint32_t i;

	(void)state;
	queue = queue_new(&engine, &loop, 0);
	arm_all(queue, ids);
	before = pages(queue);
	assert_int_equal(engine_embedded.scan(queue, rows, 32, &cursor), 32);
	assert_true(cursor != 0);
	now_ns += S;
	for (i = 0; i < TIMERS; i++)
		if (i % LEFT)
			request(queue, (struct expiry_record) {
				.op = EXPIRY_OP_CANCEL, .id = ids[i],
			});
	turn(engine);
	now_ns += 59 * S - 1;
	turn(engine);
	assert_true(pages(queue) > before / 10);
	now_ns += 1;
	turn(engine);
	assert_true(pages(queue) <= before / 10);
	assert_int_equal(engine_embedded.scan(queue, rows, 32, &cursor), -ECANCELED);
	queue_end(engine, queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drained_queue_gives_its_pages_back),
		cmocka_unit_test(scan_that_is_left_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
