/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the tests of EXPIRY_OPEN_RECONNECT: a fake server whose connections
 * break, and a handle that outlives them.
 */
#ifndef TESTS_LIB_SUPPORT_RECONNECT_H
#define TESTS_LIB_SUPPORT_RECONNECT_H

#include "support-fake.h"

#define WAIT_MS		60000
#define HOUR		3600000000000ULL
/* Of a call with a short timeout, on a machine that stands still for longer. */
#define TRIES		50

#define KEYED	(EXPIRY_OPEN_RECONNECT | EXPIRY_OPEN_KEYED)
#define ACKING	(EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK)

/* For scripts. reconnect_end() reports a wrong record. */
void script_expect(bool truth, const char *what);

struct stat_reply {
	struct expiry_record head;
	struct expiry_stat queue;
	struct expiry_server_stat server;
};

/* Greets a connection, and takes @nr requests without an answer. */
void greet_and_get(int fd, uint32_t nr);

/* Greets a connection after the first: HELLO and STAT. False: the client went.
 */
bool greet_queue(int fd, uint32_t engine, uint64_t uptime_ns, uint64_t arms);
bool greet_again(int fd);

/* Answers the next request, which must have this cookie. */
void answer(int fd, uint64_t cookie);

/* Scripts: as echo(), on a connection that is not the first; the connection ends
 * when it is greeted.
 */
fake_script echo_again;
fake_script hang_up;

/* For tests: a reconnecting handle on the queue "q" and CLOCK_MONOTONIC, with
 * credit 8, on a server that follows @scripts.
 */
struct expiry *reconnect_open(struct fake *server, fake_script *const *scripts,
			      uint32_t flags, uint32_t timeout_ms);
/* Ends both, and fails the test if a script got a wrong record. */
void reconnect_end(struct fake *server, struct expiry *h);

/* Returns the connections made after the first. */
uint32_t reconnect_count(const struct expiry *h);

/* Returns a request with this cookie. */
struct expiry_record reconnect_request(uint8_t op, uint64_t cookie);

#endif /* TESTS_LIB_SUPPORT_RECONNECT_H */
