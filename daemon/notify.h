/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages to the service manager (sd_notify(3)): one datagram each, in order,
 * to the socket that NOTIFY_SOCKET names. Without one they all do nothing.
 *
 * Our own few lines and not libsystemd's, which wait without end for a manager
 * that does not read: the loop must not.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>

/* Look at the environment. */
void notify_init(void);
void notify_deinit(void);

/* Whether there is anybody to notify. */
bool notify_enabled(void);

/* Sends what the format makes, without waiting: -EAGAIN where the manager is
 * behind. Returns 0, also if there is nobody to notify, or -errno.
 */
int notify_tell(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Likewise, and the descriptor @fd with it unless that is -1. A manager that is
 * behind is waited for, at most NOTIFY_WAIT_MS, and after one wait in vain not at
 * all until it reads again: a queue is to be in its store before the first client
 * has an answer.
 */
#define NOTIFY_WAIT_MS	200
int notify_send(int fd, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* DAEMON_NOTIFY_H */
