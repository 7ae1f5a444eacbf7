/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of HTTP that serves one page: a request, an answer, the end. The client
 * is not trusted: the size and the duration of its request are limited.
 */
#ifndef TOOLS_HTTP_H
#define TOOLS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX	8192	/* bytes of a request */
#define HTTP_TIME_MS	5000	/* for the request, and again for the answer */

/**
 * http_receive - receive one request for @path
 * @fd: descriptor of the request
 * @head_only: set for an answer without a body
 *
 * Returns 0 for such a request, or the HTTP status to answer another one with.
 * Returns -errno if no client is left to answer.
 */
int http_receive(int fd, const char *path, bool *head_only);

/**
 * http_answer - send an answer and wait until the client has taken it
 * @in: descriptor of the request
 * @out: descriptor for the answer, may be @in
 * @status: HTTP status: 200, http_receive()'s, or 503
 * @type: media type of @body
 * @body: @size bytes
 *
 * With another status than 200 @type and @body are ignored; the answer's body is a
 * line with the reason. Returns 0 or -errno.
 */
int http_answer(int in, int out, int status, const char *type,
		const char *body, size_t size, bool head_only);

#endif /* TOOLS_HTTP_H */
