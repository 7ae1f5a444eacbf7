// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's queues: core/ with its lock, its pages and its one hrtimer,
 * without the device.
 */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <kunit/test.h>

#include "clock.h"
#include "fire.h"
#include "memory.h"
#include "params.h"
#include "queue.h"
#include "shrink.h"

#define TIMERS	5000U		/* some sixty pages */

/* In the module itself these are parameters. */
bool expiry_param_pageable = true;
uint expiry_param_unpin_ms = 3600 * 1000;
uint expiry_param_scan_ms = 60000;
uint expiry_param_pin_max = 65536;
ulong expiry_param_timers_default = 16UL << 20;
ulong expiry_param_timers_max = 128UL << 20;
uint expiry_param_queues_per_user = 3;

static const struct expiry_config config = {
	.clock_id = CLOCK_MONOTONIC,
	.limit = 2 * TIMERS,
};

static struct expiry_queue *queue_new(struct kunit *test)
{
	struct expiry_queue *queue = expiry_queue_new();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, queue);
	KUNIT_ASSERT_EQ(test, expiry_queue_configure(queue, &config), 0);
	return queue;
}

static void use(struct kunit *test, struct expiry_queue *queue)
{
	struct expiry_use use = { .patient = true };

	KUNIT_ASSERT_EQ(test, expiry_queue_lock(queue, &use), 0);
}

static struct expiry_record request(struct kunit *test,
				    struct expiry_queue *queue,
				    struct expiry_record record)
{
	use(test, queue);
	KUNIT_EXPECT_EQ(test, expiry_queue_submit_locked(queue, &record, 1), 1);
	expiry_queue_unlock(queue, NULL);
	return record;
}

static void arm(struct kunit *test, struct expiry_queue *queue, u64 deadline_ns,
		u64 cookie)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = deadline_ns,
		.cookie = cookie,
	};

	KUNIT_ASSERT_EQ(test, request(test, queue, record).status, 0);
}

/* Arms timers due at 1 to TIMERS, in another order. */
static void arm_many(struct kunit *test, struct expiry_queue *queue)
{
	u32 i, nth;

	for (i = 0; i < TIMERS; i++) {
		nth = i * 1237ULL % TIMERS;	/* which is prime to it */
		arm(test, queue, nth + 1, nth);
	}
}

/* Returns the next expiration; a call may have none, though one is due. */
static struct expiry_record deliver(struct kunit *test,
				    struct expiry_queue *queue)
{
	struct expiry_record record = { };
	int ret, calls = 0;

	do {
		use(test, queue);
		ret = timers_deliver(&queue->timers, &record, 1,
				     expiry_clock_now(queue), false);
		expiry_queue_unlock(queue, NULL);
	} while (!ret && READ_ONCE(queue->due) && calls++ < 1000);
	KUNIT_ASSERT_EQ(test, ret, 1);
	return record;
}

static void deliver_many(struct kunit *test, struct expiry_queue *queue)
{
	struct expiry_record record;
	u32 i;

	for (i = 0; i < TIMERS; i++) {
		record = deliver(test, queue);
		KUNIT_ASSERT_EQ(test, record.deadline_ns, i + 1);
		KUNIT_ASSERT_EQ(test, record.cookie, i);
	}
	KUNIT_EXPECT_FALSE(test, READ_ONCE(queue->due));
}

static void unpin_all(struct expiry_queue *queue)
{
	mutex_lock(&queue->lock);
	while (expiry_memory_unpin(&queue->memory))
		;
	mutex_unlock(&queue->lock);
}

static void is_configured_once(struct kunit *test)
{
	struct expiry_queue *queue = expiry_queue_new();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, queue);
	KUNIT_EXPECT_FALSE(test, expiry_queue_is_configured(queue));
	KUNIT_EXPECT_EQ(test, expiry_queue_set_layout(queue, &bheap_subtree), 0);
	KUNIT_EXPECT_EQ(test, expiry_queue_configure(queue, &config), 0);
	KUNIT_EXPECT_TRUE(test, expiry_queue_is_configured(queue));
	KUNIT_EXPECT_EQ(test, expiry_queue_configure(queue, &config), -EBUSY);
	KUNIT_EXPECT_EQ(test, expiry_queue_set_layout(queue, &bheap_sorted),
			-EBUSY);
	expiry_queue_free(queue);
}

static void can_be_freed_unconfigured(struct kunit *test)
{
	struct expiry_queue *queue = expiry_queue_new();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, queue);
	expiry_queue_free(queue);
}

