/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The HTTP server: GET /metrics on given sockets, by libmicrohttpd, in one thread.
 *
 * Clients are not trusted. The number of connections is limited, and so are the
 * bytes of a request and the time from a connection's begin to its end.
 */
#ifndef TOOLS_HTTP_H
#define TOOLS_HTTP_H

#include "tools/ctl.h"

#define HTTP_CONNECTIONS_MAX	16
#define HTTP_MEMORY		16384	/* bytes for the heads of a request and its answer */
#define HTTP_TIME_MS		10000	/* for a request and its answer */
#define HTTP_LISTENERS_MAX	8

/**
 * http_serve - answer requests until SIGINT or SIGTERM
 * @ctl: address of the daemon, and options of scrape()
 * @listeners: listening sockets that do not block
 * @nr: number of @listeners
 * @stop_fd: descriptor of stop_open()
 *
 * Returns 0 after such a signal, or -errno.
 */
int http_serve(struct ctl *ctl, const int *listeners, size_t nr, int stop_fd);

#endif /* TOOLS_HTTP_H */
