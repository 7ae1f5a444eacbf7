/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * HELLO, which a reconnecting handle sends again on each connection.
 */
#ifndef LIB_TRANSPORT_UNIX_H
#define LIB_TRANSPORT_UNIX_H

#include "internal.h"

/* Fills in the HELLO that the checked @options request. */
void unix_hello(struct expiry_hello *hello,
		const struct expiry_options *options);

/* Checks the reply to a HELLO with @flags, and updates the handle. Returns 0, or the
 * errno that expiry_open() documents.
 */
int unix_hello_reply(struct expiry *h, const struct expiry_record *reply,
		     uint32_t flags);

#endif /* LIB_TRANSPORT_UNIX_H */
