// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands, by ioctl and by io_uring. Input from userspace is copied once,
 * checked, then used. User memory is never accessed under the queue's lock.
 */
#include <linux/align.h>
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "cmd.h"
#include "compat/compat.h"
#include "params.h"
#include "queue.h"
#ifdef EXPIRY_BINARY
#include "bheap_binary.h"
#endif

/* Returns the limit that a configuration requests, or an error. */
static s64 limit_of(const struct expiry_config *config)
{
	u64 most = READ_ONCE(expiry_param_timers_max);
	u64 limit = config->limit;

	if (!limit)
		limit = min_t(u64, READ_ONCE(expiry_param_timers_default), most);
	if (limit > most && !capable(CAP_SYS_RESOURCE))
		return -EPERM;
	return limit && limit <= TIMERS_MAX ? limit : -EINVAL;
}

static int cmd_config(struct expiry_queue *queue, void __user *arg)
{
	struct expiry_config config;
	s64 limit;

	if (copy_from_user(&config, arg, sizeof(config)))
		return -EFAULT;
	if (!expiry_clock_valid(config.clock_id) ||
	    config.mode & ~EXPIRY_MODE_ALL || config.reserved)
		return -EINVAL;
	limit = limit_of(&config);
	if (limit < 0)
		return limit;
	config.limit = limit;

	/* Copy the limit out first: after configuring it would be too late to
	 * fail.
	 */
	if (expiry_queue_is_configured(queue))
		return -EBUSY;
	if (copy_to_user(arg, &config, sizeof(config)))
		return -EFAULT;
	return expiry_queue_configure(queue, &config);
}

static int cmd_layout(struct expiry_queue *queue, unsigned long number)
{
	switch (number) {
	case EXPIRY_LAYOUT_SUBTREE:
		return expiry_queue_set_layout(queue, &bheap_subtree);
	case EXPIRY_LAYOUT_SORTED:
		return expiry_queue_set_layout(queue, &bheap_sorted);
	case EXPIRY_LAYOUT_RADIX:
		return expiry_queue_set_layout(queue, &bheap_radix);
#ifdef EXPIRY_BINARY
	case EXPIRY_LAYOUT_BINARY:
		return expiry_queue_set_layout(queue, &bheap_binary);
#endif
	default:
		return -EINVAL;
	}
}

static int check_batch(const struct expiry_queue *queue, u64 addr, u32 count,
		       u32 flags)
{
	if (flags || !count || count > EXPIRY_BATCH_MAX ||
	    !IS_ALIGNED(addr, sizeof(u64)))
		return -EINVAL;
	return expiry_queue_is_configured(queue) ? 0 : -ENOTCONN;
}

static struct expiry_record __user *user_records(u64 addr)
{
	return u64_to_user_ptr(addr);
}

/* Returns whether a byte can be written, by writing back the value just read.
 */
static bool is_writable(void __user *user, const void *kernel)
{
	return !put_user(*(const u8 *)kernel, (u8 __user *)user);
}

/*
 * Copies in the records whose replies can be copied out. Returns how many:
 * fewer than @count where the memory ends. The records are in at most two
 * pages, so checking the first byte and the last is enough.
 */
static u32 copy_in(struct expiry_record *records,
		   struct expiry_record __user *user, u32 count)
{
	size_t size = count * sizeof(*records), page;

	BUILD_BUG_ON(EXPIRY_CHUNK * sizeof(*records) > PAGE_SIZE);

	size -= copy_from_user(records, user, size);
	size = rounddown(size, sizeof(*records));
	if (!size || !is_writable(user, records))
		return 0;
	if (!is_writable((void __user *)user + size - 1,
			 (void *)records + size - 1)) {
		page = PAGE_SIZE - offset_in_page((unsigned long)user);
		size = min(size, rounddown(page, sizeof(*records)));
	}
	return size / sizeof(*records);
}

/*
 * Processes up to one chunk of a batch from record @done on. Returns how many
 * were processed, or an error if none were. -EAGAIN: it would have to wait for
 * the lock or a page (@nowait).
 */
