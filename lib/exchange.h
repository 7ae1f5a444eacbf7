/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests and their replies over the stream.
 *
 * A synchronous call receives whenever it cannot send, so it cannot deadlock
 * with a server whose socket is full, too.
 */
#ifndef LIB_EXCHANGE_H
#define LIB_EXCHANGE_H

#include "internal.h"

/* Below this many records a copy costs less than another system call. */
#define DIRECT_MIN	64

/* Sends records that are counted as awaited, or queues them, without waiting:
 * how many, 0 if there is no room, or -errno.
 */
int exchange_send(struct expiry *h, const struct expiry_record *records,
		  uint32_t count);

/* Sends what is queued: 0, 1 if the socket is full, or -errno. */
int exchange_flush(struct expiry *h);

/* Sends requests and waits for their replies, which replace them: how many were
 * answered, or the errno that broke the handle. h->in_doubt counts those sent
 * and not answered.
 */
int exchange_submit(struct expiry *h, struct expiry_record *records,
		    uint32_t count);

/* Sends one request of the protocol's own and waits for its first reply: 0, its
 * status, or the errno that broke the connection.
 */
int exchange_call(struct expiry *h, struct expiry_record *record);

/* Waits for one more reply to a request that has several, which replaces the one before.
 * Nothing else may come between them. 0, or the errno that broke the connection.
 */
int exchange_next(struct expiry *h, struct expiry_record *reply);

/* Receives @units raw units, the first @size bytes of them to @to. */
int exchange_body(struct expiry *h, void *to, size_t size, uint32_t units);

/* Waits for room in the full socket, and sorts what the server sends meanwhile.
 * 0 or -errno.
 */
int exchange_make_room(struct expiry *h);

#endif /* LIB_EXCHANGE_H */
