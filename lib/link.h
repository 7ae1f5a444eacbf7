/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection that is replaced when it breaks.
 * docs/decisions/0009-reconnect.md has the rules.
 *
 * The program polls an epoll file of the handle's own, which outlives each
 * socket. A timerfd in it schedules the attempts to connect.
 */
#ifndef LIB_LINK_H
#define LIB_LINK_H

#include "internal.h"
#include "replay.h"

/**
 * enum link_state
 * @LINK_DOWN: not connected
 * @LINK_HANDSHAKE: HELLO and STAT are sent and not both answered
 * @LINK_RESTORE: attached; the program's timers are being armed
 * @LINK_ACKS: timers of ACKs in doubt are asked for
 * @LINK_UP: attached, and the queue has its timers
 */
enum link_state {
	LINK_DOWN,
	LINK_HANDSHAKE,
	LINK_RESTORE,
	LINK_ACKS,
	LINK_UP,
};

/**
 * struct link
 * @path: the socket's; constant, likewise @hello, @timer_fd
 * @state: of the connection
 * @attached: during the handshake: HELLO was answered
 * @count: connections made after the first
 * @attached_ns: previous attach, on CLOCK_BOOTTIME
 * @arms: least number of timers the queue has counted
 * @durable: the durable queue's number, 0 = it is not durable
 * @learns: that number is not known yet: STAT's first answer has it
 * @pause_ms: pause after the next failure; 0 = none
 * @retry_ns: time of the next attempt, on CLOCK_MONOTONIC
 * @refused_ns: since when all servers refused; 0 = none has
 * @replay: posted requests without an answer
 * @repeating: a synchronous call sends again: credit waits for it
 * @credit: granted, but kept back until then
 * @events: the socket's events in the epoll file
 */
struct link {
	char *path;
	struct expiry_hello hello;
	int timer_fd;
	enum link_state state;
	bool attached;
	uint32_t count;
	uint64_t attached_ns;
	uint64_t arms;
	uint64_t durable;
	bool learns;
	uint32_t pause_ms;
	uint64_t retry_ns;
	uint64_t refused_ns;
	struct replay replay;
	bool repeating;
	uint32_t credit;
	short events;
};

/* Makes a handle just attached to its queue a reconnecting one. 0 or -errno. */
int link_open(struct expiry *h, const char *path,
	      const struct expiry_options *options);
void link_close(struct expiry *h);

/* Arms the program's timers before anything else is sent. Waits for it. 0,
 * h->error, or -ETIMEDOUT.
 */
int link_restore(struct expiry *h);

/* Connects, attaches and sends posted requests as far as possible without
 * waiting. Returns whether it is connected; if not, h->error may have been set.
 */
bool link_step(struct expiry *h);

/* Waits until it is connected and all posted requests are sent. Returns 0,
 * h->error, or -ETIMEDOUT, which leaves the handle usable.
 */
int link_wait(struct expiry *h);

/* Updates the counts after the transport took @nr @records. */
void link_acked(struct expiry *h, const struct expiry_record *records,
		uint32_t nr);

/* Handles an error in h->error: clears it if another connection helps. Returns
 * 0, or -ETIMEDOUT if it was that. Else the error stays and is returned.
 */
int link_lost(struct expiry *h);

/* Polls for room in the socket if there is something to send. */
void link_update_events(const struct expiry *h);

static inline uint32_t link_count(const struct link *link)
{
	return link->count;
}

#endif /* LIB_LINK_H */
