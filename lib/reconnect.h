/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection that is made anew when it breaks. docs/decisions/0009-reconnect.md
 * has the rules.
 *
 * The program polls an epoll file of the handle's own, which stays while sockets
 * come and go in it; a timerfd in it tells when to look for the server again.
 */
#ifndef LIB_RECONNECT_H
#define LIB_RECONNECT_H

#include "internal.h"
#include "replay.h"

/**
 * enum link_state
 * @LINK_DOWN: there is no connection
 * @LINK_GREETING: HELLO and STAT are sent and not both answered
 * @LINK_UP: attached to the same queue as before
 */
enum link_state {
	LINK_DOWN,
	LINK_GREETING,
	LINK_UP,
};

/**
 * struct reconnect
 * @path: the socket's; constant, likewise @hello, @timer_fd
 * @state: of the connection
 * @attached: while greeting: HELLO was answered
 * @count: connections made after the first
 * @met_ns: when the connection before was attached, on CLOCK_BOOTTIME
 * @arms: the queue has counted so many at least
 * @pause_ms: how long to wait after the next failure; 0 = no time
 * @retry_ns: when to try again, on CLOCK_MONOTONIC
 * @refused_ns: since when every server that was met has refused; 0 = none has
 * @replay: posted requests without an answer
 * @repeating: so is a synchronous call's: credit waits for it
 * @credit: granted, and kept back until what is in doubt was sent again
 * @polled: what the epoll file looks for in the socket
 */
struct reconnect {
	char *path;
	struct expiry_hello hello;
	int timer_fd;
	enum link_state state;
	bool attached;
	uint32_t count;
	uint64_t met_ns;
	uint64_t arms;
	uint32_t pause_ms;
	uint64_t retry_ns;
	uint64_t refused_ns;
	struct replay replay;
	bool repeating;
	uint32_t credit;
	short polled;
};

/* The handle was just attached to the queue; from now on that lasts. -errno */
int reconnect_open(struct expiry *h, const char *path,
		   const struct expiry_options *options);
void reconnect_close(struct expiry *h);

/* Do what can be done without waiting: connect, greet, send what was posted.
 * Whether the connection is there; if not, h->error may have been set.
 */
bool reconnect_step(struct expiry *h);

/* Wait until the connection is there and all that was posted is sent: 0,
 * -ETIMEDOUT, after which the handle is as good as before, or h->error.
 */
int reconnect_wait(struct expiry *h);

/* The transport took @nr @records; see to the books. */
void reconnect_heard(struct expiry *h, const struct expiry_record *records,
		     uint32_t nr);

/* h->error was set. If another connection helps it is none any more: 0, or
 * -ETIMEDOUT if it was that. Else the error stays and is returned.
 */
int reconnect_lost(struct expiry *h);

/* Look out for room in the socket if there is something to send. */
void reconnect_poll(const struct expiry *h);

static inline uint32_t reconnect_count(const struct reconnect *r)
{
	return r->count;
}

#endif /* LIB_RECONNECT_H */
