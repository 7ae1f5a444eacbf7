/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for records until Ctrl-C.
 */
#ifndef TOOLS_STOP_H
#define TOOLS_STOP_H

#include "tools/ctl.h"

/* Redirects SIGINT and SIGTERM to a descriptor. Returns the descriptor, or -errno. */
int stop_open(void);

/* Prints the head of expirations, and calls @take(@state) until *@left is 0, or SIGINT
 * or SIGTERM arrives. @take() prints received records, and returns their number or
 * -errno; after 0 the next record is awaited. Returns 0 or -errno.
 */
int stop_follow(const struct ctl *ctl, const uint64_t *left,
		int (*take)(void *state), void *state);

/* Returns the exit status for a result of stop_follow(), with the reason printed. */
int stop_status(const struct ctl *ctl, int result);

#endif /* TOOLS_STOP_H */