static int submit_chunk(struct expiry_queue *queue,
			const struct expiry_batch *batch, u32 done, bool nowait)
{
	struct expiry_record __user *user = user_records(batch->addr) + done;
	struct expiry_record records[EXPIRY_CHUNK];
	struct expiry_use use = { .nowait = nowait };
	u32 count, nr = 0, more;
	size_t left;
	int err;

	count = copy_in(records, user, min(batch->count - done, EXPIRY_CHUNK));
	if (!count)
		return -EFAULT;

	do {
		err = expiry_queue_lock(queue, &use);
		if (err)
			break;
		more = nr < count ?
		       expiry_queue_submit_locked(queue, records + nr,
						  count - nr) : 0;
		nr += more;
		expiry_queue_unlock(queue, &use);
		if (more)
			use.tries = 0;
		/* A page is missing for the next record, or for a sweep. */
	} while (expiry_use_fetch(queue, &use));
	if (!nr)
		return err ?: nowait ? -EAGAIN : -EINTR;

	/* Fails only if another thread has just unmapped the memory. */
	left = copy_to_user(user, records, nr * sizeof(*records));
	nr -= DIV_ROUND_UP(left, sizeof(*records));
	return nr ?: -EFAULT;
}

/**
 * submit - process a batch
 * @queue: a configured one
 * @batch: checked, in kernel memory
 * @done: in: first record; out: first record left
 * @nowait: return rather than wait
 *
 * Returns 0 at the end of the batch, else the error that stopped it.
 */
static int submit(struct expiry_queue *queue, const struct expiry_batch *batch,
		  u32 *done, bool nowait)
{
	int ret;

	while (*done < batch->count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		ret = submit_chunk(queue, batch, *done, nowait);
		if (ret > 0)
			*done += ret;
		else
			return ret;
		cond_resched();
	}
	return 0;
}

static int cmd_submit(struct expiry_queue *queue, const void __user *arg)
{
	struct expiry_batch batch;
	u32 done = 0;
	int err;

	if (copy_from_user(&batch, arg, sizeof(batch)))
		return -EFAULT;
	err = check_batch(queue, batch.addr, batch.count, batch.flags);
	if (err)
		return err;
	err = submit(queue, &batch, &done, false);
	return done ?: err;
}

static int cmd_stat(struct expiry_queue *queue, void __user *arg)
{
	struct expiry_stat stat;
	int err;

	if (!expiry_queue_is_configured(queue))
		return -ENOTCONN;
	err = expiry_queue_lock_to_look(queue);
	if (err)
		return err;
	expiry_queue_stat_locked(queue, &stat);
	expiry_queue_unlock(queue, NULL);
	return copy_to_user(arg, &stat, sizeof(stat)) ? -EFAULT : 0;
}

static int cmd_rewind(struct expiry_queue *queue)
{
	if (!expiry_queue_is_configured(queue))
		return -ENOTCONN;
	if (!(queue->timers.mode & EXPIRY_MODE_ACK))
		return -EINVAL;
	return expiry_queue_rewind(queue);
}

/*
 * Lists up to one chunk of timers. Returns how many, or an error. Advances
 * *@cursor only after they have reached the caller.
 */
static int scan_chunk(struct expiry_queue *queue,
		      struct expiry_record __user *user, u32 count, u64 *cursor)
{
	struct expiry_record records[EXPIRY_CHUNK];
	struct expiry_use use = { };
	u64 next = *cursor;
	int ret;

	do {
		ret = expiry_queue_lock(queue, &use);
		if (ret)
			return ret;
		ret = expiry_queue_scan_locked(queue, records,
					       min(count, EXPIRY_CHUNK), &next);
		expiry_queue_unlock(queue, &use);
	} while (ret == -EAGAIN && expiry_use_fetch(queue, &use));
	if (ret < 0)
		return ret == -EAGAIN ? -EINTR : ret;
	if (copy_to_user(user, records, ret * sizeof(*records)))
		return -EFAULT;
	*cursor = next;
	return ret;
}

