/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * HELLO, which a reconnecting handle sends again on each connection.
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

#endif /* LIB_TRANSPORT_UNIX_H */
