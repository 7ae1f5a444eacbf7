/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a queue. queue.c describes the locking. */
#ifndef EXPIRY_QUEUE_STATE_H
#define EXPIRY_QUEUE_STATE_H

#include <linux/alarmtimer.h>
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "memory.h"
#include "timers.h"

/**
 * struct expiry_queue - a queue
 *
 * Const after open:
 * @owner: the opener, charged for one queue
 * @serial: names it in fdinfo and debugging messages
 * @memcg: of the opener, charged for its memory; may be NULL
 * @registered: in the list of all queues, see registry.c
 *
 * Const once @configured, under @lock before:
 * @layout: of the heap
 *
 * Const once @configured:
 * @configured: the queue has a clock and timers; release and acquire
 * @clock_id: of its deadlines
 * @slack_ns: how late @timer may fire
 * @wake_on_step: a step of the clock wakes readers
 *
 * Under @lock:
 * @timers: the core's part of the queue
 * @memory: the pages of @timers
 * @programmed_ns: what @timer was last set to
 * @error: a work item's page error, for the next reader
 * @rewind: the next reader must restore some timers, from @rewind_cursor on
 * @swept: stale nodes swept, as far as traced
 * @used: jiffies of the last use of the queue
 * @walked: jiffies of the last part of a SCAN or REWIND
 * @clock_offset_ns: of REALTIME against BOOTTIME when last checked
 * @clock_set: the reader's next record is CLOCK_SET
 * @clock_sets: steps of the clock seen
 *
 * Written under @lock and by @timer's interrupt, read without:
 * @due: an expiration can be read now
 * @may_be_due: what is first is not known yet, and none of it is later than now: a
 *	reader that may take its time finds it
 *
 * Increased by the shrinker, decreased under @lock:
 * @reclaim_wanted: memory is short: tables to visit at unlock
 *
 * With their own locking:
 * @wait: readers and pollers waiting for @due
 * @timer: the one hrtimer, set for the earliest deadline
 * @alarm: in its place on an alarm clock
 * @fetch: brings in pages that a caller could not wait for, see fire.c
 * @trim_idle: frees memory after a while without use, see fire.c
 */
struct expiry_queue {
	kuid_t owner;
	u32 serial;
	struct mem_cgroup *memcg;
	struct list_head registered;

	const struct bheap_layout *layout;
	bool configured;
	clockid_t clock_id;
	u64 slack_ns;
	bool wake_on_step;

	struct mutex lock;		/* the fields down to @clock_sets */
	struct timers timers;
	struct expiry_memory memory;
	u64 programmed_ns;
	int error;
	u64 rewind_cursor;
	bool rewind;
	bool clock_set;
	u64 swept;
	unsigned long used;
	unsigned long walked;
	s64 clock_offset_ns;
	u64 clock_sets;

	bool due ____cacheline_aligned;
	bool may_be_due;
	atomic_t reclaim_wanted;
	wait_queue_head_t wait;
	union {
		struct hrtimer timer;
		struct alarm alarm;
	};
	struct work_struct fetch;
	struct delayed_work trim_idle;
};

/* Returns whether the queue is configured; its constants are then valid. */
static inline bool expiry_queue_is_configured(const struct expiry_queue *queue)
{
	/* Pairs with configure_locked(). */
	return smp_load_acquire(&queue->configured);
}

#endif /* EXPIRY_QUEUE_STATE_H */
