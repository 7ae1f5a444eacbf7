/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* STAT: the figures of a queue and of the daemon. */
#ifndef DAEMON_STAT_H
#define DAEMON_STAT_H

#include <stdbool.h>

struct buffer;
struct client;

/* Answers STAT, the next record of @buffer. Returns false if there is no room in
 * this turn.
 */
bool stat_reply(struct client *client, struct buffer *buffer);

#endif /* DAEMON_STAT_H */
