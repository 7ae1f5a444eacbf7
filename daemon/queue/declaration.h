/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations: files NAME.conf that declare queues and their access,
 * expiry.queue(5). The first thread reads the set as a whole; it is const from
 * then on.
 */
#ifndef DAEMON_DECLARATION_H
#define DAEMON_DECLARATION_H

#include <stdint.h>

#include "daemon/queue/queue-file.h"

struct config;
struct directory;
struct queue_plan;

/**
 * struct declarations - all declarations, by name
 * @directory: has their entries, NULL = none were taken
 */
struct declarations {
	struct declaration *all;
	uint32_t nr;
	struct directory *directory;
};

/* Reads the files of all folders that @config names, in order: a name in an
 * earlier folder hides later ones. Returns the set of good and faulty files; NULL: no
 * memory. *@faults: the number of faults, each of them in the log.
 */
struct declarations *declarations_read(const struct config *config,
				       uint32_t *faults);

/* Gives each queue its thread. -ENOMEM, after a line in the log. */
int declarations_place(struct declarations *set, struct directory *directory);

/* Frees a set; NULL is allowed. */
void declarations_free(struct declarations *set);

/* Returns the declaration of the queue @name, EXPIRY_NAME_MAX bytes, or NULL. */
const struct declaration *declarations_find(const struct declarations *set,
					    const char *name);

/* Returns the limit of timers that @file, NULL = none, and @config set. */
uint64_t declaration_limit(const struct declaration *file,
			   const struct config *config);

/* Sets limit, slack and layout of a new queue likewise. */
void declaration_apply(const struct declaration *file, const struct config *config,
		       struct queue_plan *plan);

#endif /* DAEMON_DECLARATION_H */
