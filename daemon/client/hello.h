/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* HELLO: the first record of every connection. */
#ifndef DAEMON_HELLO_H
#define DAEMON_HELLO_H

struct client;
struct expiry_record;

/* Answers the first record, in place. */
void client_hello(struct client *client, struct expiry_record *record);

#endif /* DAEMON_HELLO_H */
