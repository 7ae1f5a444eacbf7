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
