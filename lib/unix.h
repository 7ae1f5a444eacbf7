/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What reconnecting needs of the socket's transport besides its table.
 */
#ifndef LIB_UNIX_H
#define LIB_UNIX_H

#include <errno.h>

#include "internal.h"

/* The HELLO that checked @options ask for. */
void unix_hello(struct expiry_hello *hello,
		const struct expiry_options *options);

/* Turns the status of a HELLO into the errno that expiry_open() documents. */
static inline int unix_hello_error(int status)
{
	return status == -EPROTONOSUPPORT ? -EOPNOTSUPP : status;
}

/* Send records that are counted as awaited, or queue them, without waiting:
 * how many, 0 if there is no room, or -errno.
 */
int unix_send(struct expiry *h, const struct expiry_record *records,
	      uint32_t count);

/* Send what is queued: 0, 1 if the socket is full, or -errno. */
int unix_flush(struct expiry *h);

/*
 * Sort what is in the buffer until @max replies to the waiting call have gone to
 * @replies; what stands behind them stays, for it may be the body of the last
 * one. With @max 0 all that is no such reply is sorted. Returns their number.
 */
int unix_sort(struct expiry *h, struct expiry_record *replies, uint32_t max);

/* The socket is full: wait for room, and sort what the server says meanwhile. 0
 * or -errno.
 */
int unix_make_room(struct expiry *h);

#endif /* LIB_UNIX_H */
