/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A server made for the test: one thread, one connection after the other, a
 * script for each.
 */
#ifndef TESTS_LIB_SUPPORT_FAKE_H
#define TESTS_LIB_SUPPORT_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <expiry/expiry.h>

#include "support.h"

#define RECORD	sizeof(struct expiry_record)

/* A script for one connection, which is closed when it returns. */
typedef void fake_script(int fd);

#define FAKE_SCRIPTS	4

struct fake {
	pthread_t thread;
	bool joined;
	char directory[32];
	char address[64];
	int listen_fd;
	fake_script *scripts[FAKE_SCRIPTS];
	bool repeat;	/* the last of them, until the server ends */
};

void fake_start(struct fake *server, fake_script *script);
void fake_stop(struct fake *server);
/* Ends the server, and leaves no listener. Then starts another one, with one
 * connection for each script before a NULL.
 */
void fake_halt(struct fake *server);
void fake_resume(struct fake *server, fake_script *const *scripts);
/* Waits until the script has ended. */
void fake_wait(struct fake *server);

/* Opens a handle on a server that follows @script, and ends both. */
struct expiry *fake_open(struct fake *server, fake_script *script,
			 uint32_t flags, uint32_t credit);
void fake_end(struct fake *server, struct expiry *h);

/* For scripts: read and write whole records. False: the client is gone. */
bool get(int fd, struct expiry_record *records, uint32_t nr);
void put(int fd, const struct expiry_record *records, uint32_t nr);
void put_bytes(int fd, const void *bytes, size_t len);
void put_event(int fd, uint8_t op, uint64_t cookie);

/* Answers HELLO with a window of @window. */
void greet(int fd, uint64_t window);
/* Reads everything until the client goes. */
void drain(int fd);

/* Scripts: every record comes back unchanged; likewise, but SCAN is refused. */
fake_script echo;
fake_script scan_refused;

/* For tests: requests whose cookies count from 0. */
void fill_arm(struct expiry_record *records, uint32_t nr);
/* Takes @nr records, waiting for each. */
void take(struct expiry *h, struct expiry_record *records, uint32_t nr);
/* Returns the errno that comes after all records. */
int next_error(struct expiry *h);

#endif /* TESTS_LIB_SUPPORT_FAKE_H */
