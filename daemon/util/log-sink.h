/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the log goes: stderr or, where that is the journal, the journal's socket.
 * Both may block without end, so this is for the log's own thread.
 */
#ifndef DAEMON_LOG_SINK_H
#define DAEMON_LOG_SINK_H

#include <stdbool.h>

#include "daemon/util/log-entry.h"

#define LOG_LINE	512

/* Reads the environment: whether stderr is the journal. */
void log_sink_init(void);

/* Writes one line; @message has no newline. Returns whether all of it was
 * written.
 */
bool log_sink_write(enum log_level level, const struct log_about *about,
		    const char *message);

#endif /* DAEMON_LOG_SINK_H */