static void does_not_wait_for_the_lock(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);
	struct expiry_use nowait = { .nowait = true };

	use(test, queue);
	KUNIT_EXPECT_FALSE(test, queue->memory.nowait);
	KUNIT_EXPECT_EQ(test, expiry_queue_lock(queue, &nowait), -EAGAIN);
	expiry_queue_unlock(queue, NULL);
	KUNIT_EXPECT_EQ(test, expiry_queue_lock(queue, &nowait), 0);
	KUNIT_EXPECT_TRUE(test, queue->memory.nowait);
	expiry_queue_unlock(queue, &nowait);
	expiry_queue_free(queue);
}

static void what_is_past_is_due(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);

	KUNIT_EXPECT_FALSE(test, READ_ONCE(queue->due));
	arm(test, queue, 0, 42);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(queue->due));
	KUNIT_EXPECT_EQ(test, deliver(test, queue).cookie, 42);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(queue->due));
	expiry_queue_free(queue);
}

static void the_hrtimer_wakes(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);
	u64 deadline_ns = expiry_clock_now(queue) + 50 * NSEC_PER_MSEC;

	arm(test, queue, EXPIRY_NEVER, 1);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&queue->timer));
	arm(test, queue, deadline_ns, 2);
	KUNIT_EXPECT_TRUE(test, wait_event_timeout(queue->wait,
						   READ_ONCE(queue->due),
						   60 * HZ));
	KUNIT_EXPECT_GE(test, expiry_clock_now(queue), deadline_ns);
	KUNIT_EXPECT_EQ(test, deliver(test, queue).cookie, 2);
	expiry_queue_free(queue);
}

static void the_hrtimer_goes_with_the_queue(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);

	arm(test, queue, expiry_clock_now(queue) + NSEC_PER_SEC * 1000, 1);
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&queue->timer));
	/* Debug objects would report a timer that is freed active. */
	expiry_queue_free(queue);
}

static void unpinned_pages_keep_their_timers(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);
	u64 resident;

	arm_many(test, queue);
	resident = expiry_memory_resident(&queue->memory);
	KUNIT_EXPECT_EQ(test, resident, queue->memory.pinned);
	unpin_all(queue);
	KUNIT_EXPECT_EQ(test, queue->memory.pinned, 0);
	KUNIT_EXPECT_EQ(test, expiry_memory_resident(&queue->memory), resident);
	deliver_many(test, queue);
	KUNIT_EXPECT_GT(test, queue->memory.pinned, 0);
	expiry_queue_free(queue);
}

/* Pages that someone has locked, as reclaim does while it pages out. */
static struct folio *locked_pages[256];
static u32 locked_nr;

static void unlock_pages(struct work_struct *unused)
{
	while (locked_nr) {
		folio_unlock(locked_pages[--locked_nr]);
		folio_put(locked_pages[locked_nr]);
	}
}

static DECLARE_DELAYED_WORK(unlock_pages_work, unlock_pages);

static void lock_pages(struct expiry_queue *queue)
{
	struct folio *folio;
	unsigned long index;

	xa_for_each(&queue->memory.file->f_mapping->i_pages, index, folio) {
		if (xa_is_value(folio) || locked_nr == ARRAY_SIZE(locked_pages))
			continue;
		folio_get(folio);
		folio_lock(folio);
		locked_pages[locked_nr++] = folio;
	}
}

static void does_not_wait_for_a_locked_page(struct kunit *test)
{
	struct expiry_record record = { .op = EXPIRY_OP_ARM };
	struct expiry_queue *queue = queue_new(test);
	struct expiry_use nowait = { .nowait = true };

	arm_many(test, queue);
	unpin_all(queue);
	lock_pages(queue);
	KUNIT_EXPECT_GT(test, locked_nr, 0);
	/* A call that waits ends then, and the test sees that it waited. A machine that
	 * stands still for less than that is no such call.
	 */
	schedule_delayed_work(&unlock_pages_work, 60 * HZ);

	KUNIT_ASSERT_EQ(test, expiry_queue_lock(queue, &nowait), 0);
	KUNIT_EXPECT_EQ(test, expiry_queue_submit_locked(queue, &record, 1), 0);
	KUNIT_EXPECT_GT(test, locked_nr, 0);
	KUNIT_EXPECT_TRUE(test, queue->memory.wanted);
	expiry_queue_unlock(queue, &nowait);
	KUNIT_EXPECT_GT(test, locked_nr, 0);

	flush_delayed_work(&unlock_pages_work);
	deliver_many(test, queue);
	expiry_queue_free(queue);
}

/* Submits a record, without a wait under the lock. Returns whether it was done. */
static bool submit_by(struct kunit *test, struct expiry_queue *queue,
		      struct expiry_use *use, struct expiry_record *record)
{
	u32 done;

