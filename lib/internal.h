/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A handle, and the table of functions that each transport provides.
 *
 *	handle.c		open, close, properties of a handle
 *	address.c		addresses of the socket and the device
 *	request.c		requests: synchronous calls, posting, polling
 *	receive.c		receiving, credit
 *	transport-unix.c	expiryd's protocol
 *	transport-reconnect.c	the same, reconnecting
 *	link.c			the connection of transport-reconnect.c: lost, remade, checked
 *	exchange.c		requests and replies over the stream
 *	stream.c		a socket with a buffer on either side
 *	replay.c		requests that may have to be sent again
 *	acks.c			ACKs that may have been carried out
 *	restore.c		timers that the program yields again
 *	transport-device.c	/dev/expiry
 *	inbox.c			records that arrived: accounted for, kept, taken
 *	ring.c			a ring of records
 *	clock.h			time in ns
 *	explain.c		explanations of errnos
 *	id.c			ids of names
 *
 * assert() holds what the library itself guarantees, in release builds, too. A
 * caller's or a server's mistake gets an errno: it must not end the program.
 */
#ifndef LIB_INTERNAL_H
#define LIB_INTERNAL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <expiry/expiry.h>

#include "ring.h"
#include "stream.h"

#ifdef NDEBUG
#error "a broken invariant must end the program, not corrupt its memory"
#endif

#define EXPORT __attribute__((visibility("default")))

struct acks;
struct link;
struct restore;

/**
 * struct query - a call that is one request of its own
 *
 * @op: EXPIRY_OP_SCAN, _STAT, _QUEUES or _DROP
 * @cursor: of SCAN and QUEUES, likewise @max
 * @timers: SCAN's rows, whose op is unchanged
 * @queues: QUEUES' rows
 * @stat: STAT's, likewise @server, @server_size
 *
 * A struct, so that a reconnecting handle can repeat any of them.
 */
struct query {
	uint8_t op;
	uint64_t *cursor;
	uint32_t max;
	struct expiry_record *timers;
	struct expiry_queue *queues;
	struct expiry_stat *stat;
	struct expiry_server_stat *server;
	size_t server_size;
};

/**
 * struct transport - how a handle reaches its queue
 *
 * All functions return 0, a count, or -errno. A function whose errno makes the
 * handle unusable has set h->error to it.
 *
 * @open: connect to @path and attach
 * @close: undo @open
 * @submit: as expiry_submit(), with @count and ops checked
 * @post: as expiry_post(), likewise
 * @flush: send queued bytes and credit: 0, or 1 if full
 * @take: hand out records that arrived and are not in the ring
 * @pending: number of these available without a system call
 * @events: what to poll for
 * @query: carry out a query
 * @rewind: as expiry_rewind()
 *
 * @open sets fd, window, timers and durable of the handle, whose options are
 * checked. On failure it leaves nothing open.
 */
struct transport {
	int (*open)(struct expiry *h, const char *path,
		    const struct expiry_options *options);
	void (*close)(struct expiry *h);
	int (*submit)(struct expiry *h, struct expiry_record *records,
		      uint32_t count);
	int (*post)(struct expiry *h, const struct expiry_record *records,
		    uint32_t count);
	int (*flush)(struct expiry *h);
	int (*take)(struct expiry *h, struct expiry_record *records,
		    uint32_t max);
	uint32_t (*pending)(const struct expiry *h);
	short (*events)(const struct expiry *h);
	int (*query)(struct expiry *h, const struct query *query);
	int (*rewind)(struct expiry *h);
};

extern const struct transport transport_unix;
extern const struct transport transport_reconnect;
extern const struct transport transport_device;

/**
 * struct expiry - a handle
 *
 * Constant once open:
 * @transport: its functions
 * @fd: what the program polls
 * @mode: EXPIRY_MODE_*; likewise @clock_id
 * @consume: the handle takes expirations
 * @observe: the handle takes copies of expirations; never with @consume
 * @manual: the program requests credit
 * @credit: most expirations granted and held together; most copies held
 * @window: most requests posted and not taken back
 * @timeout_ms: 0 = for ever
 * @timers: in the queue when it was opened
 * @durable: the queue outlives the daemon
 * @link: reconnecting only, else NULL; likewise @acks
 * @restore: only if the program yields timers, else NULL
 *
 * Since then:
 * @commit_ms: between flushes of a durable queue's journal, as HELLO said last
 * @error: negative: the errno that broke the handle
 * @posted: posted requests whose replies the program has not taken
 * @awaited: of these, those whose replies have not arrived
 * @granted: expirations the server may still send
 * @held: expirations in @inbox; for an observer all records sent to it
 * @credit_due: granted, but not yet sent to the server
 * @post_short: the last expiry_post() found the socket full
 * @clock_set: position in @inbox of a CLOCK_SET
 * @clock_set_held: @clock_set is valid
 * @missed: position in @inbox of a MISSED of the handle's own
 * @missed_held: @missed is valid: no record was sent after it
 * @inbox: records that arrived during a synchronous call
 * @in_doubt: requests that a broken connection may have carried out
 * @stream: unix and reconnecting only
 *
 * On a device @inbox has the replies to posted requests. @in_doubt counts those
 * of a synchronous call that were sent after the last answer.
 */
struct expiry {
	const struct transport *transport;
	int fd;
	uint32_t mode;
	uint32_t clock_id;
	bool consume;
	bool observe;
	bool manual;
	uint32_t credit;
	uint32_t window;
	uint32_t timeout_ms;
	uint64_t timers;
	bool durable;
	struct link *link;
	struct acks *acks;
	struct restore *restore;

	uint32_t commit_ms;
	int error;
	uint32_t posted;
	uint32_t awaited;
	uint32_t granted;
	uint32_t held;
	uint32_t credit_due;
	bool post_short;
	bool clock_set_held;
	uint32_t clock_set;
	bool missed_held;
	uint32_t missed;
	struct ring inbox;
	uint32_t in_doubt;
	struct stream stream;
};

/* Sets the errno that makes the handle unusable, and returns it. */
static inline int break_handle(struct expiry *h, int error)
{
	assert(error < 0);
	h->error = error;
	return error;
}

/* Returns whether the server may send, and the ring holds, no more than the credit.
 */
static inline bool credit_is_bounded(const struct expiry *h)
{
	return h->granted <= h->credit && h->held <= h->credit - h->granted;
}

/* Returns whether a record is an expiration, a CLOCK_SET or a MISSED, not a reply.
 */
static inline bool is_event(const struct expiry_record *record)
{
	return record->op == EXPIRY_OP_EXPIRED ||
	       record->op == EXPIRY_OP_CLOCK_SET ||
	       record->op == EXPIRY_OP_MISSED;
}

/* Requests more expirations when half of them are used up. */
void credit_top_up(struct expiry *h);

#endif /* LIB_INTERNAL_H */
