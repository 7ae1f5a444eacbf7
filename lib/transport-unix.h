/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of the socket's transport that reconnecting needs besides its
 * table.
 */
#ifndef LIB_TRANSPORT_UNIX_H
#define LIB_TRANSPORT_UNIX_H

#include <errno.h>

#include "internal.h"

/* Fills in the HELLO that the checked @options request. */
void unix_hello(struct expiry_hello *hello,
		const struct expiry_options *options);

/* Turns the status of a HELLO into the errno that expiry_open() documents. */
static inline int unix_hello_error(int status)
{
	return status == -EPROTONOSUPPORT ? -EOPNOTSUPP : status;
}

/* Sends records that are counted as awaited, or queues them, without waiting:
 * how many, 0 if there is no room, or -errno.
 */
int unix_send(struct expiry *h, const struct expiry_record *records,
	      uint32_t count);

/* Sends what is queued: 0, 1 if the socket is full, or -errno. */
int unix_flush(struct expiry *h);

/*
 * Sorts the buffer until @max replies to the waiting call have gone to
 * @replies. Later bytes stay: they may be the body of the last one. With @max 0
 * sorts all that is no such reply. Returns the number of replies.
 */
int unix_sort(struct expiry *h, struct expiry_record *replies, uint32_t max);

/* Waits for room in the full socket, and sorts what the server sends meanwhile.
 * 0 or -errno.
 */
int unix_make_room(struct expiry *h);

#endif /* LIB_TRANSPORT_UNIX_H */
