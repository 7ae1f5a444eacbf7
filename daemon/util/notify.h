/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages to the service manager (sd_notify(3)): one datagram each, in order,
 * to the socket that NOTIFY_SOCKET names. Without one they do nothing.
 *
 * libsystemd's functions wait without end for a manager that does not read. The
 * loop must not, so these replace them.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>

/* Reads the manager's address from the environment. */
void notify_init(void);
void notify_deinit(void);

/* Returns whether there is a manager to notify. */
bool notify_enabled(void);

/* Sends the formatted message without waiting. Returns 0, also without a
 * manager, or -errno. -EAGAIN: the manager does not read.
 */
int notify_tell(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Sends a message with the descriptor @fd, unless that is -1. Waits for a slow
 * manager, at most NOTIFY_WAIT_MS: a queue must be in its store before the
 * first client has an answer. After a timeout it does not wait until the
 * manager reads again.
 */
#define NOTIFY_WAIT_MS	200
int notify_send(int fd, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* DAEMON_NOTIFY_H */
