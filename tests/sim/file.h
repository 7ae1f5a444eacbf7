/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptors, shared by file.c (the daemon's calls) and call.c (programs'). */
#ifndef TESTS_SIM_FILE_H
#define TESTS_SIM_FILE_H

#include "tests/sim/sim.h"

#define FILE_FIRST	1000
#define FILE_PASSED	4	/* the first queue that is passed */
#define FILE_MAX_WATCHED	4

enum file_kind {
	FILE_NONE,
	FILE_STREAM,
	FILE_LISTENER,
	FILE_EVENT,
	FILE_SIGNAL,
	FILE_TIMER,
	FILE_ALARM,
	FILE_EPOLL,
	FILE_QUEUE,
	FILE_MANAGER,
	FILE_BOOT,
};

/* A descriptor in an epoll file. */
struct watched {
	int fd;
	uint32_t events;
};

/**
 * struct file - what a descriptor refers to
 * @stream: of a socket, NULL = not connected
 * @count: of an eventfd; of a signalfd: the signal; of a timerfd: steps
 * @due_ns: of a program's timerfd, 0 = not set
 * @timeout_ns: of a program's socket
 * @watched: of an epoll file, @nr_watched of them
 */
struct file {
	enum file_kind kind;
	struct stream *stream;
	uint64_t count;
	uint64_t due_ns;
	uint64_t timeout_ns;
	struct watched watched[FILE_MAX_WATCHED];
	uint32_t nr_watched;
};

struct file *file_of(int fd);
int file_new(enum file_kind kind, struct stream *stream);
/* Opens @nr queues that are passed to the daemon behind its socket. */
void files_pass(uint32_t nr);
/* Returns which of the poll(2) events are there. */
short file_poll(int fd, short events);

/* ------------------------------------------------------------------- call.c */

/* Closes what a program's descriptor refers to. */
void call_close(int fd);
ssize_t call_send(int fd, const void *data, size_t len, int flags);
int call_poll(int fd, short events, int timeout_ms, short *revents);

#endif /* TESTS_SIM_FILE_H */
