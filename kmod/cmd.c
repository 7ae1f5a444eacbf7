// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands, by ioctl and by io_uring. Input from userspace is copied once,
 * checked, then used. User memory is never accessed under the queue's lock.
 */
#include <linux/align.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/stddef.h>
#include <linux/time.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "cmd.h"
#include "compat/compat.h"
#include "params.h"
#include "queue.h"
#include "step.h"
#include "timens.h"
#ifdef EXPIRY_BINARY
#include "bheap_binary.h"
#endif

/* A command's number without the size of its struct, which may grow. */
#define NO_SIZE(cmd)		((cmd) & ~IOCSIZE_MASK)

/* The structs up to their last field without a default. */
#define FEATURES_SIZE_LEAST		offsetofend(struct expiry_features, batch_max)
#define CONFIG_SIZE_LEAST	offsetofend(struct expiry_config, mode)
#define BATCH_SIZE_LEAST	offsetofend(struct expiry_batch, count)
#define SCAN_SIZE_LEAST		offsetofend(struct expiry_scan, cursor)
#define STAT_SIZE_LEAST		offsetofend(struct expiry_stat, next_ns)

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

/* Returns 0 if the caller may use the clock: an alarm takes a capability, and a
 * machine that has one.
 */
static int check_alarm(u32 clock_id)
{
	if (clock_id != CLOCK_BOOTTIME_ALARM)
		return 0;
	if (!capable(CAP_WAKE_ALARM))
		return -EPERM;
	return compat_has_alarm() ? 0 : -EOPNOTSUPP;
}

static int check_config_flags(const struct expiry_config *config)
{
	if (config->flags & ~EXPIRY_CONFIG_CLOCK_SET || config->reserved)
		return -EINVAL;
	if (!config->flags)
		return 0;
	if (config->clock_id != CLOCK_REALTIME)
		return -EINVAL;
	return expiry_step_supported() ? 0 : -EOPNOTSUPP;
}

/* Copies back what the caller's struct of @size has room for. */
static int copy_back(void __user *user, size_t size, const void *kernel,
		     size_t kernel_size)
{
	size_t both = min(size, kernel_size);

	if (copy_to_user(user, kernel, both) ||
	    clear_user(user + both, size - both))
		return -EFAULT;
	return 0;
}

static int cmd_config(struct expiry_queue *queue, void __user *arg, size_t size)
{
	struct expiry_config config;
	s64 limit;
	int err;

	if (size < CONFIG_SIZE_LEAST)
		return -EINVAL;
	err = copy_struct_from_user(&config, sizeof(config), arg, size);
	if (err)
		return err;
	if (!expiry_clock_valid(config.clock_id) ||
	    config.mode & ~EXPIRY_MODE_ALL)
		return -EINVAL;
	err = check_config_flags(&config) ?: check_alarm(config.clock_id);
	if (err)
		return err;
	limit = limit_of(&config);
	if (limit < 0)
		return limit;
	config.limit = limit;

	/* Copy the limit out first: after configuring it would be too late to
	 * fail.
	 */
	if (expiry_queue_is_configured(queue))
		return -EBUSY;
	err = copy_back(arg, size, &config, sizeof(config));
	return err ?: expiry_queue_configure(queue, &config);
}

