/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for records until Ctrl-C.
 */
#ifndef TOOLS_STOP_H
#define TOOLS_STOP_H

struct expiry;

/* Redirects SIGINT and SIGTERM to a descriptor. Returns the descriptor, or -errno. */
int stop_open(void);

/* Waits until the handle may have a record. Returns 0, 1 after such a signal, or
 * -errno.
 */
int stop_wait(int stop_fd, struct expiry *handle);

#endif /* TOOLS_STOP_H */
