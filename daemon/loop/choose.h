/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The choice of the loop, and how its failure is logged. */
#ifndef DAEMON_LOOP_CHOOSE_H
#define DAEMON_LOOP_CHOOSE_H

struct loop;
struct loop_ops;

/* Initializes the loop of kind @name. auto: epoll where io_uring is refused.
 * Logs that choice, and a failure. Returns 0 or -errno.
 */
int loop_choose(struct loop *loop, const char *name);

/* Initializes a further thread's loop. Logs a failure. */
int loop_open(struct loop *loop, const struct loop_ops *ops);

#endif /* DAEMON_LOOP_CHOOSE_H */