	KUNIT_ASSERT_EQ(test, expiry_queue_lock(queue, use), 0);
	done = expiry_queue_submit_locked(queue, record, 1);
	expiry_queue_unlock(queue, use);
	return done;
}

static struct expiry_queue *waited_for;
static bool lock_was_free;

/* Looks at the queue's lock while its pages are locked, and unlocks those. */
static void try_and_unlock_pages(struct work_struct *unused)
{
	lock_was_free = mutex_trylock(&waited_for->lock);
	if (lock_was_free)
		mutex_unlock(&waited_for->lock);
	unlock_pages(NULL);
}

static DECLARE_DELAYED_WORK(try_and_unlock_pages_work, try_and_unlock_pages);

/* A caller that may wait for a page waits without the lock. */
static void waits_for_a_page_without_the_lock(struct kunit *test)
{
	struct expiry_record record = { .op = EXPIRY_OP_ARM, .deadline_ns = 1 };
	struct expiry_queue *queue = queue_new(test);
	struct expiry_use use = { };
	u32 fetched = 0;
	bool done;

	arm_many(test, queue);
	unpin_all(queue);
	lock_pages(queue);
	waited_for = queue;
	lock_was_free = false;
	schedule_delayed_work(&try_and_unlock_pages_work, HZ);
	do {
		done = submit_by(test, queue, &use, &record);
		if (!fetched++)
			KUNIT_EXPECT_GT(test, locked_nr, 0);
	} while (!done && expiry_use_fetch(queue, &use));
	flush_delayed_work(&try_and_unlock_pages_work);
	KUNIT_EXPECT_TRUE(test, lock_was_free);
	KUNIT_EXPECT_TRUE(test, done);
	KUNIT_EXPECT_EQ(test, record.status, 0);
	KUNIT_EXPECT_GT(test, fetched, 1);
	expiry_queue_free(queue);
}

/* Pages that go each time before all that one record needs are there: after some tries
 * the caller waits under the lock.
 */
static void pages_that_go_again_are_waited_for(struct kunit *test)
{
	struct expiry_record record = { .op = EXPIRY_OP_ARM, .deadline_ns = 1 };
	struct expiry_queue *queue = queue_new(test);
	struct expiry_use use = { };
	u32 tries = 0;
	bool done;

	arm_many(test, queue);
	/* Where a call waits under the lock too soon it ends then. */
	schedule_delayed_work(&unlock_pages_work, 10 * HZ);
	do {
		unpin_all(queue);
		if (!use.patient)
			lock_pages(queue);
		done = submit_by(test, queue, &use, &record);
		unlock_pages(NULL);
		tries++;
	} while (!done && expiry_use_fetch(queue, &use) && tries < 1000);
	cancel_delayed_work_sync(&unlock_pages_work);
	KUNIT_EXPECT_TRUE(test, use.patient);
	KUNIT_EXPECT_TRUE(test, done);
	KUNIT_EXPECT_EQ(test, record.status, 0);
	KUNIT_EXPECT_LT(test, tries, 100);
	expiry_queue_free(queue);
}

/* The page that a caller fetches is given back before it is installed. */
static void a_page_given_back_meanwhile_is_dropped(struct kunit *test)
{
	struct expiry_record record = { .op = EXPIRY_OP_ARM, .deadline_ns = 1 };
	struct expiry_record clear = { .op = EXPIRY_OP_CLEAR };
	struct expiry_queue *queue = queue_new(test);
	struct expiry_use use = { };
	bool done;

	arm_many(test, queue);
	unpin_all(queue);
	lock_pages(queue);
	schedule_delayed_work(&unlock_pages_work, 10 * HZ);
	KUNIT_EXPECT_FALSE(test, submit_by(test, queue, &use, &record));
	cancel_delayed_work_sync(&unlock_pages_work);
	unlock_pages(NULL);
	KUNIT_ASSERT_TRUE(test, expiry_use_fetch(queue, &use));
	KUNIT_ASSERT_NOT_NULL(test, use.fetch.page);

	request(test, queue, clear);
	mutex_lock(&queue->lock);
	while (expiry_memory_trim(&queue->memory))
		;
	mutex_unlock(&queue->lock);
	KUNIT_EXPECT_NULL(test, page_folio(use.fetch.page)->mapping);
	do {
		done = submit_by(test, queue, &use, &record);
	} while (!done && expiry_use_fetch(queue, &use));
	KUNIT_EXPECT_EQ(test, record.status, 0);
	KUNIT_EXPECT_EQ(test, deliver(test, queue).deadline_ns, 1);
	arm_many(test, queue);
	unpin_all(queue);
	deliver_many(test, queue);
	expiry_queue_free(queue);
}