static int cmd_features(void __user *arg, size_t size)
{
	struct expiry_features info = {
		.abi = EXPIRY_ABI,
		.batch_max = EXPIRY_BATCH_MAX,
		.features = EXPIRY_FEATURE_URING_CMD | EXPIRY_FEATURE_COUNT |
			    EXPIRY_FEATURE_TIME_NS,
		.clocks = expiry_clock_all(),
		.modes = EXPIRY_MODE_ALL,
		.layouts = BIT(EXPIRY_LAYOUT_SUBTREE) |
			   BIT(EXPIRY_LAYOUT_SORTED) |
			   BIT(EXPIRY_LAYOUT_RADIX),
		.ops = GENMASK(EXPIRY_OP_CLEAR, EXPIRY_OP_ARM),
		.record_flags = EXPIRY_F_RELATIVE | EXPIRY_F_REDELIVERED |
				EXPIRY_F_NEW | EXPIRY_F_LATER,
		.limit_max = READ_ONCE(expiry_param_timers_max),
		.config_size = sizeof(struct expiry_config),
		.batch_size = sizeof(struct expiry_batch),
		.scan_size = sizeof(struct expiry_scan),
		.stat_size = sizeof(struct expiry_stat),
	};

	if (size < FEATURES_SIZE_LEAST)
		return -EINVAL;
	if (!compat_has_alarm())
		info.clocks &= ~BIT(CLOCK_BOOTTIME_ALARM);
	if (expiry_step_supported())
		info.config_flags |= EXPIRY_CONFIG_CLOCK_SET;
	info.limit_default = min_t(u64, READ_ONCE(expiry_param_timers_default),
				   info.limit_max);
	return copy_back(arg, size, &info, sizeof(info));
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
	u32 nr;

	BUILD_BUG_ON(EXPIRY_CHUNK * sizeof(*records) > PAGE_SIZE);

	size -= copy_from_user(records, user, size);
	nr = size / sizeof(*records);
	/* Some architectures end a copy well before the byte that is missing. */
	while (unlikely(nr < count) &&
	       !copy_from_user(&records[nr], &user[nr], sizeof(*records)))
		nr++;
	size = nr * sizeof(*records);
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
	s64 offset_ns = expiry_timens_offset(queue->clock_id);
	struct expiry_record records[EXPIRY_CHUNK] __uninitialized;
	struct expiry_use use = { .nowait = nowait };
	u32 count, nr = 0, more;
	u64 asked_ns[EXPIRY_CHUNK] __uninitialized;
	size_t left;
	int err;

	count = copy_in(records, user, min(batch->count - done, EXPIRY_CHUNK));
	if (!count)
		return -EFAULT;
	if (unlikely(offset_ns))
		expiry_timens_enter(records, count, asked_ns, offset_ns);

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

	if (unlikely(offset_ns))
		expiry_timens_leave(records, count, asked_ns, offset_ns);
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

static int cmd_submit(struct expiry_queue *queue, const void __user *arg,
		      size_t size)
{
	struct expiry_batch batch;
	u32 done = 0;
	int err;

	if (size < BATCH_SIZE_LEAST)
		return -EINVAL;
	err = copy_struct_from_user(&batch, sizeof(batch), arg, size);
	if (err)
		return err;
	err = check_batch(queue, batch.addr, batch.count, batch.flags);
	if (err)
		return err;
	err = submit(queue, &batch, &done, false);
	return done ?: err;
}

static int cmd_stat(struct expiry_queue *queue, void __user *arg, size_t size)
{
	struct expiry_stat stat;
	s64 offset_ns;
	int err;

	if (size < STAT_SIZE_LEAST)
		return -EINVAL;
	if (!expiry_queue_is_configured(queue))
		return -ENOTCONN;
	err = expiry_queue_lock_to_look(queue);
	if (err)
		return err;
	expiry_queue_stat_locked(queue, &stat);
	expiry_queue_unlock(queue, NULL);
	offset_ns = expiry_timens_offset(queue->clock_id);
	stat.now_ns = expiry_timens_from_host(stat.now_ns, offset_ns);
	stat.next_ns = expiry_timens_from_host(stat.next_ns, offset_ns);
	return copy_back(arg, size, &stat, sizeof(stat));
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
	s64 offset_ns = expiry_timens_offset(queue->clock_id);
	struct expiry_record records[EXPIRY_CHUNK] __uninitialized;
	struct expiry_use use = { };
	u64 next = *cursor;
	int i, ret;

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
	for (i = 0; i < ret && offset_ns; i++)
		records[i].deadline_ns =
			expiry_timens_from_host(records[i].deadline_ns,
						offset_ns);
	if (copy_to_user(user, records, ret * sizeof(*records)))
		return -EFAULT;
	*cursor = next;
	return ret;
}

static int cmd_scan(struct expiry_queue *queue, void __user *arg, size_t size)
{
	struct expiry_scan __user *user = arg;
	struct expiry_scan scan;
	u32 done = 0;
	int ret;

	if (size < SCAN_SIZE_LEAST)
		return -EINVAL;
	ret = copy_struct_from_user(&scan, sizeof(scan), user, size);
	if (ret)
		return ret;
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

/* Returns the mode of the file that a command needs, or -ENOTTY. */
static int mode_needed(unsigned int cmd)
{
	switch (NO_SIZE(cmd)) {
	case NO_SIZE(EXPIRY_IOC_CONFIG):
	case NO_SIZE(EXPIRY_IOC_SUBMIT):
		return (__force int)FMODE_WRITE;
	case NO_SIZE(EXPIRY_IOC_REWIND):
	case NO_SIZE(EXPIRY_IOC_LAYOUT):
		return _IOC_SIZE(cmd) ? -ENOTTY : (__force int)FMODE_WRITE;
	case NO_SIZE(EXPIRY_IOC_STAT):
	case NO_SIZE(EXPIRY_IOC_SCAN):
		return (__force int)FMODE_READ;
	case NO_SIZE(EXPIRY_IOC_FEATURES):
		return 0;
	default:
		return -ENOTTY;
	}
}

/**
 * expiry_cmd_ioctl - run a command by ioctl
 * @queue: the file's
 * @mode: of the file
 * @cmd: EXPIRY_IOC_*; the size in it is that of the caller's struct
 * @arg: its argument: an address or, for LAYOUT, a number
 *
 * Returns the command's result, -ENOTTY if there is no such command, -EBADF if
 * the file is not open for it.
 */
long expiry_cmd_ioctl(struct expiry_queue *queue, fmode_t mode,
		      unsigned int cmd, void __user *arg)
{
	size_t size = _IOC_SIZE(cmd);
	int needed = mode_needed(cmd);

	BUILD_BUG_ON(sizeof(struct expiry_record) != 32);
	BUILD_BUG_ON(sizeof(struct expiry_config) != 32);
	BUILD_BUG_ON(sizeof(struct expiry_batch) != 16);
	BUILD_BUG_ON(sizeof(struct expiry_scan) != 24);
	BUILD_BUG_ON(sizeof(struct expiry_stat) != 512);

	if (needed < 0)
		return needed;
	if (((__force int)mode & needed) != needed)
		return -EBADF;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(EXPIRY_IOC_CONFIG):
		return cmd_config(queue, arg, size);
	case _IOC_NR(EXPIRY_IOC_SUBMIT):
		return cmd_submit(queue, arg, size);
	case _IOC_NR(EXPIRY_IOC_STAT):
		return cmd_stat(queue, arg, size);
	case _IOC_NR(EXPIRY_IOC_SCAN):
		return cmd_scan(queue, arg, size);
	case _IOC_NR(EXPIRY_IOC_REWIND):
		return cmd_rewind(queue);
	case _IOC_NR(EXPIRY_IOC_LAYOUT):
		return cmd_layout(queue, (unsigned long)arg);
	default:
		return cmd_features(arg, size);
	}
}

/*
 * Copies a batch of @size bytes out of the SQE, by the rules of
 * copy_struct_from_user(). The ring is shared with its user, so each field is
 * read once. An SQE has 16 bytes for it, with IORING_SETUP_SQE128 80.
 */
static int batch_of_sqe(struct expiry_batch *batch,
			const struct expiry_batch *sqe, size_t size,
			unsigned int issue_flags)
{
	size_t room = issue_flags & IO_URING_F_SQE128 ? 80 : sizeof(*batch), i;
	const u8 *bytes = (const void *)sqe;

	if (size < BATCH_SIZE_LEAST || size > room)
		return -EINVAL;
	for (i = sizeof(*batch); i < size; i++)
		if (READ_ONCE(bytes[i]))
			return -E2BIG;
	batch->addr = READ_ONCE(sqe->addr);
	batch->count = READ_ONCE(sqe->count);
	batch->flags = size < sizeof(*batch) ? 0 : READ_ONCE(sqe->flags);
	return 0;
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
 * Returns -EAGAIN, -EIOCBQUEUED (completed), or -EOPNOTSUPP, -EINVAL, -E2BIG,
 * -EBADF, -ENOTCONN.
 */
int expiry_cmd_uring(struct expiry_queue *queue, struct io_uring_cmd *cmd,
		     unsigned int issue_flags)
{
	bool nowait = issue_flags & IO_URING_F_NONBLOCK;
	struct expiry_batch batch;
	u32 done = 0;
	int err;

	if (NO_SIZE(cmd->cmd_op) != NO_SIZE(EXPIRY_IOC_SUBMIT))
		return -EOPNOTSUPP;
	if (!(cmd->file->f_mode & FMODE_WRITE))
		return -EBADF;
	err = batch_of_sqe(&batch, compat_cmd_batch(cmd),
			   _IOC_SIZE(cmd->cmd_op), issue_flags) ?:
	      check_batch(queue, batch.addr, batch.count, batch.flags);
	if (err)
		return err;
	err = submit(queue, &batch, &done, nowait);
	if (err == -EAGAIN && !done)
		return err;
	return compat_cmd_done(cmd, done ?: err, issue_flags);
}
