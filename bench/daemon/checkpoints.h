/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's checkpoints, by the names in its journal's directory. */
#ifndef BENCH_DAEMON_CHECKPOINTS_H
#define BENCH_DAEMON_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to watch; ends the program if that is not possible. */
void checkpoints_watch(const char *folder);

/* Returns whether a checkpoint is being written: from its file's beginning to its
 * final name.
 */
bool checkpoints_in_progress(void);

/* Returns when none is, nor begins; ends the program after a minute. */
void checkpoints_await_end(void);

/* Notes how long a batch took that is answered now. */
void checkpoints_time(uint64_t took_ns);

/* Prints all of those times so far, and the checkpoints that have ended, as members
 * of an object.
 */
void checkpoints_print(void);

#endif /* BENCH_DAEMON_CHECKPOINTS_H */
