/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declared queues: making them, and updating them from their files. */
#ifndef DAEMON_DECLARE_H
#define DAEMON_DECLARE_H

#include <stdint.h>

struct declaration;
struct declarations;
struct queue;
struct context;
struct shared;

/* Makes a queue as its file says. Returns 0 or -errno: -EACCES if the file has a
 * fault, or as queue_new().
 */
int declare_queue(struct context *context,
		  const struct declaration *declaration, struct queue **queuep);

/* Makes a declared queue that does not exist (any more). Logs a failure. */
void declare_anew(struct context *context,
		  const struct declaration *declaration);

/* Makes the declared queues of this thread and updates existing ones. Called at
 * the start, and in each thread after declare_read(). @declared: the set in force, which
 * the first thread hands over: it may have read another one since.
 */
void declare_all(struct context *context, const struct declarations *declared);

/* Reads the files again for all threads, in the first one. The previous set
 * stays until declare_done(), after each thread has called declare_all().
 */
void declare_read(struct context *context);
void declare_done(struct shared *shared);

#endif /* DAEMON_DECLARE_H */
