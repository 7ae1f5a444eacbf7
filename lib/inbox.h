/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records that the server sent.
 *
 * The stream carries three kinds of records: expirations, replies to posted
 * requests, and replies to the waiting synchronous call. h->awaited replies to
 * posted requests precede any other reply. While a call waits the first two
 * kinds go to h->inbox, which has room for all that may come: the window bounds
 * the replies and the credit bounds the expirations.
 */
#ifndef LIB_INBOX_H
#define LIB_INBOX_H

#include "internal.h"

/*
 * Sorts the buffer until @max replies to the waiting call have taken the places of its
 * requests in @replies. Later bytes stay: they may be the body of the last one. With @max 0
 * sorts all that is no such reply. Returns the number of replies, or the errno that broke
 * the handle. Replies before the record that broke it count first.
 */
int inbox_sort(struct expiry *h, struct expiry_record *replies, uint32_t max);

/* Accounts for records that go straight to the program: 0 or -EPROTO. */
int inbox_account(struct expiry *h, const struct expiry_record *records,
		  uint32_t nr);

/* Hands out at most @max of the oldest records, and updates the counts. */
uint32_t inbox_take(struct expiry *h, struct expiry_record *records,
		    uint32_t max);

/* Drops expirations that the program has not seen; the server delivers them
 * again, marked. So the program sees each once. Its credit stays. Copies do not
 * come again.
 */
void inbox_drop_expirations(struct expiry *h);

#endif /* LIB_INBOX_H */