static void too_many_pins_are_let_go(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);

	expiry_param_pin_max = 16;
	arm_many(test, queue);
	KUNIT_EXPECT_LE(test, queue->memory.pinned, expiry_param_pin_max);
	deliver_many(test, queue);
	KUNIT_EXPECT_LE(test, queue->memory.pinned, expiry_param_pin_max);
	expiry_param_pin_max = 65536;
	expiry_queue_free(queue);
}

static void what_is_cleared_is_given_back(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);
	struct expiry_record record = { .op = EXPIRY_OP_CLEAR };
	u64 resident;

	arm_many(test, queue);
	resident = expiry_memory_resident(&queue->memory);
	record = request(test, queue, record);
	KUNIT_EXPECT_EQ(test, record.status, 0);
	KUNIT_EXPECT_EQ(test, record.cookie, TIMERS);
	mutex_lock(&queue->lock);
	while (expiry_memory_trim(&queue->memory))
		;
	mutex_unlock(&queue->lock);
	/* Spare pages of each array. */
	KUNIT_EXPECT_LE(test, expiry_memory_resident(&queue->memory),
			TIMERS_PAGES_NR * 4);
	KUNIT_EXPECT_GT(test, resident, TIMERS_PAGES_NR * 4);
	arm_many(test, queue);
	deliver_many(test, queue);
	expiry_queue_free(queue);
}

/* A reader that could not restore a record sets the flag: REWIND may be past that
 * record, so only a reader's own pass clears it.
 */
static void a_rewind_leaves_the_readers_flag(struct kunit *test)
{
	struct expiry_config acking = config;
	struct expiry_queue *queue = expiry_queue_new();
	u32 i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, queue);
	acking.mode = EXPIRY_MODE_ACK;
	KUNIT_ASSERT_EQ(test, expiry_queue_configure(queue, &acking), 0);
	arm_many(test, queue);
	for (i = 0; i < TIMERS; i++)
		deliver(test, queue);
	KUNIT_EXPECT_EQ(test, queue->timers.unacked, TIMERS);

	queue->rewind = true;
	KUNIT_EXPECT_EQ(test, expiry_queue_rewind(queue), 0);
	KUNIT_EXPECT_EQ(test, queue->timers.unacked, 0);
	KUNIT_EXPECT_TRUE(test, queue->rewind);
	queue->rewind = false;
	expiry_queue_free(queue);
}

/* Visits @visits tables, as when memory is short. */
static void shrink(unsigned int visits)
{
	struct shrink_control sc = { .nr_to_scan = CORE_DIR_SIZE };

	while (visits--)
		expiry_shrink_scan(&sc);
}

/* The first queue is at the head of the list, and locked for all of the test. */
static void a_locked_queue_does_not_hide_others(struct kunit *test)
{
	struct expiry_queue *locked = queue_new(test), *other = queue_new(test);
	u32 pinned;

	arm_many(test, locked);
	arm_many(test, other);
	pinned = locked->memory.pinned;
	use(test, locked);
	shrink(32);
	KUNIT_EXPECT_EQ(test, other->memory.pinned, 0);
	KUNIT_EXPECT_EQ(test, locked->memory.pinned, pinned);
	KUNIT_EXPECT_GT(test, atomic_read(&locked->reclaim_wanted), 0);
	/* It gives way at unlock. */
	expiry_queue_unlock(locked, NULL);
	KUNIT_EXPECT_EQ(test, locked->memory.pinned, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&locked->reclaim_wanted), 0);
	deliver_many(test, locked);
	deliver_many(test, other);
	expiry_queue_free(other);
	expiry_queue_free(locked);
}

/* The first visit finds every table used; the second those used since. */
static void a_page_in_use_has_a_second_chance(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);
	u32 i, pinned;

	arm_many(test, queue);
	pinned = queue->memory.pinned;
	shrink(2);	/* heap and slots */
	KUNIT_EXPECT_EQ(test, queue->memory.pinned, pinned);
	for (i = 0; i < 3; i++) {
		/* A push uses some pages of the heap, and one of the slots. */
		arm(test, queue, 1, 1);
		shrink(2);
		KUNIT_EXPECT_GE(test, queue->memory.pinned, 2);
		KUNIT_EXPECT_LT(test, queue->memory.pinned, pinned / 2);
	}
	shrink(2);
	KUNIT_EXPECT_EQ(test, queue->memory.pinned, 0);
	expiry_queue_free(queue);
}

