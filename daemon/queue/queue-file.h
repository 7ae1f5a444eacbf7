/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file of one declared queue, expiry.queue(5). */
#ifndef DAEMON_QUEUE_FILE_H
#define DAEMON_QUEUE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

struct directory_entry;

/* No layout in the file: the one of expiryd.conf(5). */
#define LAYOUT_CONFIGURED UINT32_MAX

/**
 * struct declaration - a queue's file
 * @name: the queue's name
 * @path: the file's path
 * @is_good: no fault; else only @name and @path count
 * @is_mask: the file says that the queue does not exist
 * @uid: owner
 * @gid: group, GROUP_NONE = none
 * @access: mode, as chmod(2)
 * @clock_id: clock
 * @mode: EXPIRY_MODE_*
 * @is_durable: it is in the journal
 * @limit: most timers, 0 = as expiryd.conf(5) says
 * @slack_ns: most delay of a wake-up by the kernel
 * @layout: EXPIRY_LAYOUT_* or LAYOUT_CONFIGURED
 * @in_directory: the queue's entry there, a reference
 */
struct declaration {
	char name[EXPIRY_NAME_MAX];
	char *path;
	bool is_good;
	bool is_mask;
	uid_t uid;
	gid_t gid;
	uint32_t access;
	uint32_t clock_id;
	uint32_t mode;
	bool is_durable;
	uint64_t limit;
	uint64_t slack_ns;
	uint32_t layout;
	struct directory_entry *in_directory;
};

/* Reads a file into @declaration, whose @path is set. Returns 0,
 * or -errno after a line in the log for each fault.
 */
int queue_file_read(struct declaration *declaration);

#endif /* DAEMON_QUEUE_FILE_H */
