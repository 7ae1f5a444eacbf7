// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading expirations.
 *
 * The reader's memory is faulted in without any lock. Then, under the queue's
 * lock, a chunk of records is taken out of the heap, copied to the reader
 * without faulting, and released; or restored where the copy failed, because a
 * page has gone again. So a bad buffer loses no expiration, nor does a reader
 * killed at any point, and no thread waits for another's page fault.
 */
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/lockdep.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "clock.h"
#include "queue.h"
#include "read.h"
#include "timens.h"
#include "trace.h"

/* Retries after a page just faulted in is gone again, before -EFAULT. */
#define COPY_TRIES	8

/*
 * Takes up to @room records for the reader; the first may be a CLOCK_SET.
 * Returns their number, possibly 0 although a timer is due, or an error.
 */
static int take_locked(struct expiry_queue *queue,
		       struct expiry_record *records, u32 room)
{
	u64 now_ns;
	u32 nr = 0;
	int ret;

	lockdep_assert_held(&queue->lock);

	if (queue->error) {
		ret = queue->error;
		queue->error = 0;
		return ret;
	}
	/* Records that end_read_locked() could not restore come first. */
	if (unlikely(queue->rewind)) {
		ret = expiry_queue_rewind_locked(queue, &queue->rewind_cursor);
		if (ret)
			return ret < 0 ? ret : 0;
		queue->rewind = false;
	}
	expiry_clock_check_locked(queue);
	now_ns = expiry_clock_now(queue);
	if (queue->clock_set)
		records[nr++] = (struct expiry_record) {
			.op = EXPIRY_OP_CLOCK_SET,
			.deadline_ns = now_ns,
		};
	if (nr == room)
		return nr;
	do {
		ret = timers_deliver(&queue->timers, records + nr, room - nr,
				     now_ns, true);
	} while (ret == -EAGAIN && expiry_memory_reclaim(&queue->memory));
	return nr || ret > 0 ? nr + max(ret, 0) : ret;
}

/* Releases the first @given of @nr records, restores the others. */
static void end_read_locked(struct expiry_queue *queue,
			    const struct expiry_record *records, u32 nr,
			    u32 given)
{
	lockdep_assert_held(&queue->lock);

	if (records->op == EXPIRY_OP_CLOCK_SET) {
		if (given) {
			WRITE_ONCE(queue->clock_set, false);
			given--;
		}
		records++;
		nr--;
	}
	if (given < nr &&
	    timers_restore(&queue->timers, records + given, nr - given)) {
		queue->rewind = true;
		queue->rewind_cursor = 0;
	}
	/* Cannot fail: the delivery touched its pages, under the same lock. */
	WARN_ON_ONCE(timers_release(&queue->timers, records, given));
}

/* Copies records to a reader in a time namespace; the originals are needed. */
static noinline size_t copy_converted(const struct expiry_record *records,
				      u32 nr, struct iov_iter *to,
				      s64 offset_ns)
{
	struct expiry_record record;
	size_t copied = 0, size;
	u32 i;

	for (i = 0; i < nr; i++) {
		record = records[i];
		record.deadline_ns =
			expiry_timens_from_host(record.deadline_ns, offset_ns);
		size = copy_to_iter(&record, sizeof(record), to);
		copied += size;
		if (size < sizeof(record))
			break;
	}
	return copied;
}

/* Copies whole records without faulting; returns how many. */
static u32 copy_records(const struct expiry_queue *queue,
			const struct expiry_record *records, u32 nr,
			struct iov_iter *to)
{
	s64 offset_ns = expiry_timens_offset(queue->clock_id);
	size_t copied;

	pagefault_disable();
	if (unlikely(offset_ns))
		copied = copy_converted(records, nr, to, offset_ns);
	else
		copied = copy_to_iter(records, nr * sizeof(*records), to);
	pagefault_enable();
	iov_iter_revert(to, copied % sizeof(*records));
	return copied / sizeof(*records);
}

/*
 * Copies up to one chunk of due records to the reader. Returns the number of
 * records, or 0 if another call may return some. -EAGAIN: nothing is due or
 * (@nowait) it would have to wait. Other errors are possible.
 */
static int read_chunk(struct expiry_queue *queue, struct iov_iter *to,
		      bool nowait)
{
	struct expiry_record records[EXPIRY_CHUNK] __uninitialized;
	struct expiry_use use = { .nowait = nowait };
	u32 room, given = 0;
	size_t size;
	int nr, err;

	BUILD_BUG_ON(EXPIRY_CHUNK > TIMERS_HELD_MAX);

	room = min_t(size_t, iov_iter_count(to) / sizeof(*records),
		     EXPIRY_CHUNK);
	size = room * sizeof(*records);
	size -= fault_in_iov_iter_writeable(to, size);
	room = size / sizeof(*records);
	if (!room)
		return -EFAULT;

	do {
		err = expiry_queue_lock(queue, &use);
		if (err)
			return err;
		nr = take_locked(queue, records, room);
		if (nr > 0) {
			given = copy_records(queue, records, nr, to);
			/* To restore may take a page that is not there. */
			queue->memory.nowait = nowait;
			end_read_locked(queue, records, nr, given);
			trace_expiry_deliver(queue, records, nr, given);
		}
		expiry_queue_unlock(queue, &use);
	} while (nr == -EAGAIN && expiry_use_fetch(queue, &use));
	/* A timer is due, but too many steps would have led to it. */
	if (!nr)
		return READ_ONCE(queue->due) ||
		       (READ_ONCE(queue->may_be_due) && !nowait) ? 0 : -EAGAIN;
	if (nr < 0)
		return nr == -EAGAIN && !nowait ? -EINTR : nr;
	return given ?: -EFAULT;
}

/* Fills the buffer with due records. Returns bytes, or an error if there are
 * none.
 */
static ssize_t read_due(struct expiry_queue *queue, struct iov_iter *to,
			bool nowait)
{
	int tries = COPY_TRIES, ret = 0;
	ssize_t done = 0;

	while (iov_iter_count(to) >= sizeof(struct expiry_record)) {
		ret = read_chunk(queue, to, nowait);
		if (ret > 0)
			done += ret * sizeof(struct expiry_record);
		else if (ret && (ret != -EFAULT || !tries--))
			break;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
	}
	return done ?: ret;
}

/**
 * expiry_read - read due records
 * @queue: a configured one
 * @to: the reader's buffer
 * @nonblock: do not wait for a timer to become due
 * @nowait: do not wait for anything
 *
 * Returns bytes, of whole records; -EINVAL (no room for one), -EFAULT, -EAGAIN
 * (nothing is due, or @nowait), -ERESTARTSYS, -EINTR, -ENOMEM or -EIO (a page
 * is not available; nothing is lost).
 */
ssize_t expiry_read(struct expiry_queue *queue, struct iov_iter *to,
		    bool nonblock, bool nowait)
{
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct expiry_record))
		return -EINVAL;
	for (;;) {
		ret = read_due(queue, to, nowait);
		if (ret != -EAGAIN || nonblock || nowait)
			return ret;
		ret = wait_event_interruptible(queue->wait,
					       READ_ONCE(queue->due));
		if (ret)
			return ret;
	}
}