static void plain_pages_are_always_pinned(struct kunit *test)
{
	struct expiry_queue *queue;

	expiry_param_pageable = false;
	queue = queue_new(test);
	expiry_param_pageable = true;
	arm_many(test, queue);
	unpin_all(queue);
	KUNIT_EXPECT_GT(test, queue->memory.pinned, 0);
	KUNIT_EXPECT_EQ(test, expiry_memory_resident(&queue->memory),
			queue->memory.pinned);
	deliver_many(test, queue);
	expiry_queue_free(queue);
}

static void the_scan_lists_what_is_armed(struct kunit *test)
{
	struct expiry_queue *queue = queue_new(test);
	struct expiry_record rows[EXPIRY_CHUNK];
	struct expiry_stat stat;
	u64 cursor = 0, sum = 0;
	u32 nr = 0;
	int ret, i;

	arm_many(test, queue);
	do {
		use(test, queue);
		ret = expiry_queue_scan_locked(queue, rows, EXPIRY_CHUNK,
					       &cursor);
		expiry_queue_unlock(queue, NULL);
		KUNIT_ASSERT_GE(test, ret, 0);
		for (i = 0; i < ret; i++)
			sum += rows[i].cookie;
		nr += ret;
	} while (cursor);
	KUNIT_EXPECT_EQ(test, nr, TIMERS);
	KUNIT_EXPECT_EQ(test, sum, TIMERS * (TIMERS - 1) / 2);

	use(test, queue);
	expiry_queue_stat_locked(queue, &stat);
	KUNIT_EXPECT_EQ(test, timers_validate(&queue->timers), 0);
	expiry_queue_unlock(queue, NULL);
	KUNIT_EXPECT_EQ(test, stat.armed, TIMERS);
	KUNIT_EXPECT_EQ(test, stat.arms, TIMERS);
	KUNIT_EXPECT_EQ(test, stat.next_ns, 1);
	expiry_queue_free(queue);
}

/* The limit of a user is for those without CAP_SYS_RESOURCE: not for this test.
 */
static void queues_have_names_of_their_own(struct kunit *test)
{
	struct expiry_queue *queue[4];
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(queue) <= 3);
	for (i = 0; i < ARRAY_SIZE(queue); i++) {
		queue[i] = queue_new(test);
		if (i)
			KUNIT_EXPECT_EQ(test, queue[i]->serial,
					queue[i - 1]->serial + 1);
	}
	while (i--)
		expiry_queue_free(queue[i]);
}

static int suite_init(struct kunit_suite *suite)
{
	int err = expiry_fire_init();

	if (err)
		return err;
	err = expiry_memory_mount();
	if (err)
		goto out_fire;
	err = expiry_shrink_init();
	if (err)
		goto out_mount;
	return 0;

out_mount:
	expiry_memory_unmount();
out_fire:
	expiry_fire_exit();
	return err;
}

/* The slab cache of queues complains if one is left. */
static void suite_exit(struct kunit_suite *suite)
{
	expiry_shrink_exit();
	expiry_memory_unmount();
	expiry_fire_exit();
}

static struct kunit_case cases[] = {
	KUNIT_CASE(is_configured_once),
	KUNIT_CASE(can_be_freed_unconfigured),
	KUNIT_CASE(does_not_wait_for_the_lock),
	KUNIT_CASE(what_is_past_is_due),
	KUNIT_CASE(the_hrtimer_wakes),
	KUNIT_CASE(the_hrtimer_goes_with_the_queue),
	KUNIT_CASE(unpinned_pages_keep_their_timers),
	KUNIT_CASE(does_not_wait_for_a_locked_page),
	KUNIT_CASE(waits_for_a_page_without_the_lock),
	KUNIT_CASE(pages_that_go_again_are_waited_for),
	KUNIT_CASE(a_page_given_back_meanwhile_is_dropped),
	KUNIT_CASE(too_many_pins_are_let_go),
	KUNIT_CASE(what_is_cleared_is_given_back),
	KUNIT_CASE(a_locked_queue_does_not_hide_others),
	KUNIT_CASE(a_page_in_use_has_a_second_chance),
	KUNIT_CASE(plain_pages_are_always_pinned),
	KUNIT_CASE(a_rewind_leaves_the_readers_flag),
	KUNIT_CASE(the_scan_lists_what_is_armed),
	KUNIT_CASE(queues_have_names_of_their_own),
	{ }
};

static struct kunit_suite queue_suite = {
	.name = "queue",
	.suite_init = suite_init,
	.suite_exit = suite_exit,
	.test_cases = cases,
};

kunit_test_suites(&queue_suite);
MODULE_DESCRIPTION("Unit tests of expiry's queues");
MODULE_LICENSE("GPL");
