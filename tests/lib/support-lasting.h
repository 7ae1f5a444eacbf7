/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of EXPIRY_OPEN_RECONNECT share: a server made for the test whose
 * connections break, and a handle that outlives them.
 */
#ifndef TESTS_LIB_SUPPORT_LASTING_H
#define TESTS_LIB_SUPPORT_LASTING_H

#include "support-fake.h"

#define WAIT_MS		60000
#define HOUR		3600000000000ULL

#define KEYED	(EXPIRY_OPEN_RECONNECT | EXPIRY_OPEN_KEYED)
#define ACKING	(EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK)

/* For scripts. Something heard that is wrong is told by lasting_end(). */
void script_expect(bool truth, const char *what);

struct stat_reply {
	struct expiry_record head;
	struct expiry_stat queue;
	struct expiry_server_stat server;
};

/* A connection that is not the first: HELLO and STAT. False: the client went. */
bool greet_queue(int fd, uint32_t engine, uint64_t uptime_ns, uint64_t arms);
bool greet_again(int fd);

/* Scripts: as echo(), on a connection that is not the first; the connection ends
 * when it is greeted.
 */
fake_script echo_again;
fake_script hang_up;

/* For tests: a reconnecting handle on the queue "q" and CLOCK_MONOTONIC, with
 * credit 8, on a server that follows @scripts.
 */
struct expiry *lasting_open(struct fake *server, fake_script *const *scripts,
			    uint32_t flags, uint32_t timeout_ms);
/* The end of both, and of the test if a script heard something wrong. */
void lasting_end(struct fake *server, struct expiry *h);

/* Connections made after the first. */
uint32_t lasting_count(const struct expiry *h);

/* A request with this cookie. */
struct expiry_record lasting_request(uint8_t op, uint64_t cookie);

#endif /* TESTS_LIB_SUPPORT_LASTING_H */
