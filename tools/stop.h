/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for records until Ctrl-C.
 */
#ifndef TOOLS_STOP_H
#define TOOLS_STOP_H

struct expiry;

/* Turns SIGINT and SIGTERM into a descriptor. Returns it, or -errno. */
int stop_open(void);

/* Waits until the handle may have something. Returns 0, 1 when a signal says stop,
 * or -errno.
 */
int stop_wait(int stop_fd, struct expiry *handle);

#endif /* TOOLS_STOP_H */
