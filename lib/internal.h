/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A handle and the table that makes its transports alike.
 *
 *	handle.c	open, close, what a handle is
 *	address.c	whom a handle belongs to
 *	request.c	synchronous calls
 *	post.c		non-blocking calls: sending, polling
 *	receive.c	taking what arrived, credit
 *	unix.c		transport: expiryd's protocol over stream.c's socket
 *	lasting.c	transport: the same over as many connections as it takes
 *	reconnect.c	the connection of lasting.c: lost, made anew, looked over
 *	replay.c	requests that lasting.c may have to send again
 *	device.c	transport: /dev/expiry
 *	ring.c		records that arrived and were not taken
 *	explain.c	words for errnos
 */
#ifndef LIB_INTERNAL_H
#define LIB_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <expiry/expiry.h>

#include "ring.h"
#include "stream.h"

#define EXPORT __attribute__((visibility("default")))

struct reconnect;

/**
 * struct transport - how a handle reaches its queue
 *
 * All functions return 0, a count, or -errno. One that returns an errno after
 * which the handle is of no use has set h->error to it.
 *
 * @open: connect to @path and attach; fills in fd, window and timers of the
 *	handle, whose options are checked. On failure nothing is left open.
 * @close: undo it.
 * @submit: as expiry_submit(), with @count and ops checked
 * @post: as expiry_post(), likewise
 * @flush: send what is queued, the credit included: 0, or 1 when it is full
 * @take: hand out what arrived and is not in the ring
 * @pending: how many of these could be handed out without asking the kernel
 * @events: what to poll for
 * @scan: as expiry_scan(), the rows' op left as it came
 * @stat: as expiry_stat()
 * @queues: as expiry_queues()
 * @drop: as expiry_drop()
 * @rewind: as expiry_rewind()
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
	int (*scan)(struct expiry *h, uint64_t *cursor,
		    struct expiry_record *rows, uint32_t max);
	int (*stat)(struct expiry *h, struct expiry_stat *stat,
		    struct expiry_server_stat *server, size_t server_size);
	int (*queues)(struct expiry *h, uint64_t *cursor,
		      struct expiry_queue *rows, uint32_t max);
	int (*drop)(struct expiry *h);
	int (*rewind)(struct expiry *h);
};

extern const struct transport transport_unix;
extern const struct transport transport_lasting;
extern const struct transport transport_device;

/**
 * struct expiry - a handle
 *
 * Constant once open:
 * @transport: its functions
 * @fd: what the program polls
 * @mode: EXPIRY_MODE_*; likewise @clock_id
 * @consume: expirations are taken here
 * @observe: copies of expirations are taken here; with @consume never
 * @manual: credit is the program's care
 * @credit: most expirations granted and held together; most copies held
 * @window: most requests posted and not taken back
 * @timeout_ms: 0 = for ever
 * @timers: in the queue when it was opened
 * @reconnect: lasting only, else NULL
 *
 * Since then:
 * @error: negative: the handle is broken, and why
 * @posted: requests posted whose replies the program has not taken
 * @awaited: of these, those whose replies have not arrived
 * @granted: expirations the server may still send
 * @held: expirations in @kept; for an observer whatever it was sent
 * @credit_due: granted, but the server was not told yet
 * @post_short: the last expiry_post() took less than all for want of room in
 *	the socket
 * @clock_set: where in @kept a CLOCK_SET stands, if it is still there
 * @clock_set_held: it is
 * @missed: where in @kept a MISSED of the handle's own stands, if it is the last
 *	that was sent to it
 * @missed_held: it is
 * @kept: what arrived while a synchronous call waited, and on a device the
 *	replies to posted requests
 * @in_doubt: of a synchronous call that a broken connection ended: requests
 *	behind the last answer that were sent
 * @stream: unix and lasting only
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
	struct reconnect *reconnect;

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
	struct ring kept;
	uint32_t in_doubt;
	struct stream stream;
};

/* An expiration or what stands between them, not the reply to a request. */
static inline bool is_event(const struct expiry_record *record)
{
	return record->op == EXPIRY_OP_EXPIRED ||
	       record->op == EXPIRY_OP_CLOCK_SET ||
	       record->op == EXPIRY_OP_MISSED;
}

/* May the program send this? The rest would upset the count of replies. */
bool request_ok(const struct expiry_record *records, uint32_t count);

/* Ask for more expirations when half of them are used up. */
void credit_top_up(struct expiry *h);

#endif /* LIB_INTERNAL_H */
