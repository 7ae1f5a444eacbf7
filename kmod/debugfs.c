// SPDX-License-Identifier: GPL-2.0-only
/*
 * All queues: /sys/kernel/debug/expiry/queues, for root, and the numbers of
 * queues created and destroyed. The fdinfo of a queue's file describes that
 * queue.
 */
#include <linux/compiler.h>
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/user_namespace.h>

#include "clock.h"
#include "debugfs.h"
#include "queue_state.h"
#include "registry.h"

static struct dentry *dir;

static void *queues_start(struct seq_file *m, loff_t *pos)
{
	mutex_lock(&expiry_registry_lock);
	return seq_list_start_head(&expiry_registry_queues, *pos);
}

static void *queues_next(struct seq_file *m, void *item, loff_t *pos)
{
	return seq_list_next(item, &expiry_registry_queues, pos);
}

static void queues_stop(struct seq_file *m, void *item)
{
	mutex_unlock(&expiry_registry_lock);
}

/*
 * Prints a queue without taking its lock: neither waits for the other. The
 * values may be inconsistent with each other.
 */
static int queues_show(struct seq_file *m, void *item)
{
	const struct expiry_queue *queue;
	const struct timers *timers;

	if (item == &expiry_registry_queues) {
		seq_puts(m, "queue uid clock mode layout armed unacked nodes pinned delivered lateness-max-ns due\n");
		return 0;
	}
	queue = list_entry(item, struct expiry_queue, registered);
	seq_printf(m, "%u %u ", queue->serial,
		   from_kuid_munged(seq_user_ns(m), queue->owner));
	if (!expiry_queue_is_configured(queue)) {
		seq_puts(m, "- - - 0 0 0 0 0 0 0\n");
		return 0;
	}
	timers = &queue->timers;
	seq_printf(m, "%s %s%s %s %llu %llu %u %u %llu %llu %d\n",
		   expiry_clock_name(queue->clock_id),
		   timers->mode & EXPIRY_MODE_KEYED ? "keyed" : "plain",
		   timers->mode & EXPIRY_MODE_ACK ? ",ack" : "",
		   queue->layout->name, READ_ONCE(timers->armed),
		   READ_ONCE(timers->unacked), READ_ONCE(timers->heap.nr),
		   READ_ONCE(queue->memory.pinned),
		   READ_ONCE(timers->stat.delivered),
		   READ_ONCE(timers->stat.lateness_max_ns),
		   READ_ONCE(queue->due));
	return 0;
}

static const struct seq_operations queues_sops = {
	.start = queues_start,
	.next = queues_next,
	.stop = queues_stop,
	.show = queues_show,
};

DEFINE_SEQ_ATTRIBUTE(queues);

/**
 * expiry_debugfs_init - create the files when the module is loaded
 *
 * A kernel without debugfs has no such files.
 */
void expiry_debugfs_init(void)
{
	dir = debugfs_create_dir("expiry", NULL);
	debugfs_create_file("queues", 0400, dir, NULL, &queues_fops);
	debugfs_create_atomic_t("created", 0400, dir,
				&expiry_registry_created);
	debugfs_create_atomic_t("destroyed", 0400, dir,
				&expiry_registry_destroyed);
}

/**
 * expiry_debugfs_exit - remove the files when the module is unloaded
 */
void expiry_debugfs_exit(void)
{
	debugfs_remove(dir);
}
