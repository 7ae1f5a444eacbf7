// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded engine and its memory. While nobody uses a queue, timers that are left
 * move to the first slots, and the pages of the others are given back. Where the memory
 * of all queues is used up, timers are delivered all the same.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "core/core.h"
#include "daemon/engine/arena.h"
#include "daemon/engine/engine.h"
#include "daemon/loop/clock-watch.h"
#include "tests/daemon/fake-loop.h"

#define TIMERS	20000U
#define LEFT	100U	/* one in a hundred stays */
#define S	1000000000ULL

extern const struct engine_ops engine_embedded;

static struct budget budget;

bool clock_is_ahead_of_watch(const struct loop *loop)
{
	(void)loop;
	return false;
}

static struct engine *engine_new(struct loop *loop, uint64_t memory)
{
	struct engine *engine;

	budget_init(&budget, memory);
	assert_int_equal(engine_embedded.open(&engine, loop, NULL, &budget), 0);
	return engine;
}

static struct engine_queue *queue_of(struct engine *engine)
{
	struct expiry_config config = {
		.clock_id = CLOCK_MONOTONIC,
		.limit = TIMERS,
	};
	struct engine_queue *queue;

	assert_int_equal(engine_embedded.queue_new(engine, &config,
						   EXPIRY_LAYOUT_RADIX, &queue), 0);
	return queue;
}

static struct engine_queue *queue_new(struct engine **enginep, struct loop *loop)
{
	*enginep = engine_new(loop, 1ULL << 30);
	return queue_of(*enginep);
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

/* Submits a request. Returns its status. */
static int submit(struct engine_queue *queue, struct expiry_record *record)
{
	struct engine_io io = { .records = record, .count = 1 };

	assert_int_equal(engine_embedded.submit(queue, &io), 0);
	return record->status;
}

/* Submits one that succeeds. Returns its id. */
static uint64_t request(struct engine_queue *queue, struct expiry_record record)
{
	assert_int_equal(submit(queue, &record), 0);
	return record.id;
}

/* Arms all timers. Those that stay are due far later than the others. */
static void arm_all(struct engine_queue *queue, uint64_t *ids)
{
	uint32_t i;

	for (i = 0; i < TIMERS; i++)
		ids[i] = request(queue, (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = fake_now_ns + (i % LEFT ? 10 * S : 1000000 * S),
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
	queue = queue_new(&engine, &loop);
	arm_all(queue, ids);
	before = pages(queue);
	fake_now_ns += 11 * S;
	while (nr < TIMERS - TIMERS / LEFT) {
		r = engine_embedded.collect(queue, &io);
		assert_true(r >= 0);
		nr += r;
		turn(engine);
	}
	fake_now_ns += S - 1;
	turn(engine);
	assert_true(pages(queue) > before / 10);
	fake_now_ns += 1;
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
	queue = queue_new(&engine, &loop);
	arm_all(queue, ids);
	before = pages(queue);
	assert_int_equal(engine_embedded.scan(queue, rows, 32, &cursor), 32);
	assert_true(cursor != 0);
	fake_now_ns += S;
	for (i = 0; i < TIMERS; i++)
		if (i % LEFT)
			request(queue, (struct expiry_record) {
				.op = EXPIRY_OP_CANCEL, .id = ids[i],
			});
	turn(engine);
	fake_now_ns += 59 * S - 1;
	turn(engine);
	assert_true(pages(queue) > before / 10);
	fake_now_ns += 1;
	turn(engine);
	assert_true(pages(queue) <= before / 10);
	assert_int_equal(engine_embedded.scan(queue, rows, 32, &cursor), -ECANCELED);
	queue_end(engine, queue);
}

/* Arms timers of one hour until there is no memory. Returns how many. */
static uint32_t fill(struct engine_queue *queue, uint64_t *ids)
{
	struct expiry_record record;
	uint32_t nr;
	int status;

	for (nr = 0; nr < TIMERS; nr++) {
		record = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = fake_now_ns + 3600 * S,
		};
		status = submit(queue, &record);
		if (status)
			break;
		ids[nr] = record.id;
	}
	assert_int_equal(status, -ENOMEM);
	return nr;
}

static void due(struct engine_queue *queue)
{
	*(bool *)queue->owner = true;
}

/* Collects until nothing is due. Returns how many. */
static uint32_t collect(struct engine *engine, struct engine_queue *queue)
{
	static struct expiry_record records[64];
	struct engine_io io = { .records = records, .count = 64 };
	uint32_t nr = 0;
	int r;

	do {
		r = engine_embedded.collect(queue, &io);
		assert_true(r >= 0);
		nr += r;
		turn(engine);
	} while (engine_embedded.wait(queue));
	return nr;
}

/* One queue took all memory that there is for more timers. Those of another, armed
 * before, come when they are due.
 */
static void full_memory_delivers_all(void **state)
{
	static uint64_t ids[2 * TIMERS];
	struct engine_queue *queue, *other;
	struct loop loop = { 0 };
	struct engine *engine;
	uint32_t i;

	(void)state;
	engine = engine_new(&loop, 200 * CORE_PAGE_SIZE);
	queue = queue_of(engine);
	other = queue_of(engine);
	for (i = 0; i < 3000; i++)
		request(queue, (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = fake_now_ns + 3600 * S + i * 7919ULL % 3000 * S,
		});
	assert_true(fill(other, ids) > TIMERS / 10);
	fake_now_ns += 7200 * S;
	assert_int_equal(collect(engine, queue), 3000);
	engine_embedded.queue_free(other);
	queue_end(engine, queue);
}

/* Without a reserve they wait until others have freed memory: their consumer's queue is
 * looked at again after a while, and not all the time.
 */
static void starved_queue_is_tried_again(void **state)
{
	static uint64_t ids[TIMERS];
	struct engine_queue *queue, *other;
	struct loop loop = { 0 };
	struct engine *engine;
	bool is_due = false;
	uint32_t i, nr;

	(void)state;
	engine = engine_new(&loop, 31 * CORE_PAGE_SIZE);
	budget.pages_reserved = 0;
	queue = queue_of(engine);
	queue->owner = &is_due;
	queue->due = due;
	other = queue_of(engine);
	for (i = 0; i < 600; i++)
		request(queue, (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = fake_now_ns + 3600 * S + i * 7919ULL % 600 * S,
		});
	nr = fill(other, ids);
	fake_now_ns += 7200 * S;
	assert_true(collect(engine, queue) < 600);
	turn(engine);
	assert_false(is_due);
	for (i = 0; i < nr; i++)
		request(other, (struct expiry_record) {
			.op = EXPIRY_OP_CANCEL, .id = ids[i],
		});
	turn(engine);
	assert_false(is_due);
	assert_int_equal(engine_embedded.wait(queue), 0);
	/* A clock that is set back does not make it wait for longer. */
	fake_now_ns -= S;
	assert_int_equal(engine_embedded.wait(queue), 1);
	fake_now_ns += S + S / 10;
	turn(engine);
	assert_true(is_due);
	assert_true(collect(engine, queue) > 0);
	assert_int_equal(queue->timers, 0);
	engine_embedded.queue_free(other);
	queue_end(engine, queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drained_queue_gives_its_pages_back),
		cmocka_unit_test(scan_that_is_left_is_given_up),
		cmocka_unit_test(full_memory_delivers_all),
		cmocka_unit_test(starved_queue_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
