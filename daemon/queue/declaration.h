/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations: files NAME.conf that declare queues and their access,
 * expiry.queue(5). The first thread reads the set as a whole; it is const from
 * then on.
 */
#ifndef DAEMON_DECLARATION_H
#define DAEMON_DECLARATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

struct config;
struct directory;
struct directory_entry;

/* No layout in the file: the one of expiryd.conf(5). */
#define LAYOUT_CONFIGURED	UINT32_MAX

/**
 * struct declaration - a queue's file
 * @name: the queue's name
 * @path: the file's path
 * @is_good: no fault; else only @name and @path count
 * @is_mask: the file says that the queue does not exist
 * @uid: owner
 * @gid: group, ACCESS_NO_GROUP = none
 * @access: mode, as chmod(2)
 * @clock_id: clock
 * @mode: EXPIRY_MODE_*
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
	uint64_t limit;
	uint64_t slack_ns;
	uint32_t layout;
	struct directory_entry *in_directory;
};

/**
 * struct declarations - all declarations, by name
 * @directory: has their entries, NULL = none were taken
 */
struct declarations {
	struct declaration *all;
	uint32_t nr;
	struct directory *directory;
};

/* Reads a file into @declaration, whose @path is set (queue-file.c). Returns 0,
 * or -errno after a line in the log for each fault.
 */
int queue_file_read(struct declaration *declaration);

/* Reads the files of all folders that @config names, in order: a name in an
 * earlier folder hides later ones. @directory gives each queue its thread;
 * NULL: only read. Returns the set of good and faulty files; NULL: no memory.
 * *@faults: the number of faults, each of them in the log.
 */
struct declarations *declarations_read(const struct config *config,
				       struct directory *directory,
				       uint32_t *faults);

/* Frees a set; NULL is allowed. */
void declarations_free(struct declarations *set);

/* Returns the declaration of the queue @name, EXPIRY_NAME_MAX bytes, or NULL. */
const struct declaration *declarations_find(const struct declarations *set,
					    const char *name);

#endif /* DAEMON_DECLARATION_H */
