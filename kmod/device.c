// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/expiry as a file: each open file is a queue, shared by all processes
 * that have it.
 */
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/uio.h>

#include "clock.h"
#include "cmd.h"
#include "compat/compat.h"
#include "device.h"
#include "queue.h"
#include "read.h"

static int device_open(struct inode *inode, struct file *file)
{
	struct expiry_queue *queue = expiry_queue_new();

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	/* The misc device stored a pointer to itself there. */
	file->private_data = queue;
	/* io_uring may read and poll in the submitter's context. */
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	expiry_queue_free(file->private_data);
	return 0;
}

static ssize_t device_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct expiry_queue *queue = iocb->ki_filp->private_data;

	if (!expiry_queue_is_configured(queue))
		return -ENOTCONN;
	return expiry_read(queue, to, iocb->ki_filp->f_flags & O_NONBLOCK,
			   iocb->ki_flags & IOCB_NOWAIT);
}

static __poll_t device_poll(struct file *file, poll_table *wait)
{
	struct expiry_queue *queue = file->private_data;

	poll_wait(file, &queue->wait, wait);
	if (!expiry_queue_is_configured(queue))
		return EPOLLERR;
	return READ_ONCE(queue->due) ? EPOLLIN | EPOLLRDNORM : 0;
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return expiry_cmd_ioctl(file->private_data, file->f_mode, cmd,
				(void __user *)arg);
}

static int device_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	return expiry_cmd_uring(cmd->file->private_data, cmd, issue_flags);
}

#ifdef CONFIG_PROC_FS
static void device_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct expiry_queue *queue = file->private_data;
	struct expiry_stat stat;
	u32 pinned;

	seq_printf(m, "expiry-queue:\t%u\n", queue->serial);
	if (!expiry_queue_is_configured(queue))
		return;
	if (expiry_queue_lock_to_look(queue))
		return;
	expiry_queue_stat_locked(queue, &stat);
	pinned = queue->memory.pinned;
	expiry_queue_unlock(queue, NULL);

	seq_printf(m, "clock:\t%s\n", expiry_clock_name(queue->clock_id));
	seq_printf(m, "mode:\t%s%s%s\n",
		   stat.mode & EXPIRY_MODE_KEYED ? "keyed" : "plain",
		   stat.mode & EXPIRY_MODE_ACK ? " ack" : "",
		   queue->memory.file ? " pageable" : "");
	seq_printf(m, "layout:\t%s\n", queue->layout->name);
	seq_printf(m, "slack-ns:\t%llu\n", queue->slack_ns);
	seq_printf(m, "limit:\t%llu\n", stat.limit);
	seq_printf(m, "armed:\t%llu\n", stat.armed);
	seq_printf(m, "unacked:\t%llu\n", stat.unacked);
	seq_printf(m, "now-ns:\t%llu\n", stat.now_ns);
	if (stat.next_ns == EXPIRY_NEVER)
		seq_puts(m, "next-ns:\tnever\n");
	else
		seq_printf(m, "next-ns:\t%llu\n", stat.next_ns);
	seq_printf(m, "nodes:\t%llu\n", stat.nodes);
	seq_printf(m, "pages:\theap %llu slots %llu index %llu\n",
		   stat.pages_heap, stat.pages_slots, stat.pages_index);
	seq_printf(m, "pages-resident:\t%llu\n", stat.pages_resident);
	seq_printf(m, "pages-pinned:\t%u\n", pinned);
	seq_printf(m, "arms:\t%llu\n", stat.arms);
	seq_printf(m, "refreshes:\t%llu\n", stat.refreshes);
	seq_printf(m, "cancels:\t%llu\n", stat.cancels);
	seq_printf(m, "acks:\t%llu\n", stat.acks);
	seq_printf(m, "delivered:\t%llu\n", stat.delivered);
	seq_printf(m, "redelivered:\t%llu\n", stat.redelivered);
	seq_printf(m, "past:\t%llu\n", stat.past);
	seq_printf(m, "refused:\t%llu\n", stat.refused);
	seq_printf(m, "refused-limit:\t%llu\n", stat.refused_limit);
	seq_printf(m, "clock-sets:\t%llu\n", stat.clock_sets);
	seq_printf(m, "lateness-max-ns:\t%llu\n", stat.lateness_max_ns);
}
#endif

const struct file_operations expiry_device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.read_iter = device_read_iter,
	.poll = device_poll,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = device_uring_cmd,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = device_show_fdinfo,
#endif
};
