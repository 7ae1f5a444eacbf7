/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests: processing the records that clients sent. */
#ifndef DAEMON_REQUESTS_H
#define DAEMON_REQUESTS_H

struct connections;

/* Processes received requests, within the turn's budget. */
void clients_process(struct connections *connections);

#endif /* DAEMON_REQUESTS_H */
