/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations: files NAME.conf that say which queues there are and who may use
 * them, expiry.queue(5). The set is read as a whole, in the first thread, and is
 * const from then on.
 */
#ifndef DAEMON_DECLARATION_H
#define DAEMON_DECLARATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

struct config;
struct directory;
struct place;

/* No layout in the file: the one of expiryd.conf(5). */
#define LAYOUT_CONFIGURED	UINT32_MAX

/**
 * struct declaration - a queue's file
 * @name: of the queue
 * @path: of the file
 * @is_good: the file has no error; of one that has only @name and @path count
 * @is_mask: the file says that there is no such queue
 * @uid: owner; likewise @gid, ACCESS_NO_GROUP = none, and @access, as chmod(2)
 * @clock_id: likewise @mode, EXPIRY_MODE_*
 * @limit: most timers, 0 = as expiryd.conf(5) says
 * @slack_ns: how late the kernel may wake
 * @layout: EXPIRY_LAYOUT_* or LAYOUT_CONFIGURED
 * @place: where the queue is or will be, a reference
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
	struct place *place;
};

/**
 * struct declarations - all of them, by name
 * @directory: which has their places, NULL = none were asked for
 */
struct declarations {
	struct declaration *all;
	uint32_t nr;
	struct directory *directory;
};

/* queue-file.c: Reads a file into @declaration, whose @path is set. Returns 0, or
 * -errno after a line in the log for each fault.
 */
int queue_file_read(struct declaration *declaration);

/* Reads the files of all directories that @config names, the first one first: a
 * name that was there hides later ones. @directory: gives each queue its thread;
 * NULL: only read. Returns the set, which has good files and faulty ones, or NULL
 * if there is no memory; *@faults: how many faults there are, each of them in
 * the log.
 */
struct declarations *declarations_read(const struct config *config,
				       struct directory *directory,
				       uint32_t *faults);

/* NULL is allowed. */
void declarations_free(struct declarations *set);

/* Returns the declaration of the queue @name, EXPIRY_NAME_MAX bytes, or NULL. */
const struct declaration *declarations_find(const struct declarations *set,
					    const char *name);

#endif /* DAEMON_DECLARATION_H */
