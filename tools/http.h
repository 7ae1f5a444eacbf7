/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of HTTP for one page: a request, an answer, the end. The client is
 * untrusted: its bytes and its time are limited.
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
 * @fd: from there
 * @head_only: set if the answer is to be without its body
 *
 * Returns 0, the status of HTTP to answer with if that is not such a request, or
 * -errno, then nobody is there to be answered.
 */
int http_receive(int fd, const char *path, bool *head_only);

/**
 * http_answer - send an answer and wait for the other side to take it
 * @in: where the request came from
 * @out: where the answer goes, which may be the same
 * @status: of HTTP; 200, or one of http_receive() or 503
 * @type: of @body, which has @size bytes; with another status than 200 both are
 *	passed over, and a line says what is wrong
 *
 * Returns 0 or -errno.
 */
int http_answer(int in, int out, int status, const char *type,
		const char *body, size_t size, bool head_only);

#endif /* TOOLS_HTTP_H */
