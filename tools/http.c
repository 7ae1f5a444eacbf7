// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/http.h"

/* Most bytes that are read and discarded after an answer. */
#define DRAIN_MAX	65536
#define DRAIN_TIME_MS	1000

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 400, "Bad Request" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 431, "Request Header Fields Too Large" },
	{ 503, "Service Unavailable" },
};

static const char *reason_of(int status)
{
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Waits for @events until @end_ms. Returns 0, -ETIMEDOUT or another -errno. */
static int wait_until(int fd, short events, int64_t end_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = end_ms - now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		n = poll(&poll_fd, 1, left);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

/* Returns the length of the head in @text with its empty line, or 0 if the head is
 * not complete.
 */
static size_t head_length(const char *text, size_t len)
{
	size_t i, line = 0;

	for (i = 0; i < len; i++) {
		if (text[i] != '\n')
			continue;
		if (i == line || (i == line + 1 && text[line] == '\r'))
			return i + 1;
		line = i + 1;
	}
	return 0;
}

/* Parses the request line of @head. Returns 0, or the status to answer with. */
static int judge(char *head, const char *path, bool *head_only)
{
	char *method, *target, *version, *rest;

	head[strcspn(head, "\r\n")] = '\0';
	method = strtok_r(head, " ", &rest);
	target = strtok_r(NULL, " ", &rest);
	version = strtok_r(NULL, " ", &rest);
	if (!version || strtok_r(NULL, " ", &rest) ||
	    strncmp(version, "HTTP/1.", 7))
		return 400;
	*head_only = !strcmp(method, "HEAD");
	if (!*head_only && strcmp(method, "GET"))
		return 405;
	target[strcspn(target, "?")] = '\0';
	return strcmp(target, path) ? 404 : 0;
}

int http_receive(int fd, const char *path, bool *head_only)
{
	int64_t end_ms = now_ms() + HTTP_TIME_MS;
	char head[HTTP_HEAD_MAX + 1];
	size_t len = 0;
	ssize_t n;
	int ret;

	*head_only = false;
	while (!head_length(head, len)) {
		if (len == HTTP_HEAD_MAX)
			return 431;
		ret = wait_until(fd, POLLIN, end_ms);
		if (ret)
			return ret == -ETIMEDOUT ? 408 : ret;
		n = read(fd, head + len, HTTP_HEAD_MAX - len);
		if (n < 0)
			return -errno;
		if (!n)
			return len ? 400 : -ECONNRESET;
		len += n;
	}
	head[len] = '\0';
	if (strlen(head) != len)
		return 400;
	return judge(head, path, head_only);
}

/* Sends all of @data until @end_ms. After POLLOUT a write of PIPE_BUF bytes does
 * not block.
 */
static int send_all(int fd, const char *data, size_t len, int64_t end_ms)
{
	ssize_t n;
	int ret;

	while (len) {
		ret = wait_until(fd, POLLOUT, end_ms);
		if (ret)
			return ret;
		n = write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0)
			return -errno;
		data += n;
		len -= n;
	}
	return 0;
}

/* Reads until the client closes, within limits. A socket that is closed with unread
 * data is reset, and the client may lose the answer.
 */
static void drain(int in, int out)
{
	int64_t end_ms = now_ms() + DRAIN_TIME_MS;
	size_t left = DRAIN_MAX;
	char junk[4096];
	ssize_t n;

	if (shutdown(out, SHUT_WR))
		return;
	while (left && !wait_until(in, POLLIN, end_ms)) {
		n = read(in, junk, sizeof(junk));
		if (n <= 0)
			return;
		left = (size_t)n < left ? left - n : 0;
	}
}

int http_answer(int in, int out, int status, const char *type,
		const char *body, size_t size, bool head_only)
{
	int64_t end_ms = now_ms() + HTTP_TIME_MS;
	char head[512], line[64];
	int len, ret;

	if (status != 200) {
		type = "text/plain; charset=utf-8";
		size = snprintf(line, sizeof(line), "%s\n", reason_of(status));
		body = line;
	}
	len = snprintf(head, sizeof(head),
		       "HTTP/1.1 %d %s\r\n"
		       "Content-Type: %s\r\n"
		       "Content-Length: %zu\r\n"
		       "%s"
		       "Cache-Control: no-store\r\n"
		       "Connection: close\r\n\r\n", status, reason_of(status),
		       type, size, status == 405 ? "Allow: GET, HEAD\r\n" : "");
	ret = send_all(out, head, len, end_ms);
	if (!ret && !head_only)
		ret = send_all(out, body, size, end_ms);
	if (!ret)
		drain(in, out);
	return ret;
}
