/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An entry of the log: its level and its fields. */
#ifndef DAEMON_LOG_ENTRY_H
#define DAEMON_LOG_ENTRY_H

#include <stdbool.h>
#include <sys/types.h>

/* The values are syslog's and the journal's. */
enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
};

/**
 * struct log_about - subject of an entry: fields in the journal
 * @id: MESSAGE_ID, LOG_* of log.h, or NULL
 * @queue: QUEUE, at most a queue's name, or NULL
 * @peer: PEER_UID and PEER_PID are @uid and @pid
 * @uid: the user charged with the line
 * @error: ERRNO, 0 = none
 */
struct log_about {
	const char *id;
	const char *queue;
	bool peer;
	uid_t uid;
	pid_t pid;
	int error;
};

#endif /* DAEMON_LOG_ENTRY_H */