static int cmd_scan(struct expiry_queue *queue, void __user *arg)
{
	struct expiry_scan __user *user = arg;
	struct expiry_scan scan;
	u32 done = 0;
	int ret;

	if (copy_from_user(&scan, user, sizeof(scan)))
		return -EFAULT;
	ret = check_batch(queue, scan.addr, scan.count, scan.flags);
	if (ret)
		return ret;
	do {
		ret = scan_chunk(queue, user_records(scan.addr) + done,
				 scan.count - done, &scan.cursor);
		if (ret < 0)
			break;
		done += ret;
		cond_resched();
		/* A signal ends the scan early, with the timers listed so far.
		 */
	} while (done < scan.count && scan.cursor && !signal_pending(current));

	if (ret < 0 && !done)
		return ret;
	return put_user(scan.cursor, &user->cursor) ? -EFAULT : done;
}

/**
 * expiry_cmd_ioctl - run a command by ioctl
 * @queue: the file's
 * @cmd: EXPIRY_IOC_*
 * @arg: its argument: an address or, for LAYOUT, a number
 *
 * Returns the command's result, -ENOTTY if there is no such command.
 */
long expiry_cmd_ioctl(struct expiry_queue *queue, unsigned int cmd,
		      void __user *arg)
{
	BUILD_BUG_ON(sizeof(struct expiry_record) != 32);
	BUILD_BUG_ON(sizeof(struct expiry_config) != 32);
	BUILD_BUG_ON(sizeof(struct expiry_batch) != 16);
	BUILD_BUG_ON(sizeof(struct expiry_scan) != 24);
	BUILD_BUG_ON(sizeof(struct expiry_stat) != 512);

	switch (cmd) {
	case EXPIRY_IOC_CONFIG:
		return cmd_config(queue, arg);
	case EXPIRY_IOC_SUBMIT:
		return cmd_submit(queue, arg);
	case EXPIRY_IOC_STAT:
		return cmd_stat(queue, arg);
	case EXPIRY_IOC_SCAN:
		return cmd_scan(queue, arg);
	case EXPIRY_IOC_REWIND:
		return cmd_rewind(queue);
	case EXPIRY_IOC_LAYOUT:
		return cmd_layout(queue, (unsigned long)arg);
	default:
		return -ENOTTY;
	}
}

/**
 * expiry_cmd_uring - run a command by io_uring
 * @queue: the file's
 * @cmd: its area of 16 bytes holds a struct expiry_batch
 * @issue_flags: of io_uring
 *
 * First issued in the submitter's context, where it must not wait. If the first
 * record would wait, -EAGAIN passes the command to a worker. If a later one would,
 * the command completes short: a command that waits for its worker can be
 * cancelled, and then nothing of it was done.
 *
 * Returns -EAGAIN, -EIOCBQUEUED (completed), or -EOPNOTSUPP, -EINVAL,
 * -ENOTCONN.
 */
int expiry_cmd_uring(struct expiry_queue *queue, struct io_uring_cmd *cmd,
		     unsigned int issue_flags)
{
	bool nowait = issue_flags & IO_URING_F_NONBLOCK;
	const struct expiry_batch *user;
	struct expiry_batch batch;
	u32 done = 0;
	int err;

	if (cmd->cmd_op != EXPIRY_IOC_SUBMIT)
		return -EOPNOTSUPP;
	user = compat_cmd_batch(cmd);
	batch.addr = READ_ONCE(user->addr);
	batch.count = READ_ONCE(user->count);
	batch.flags = READ_ONCE(user->flags);
	err = check_batch(queue, batch.addr, batch.count, batch.flags);
	if (err)
		return err;
	err = submit(queue, &batch, &done, nowait);
	if (err == -EAGAIN && !done)
		return err;
	return compat_cmd_done(cmd, done ?: err, issue_flags);
}
