// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A stream socket with a buffer on either side.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "stream.h"

#define UNIT	((uint32_t)sizeof(struct expiry_record))

static int set_timeout(int fd, uint32_t timeout_ms)
{
	struct timeval tv = {
		.tv_sec = timeout_ms / 1000,
		.tv_usec = timeout_ms % 1000 * 1000,
	};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		return -errno;
	return 0;
}

/* Returns when a wait that begins now ends; 0 = never. */
static uint64_t end_of_wait(uint32_t timeout_ms)
{
	return timeout_ms ? clock_now_ns(CLOCK_MONOTONIC) + timeout_ms * 1000000ULL : 0;
}

/* A signal does not begin a wait anew: they may come more often than it ends. */
static int connect_path(int fd, const char *path, uint32_t timeout_ms)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint64_t end_ns = end_of_wait(timeout_ms);
	size_t len = strlen(path);

	if (len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, len + 1);
	while (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		/* A full backlog waits for SO_SNDTIMEO, then says EAGAIN. */
		if (errno == EAGAIN)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
		if (end_ns && clock_now_ns(CLOCK_MONOTONIC) >= end_ns)
			return -ETIMEDOUT;
	}
	return 0;
}

static int stream_connect(struct stream *s, const char *path, uint32_t timeout_ms,
			  int flags)
{
	int ret;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (s->fd < 0)
		return -errno;
	ret = set_timeout(s->fd, timeout_ms);
	if (!ret)
		ret = connect_path(s->fd, path, timeout_ms);
	s->timeout_ms = timeout_ms;
	if (ret)
		stream_disconnect(s);
	return ret;
}

int stream_open(struct stream *s, const char *path, uint32_t timeout_ms)
{
	int ret;

	memset(s, 0, sizeof(*s));
	ret = stream_connect(s, path, timeout_ms, 0);
	if (ret)
		return ret;

	s->in = aligned_alloc(64, STREAM_BUFFER);
	s->out = aligned_alloc(64, STREAM_BUFFER);
	if (!s->in || !s->out) {
		ret = -ENOMEM;
		goto err_close;
	}
	return 0;

err_close:
	stream_close(s);
	return ret;
}

int stream_reconnect(struct stream *s, const char *path, uint32_t timeout_ms)
{
	int ret;

	assert(s->fd < 0 && !stream_unsent(s));
	ret = stream_connect(s, path, timeout_ms, SOCK_NONBLOCK);
	if (!ret && fcntl(s->fd, F_SETFL, 0)) {
		ret = -errno;
		stream_disconnect(s);
	}
	return ret;
}

void stream_disconnect(struct stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->send_dead = false;
	s->in_head = 0;
	s->in_tail = 0;
	s->out_head = 0;
	s->out_tail = 0;
}

void stream_close(struct stream *s)
{
	stream_disconnect(s);
	free(s->in);
	free(s->out);
	s->in = NULL;
	s->out = NULL;
}

uint32_t stream_room(const struct stream *s)
{
	return (STREAM_BUFFER - stream_unsent(s)) / UNIT;
}

static void put_bytes(struct stream *s, const void *bytes, uint32_t len)
{
	assert(len <= STREAM_BUFFER - stream_unsent(s));
	if (s->out_tail + len > STREAM_BUFFER) {
		memmove(s->out, s->out + s->out_head, stream_unsent(s));
		s->out_tail -= s->out_head;
		s->out_head = 0;
	}
	memcpy(s->out + s->out_tail, bytes, len);
	s->out_tail += len;
	assert(s->out_tail <= STREAM_BUFFER);
}

void stream_put(struct stream *s, const struct expiry_record *units,
		uint32_t nr)
{
	put_bytes(s, units, nr * UNIT);
}

/* Sends bytes. Returns how many, 0 when the socket is full (or for good: see
 * send_dead).
 */
static ssize_t send_bytes(struct stream *s, const void *bytes, size_t len)
{
	ssize_t ret;

	if (s->send_dead)
		return 0;
	do
		ret = send(s->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (ret < 0 && errno == EINTR);
	if (ret >= 0)
		return ret;
	if (errno == EAGAIN)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET) {
		s->send_dead = true;
		return 0;
	}
	return -errno;
}

int stream_flush(struct stream *s)
{
	ssize_t ret;

	while (s->out_head < s->out_tail) {
		ret = send_bytes(s, s->out + s->out_head, stream_unsent(s));
		if (ret <= 0)
			return ret ? (int)ret : 1;
		s->out_head += ret;
		assert(s->out_head <= s->out_tail);
	}
	s->out_head = 0;
	s->out_tail = 0;
	return 0;
}

int stream_send(struct stream *s, const struct expiry_record *units,
		uint32_t nr)
{
	const unsigned char *bytes = (const void *)units;
	uint32_t cut;
	ssize_t ret;

	assert(nr && !stream_unsent(s));
	ret = send_bytes(s, bytes, (size_t)nr * UNIT);
	if (ret <= 0)
		return ret;
	cut = ret % UNIT;
	if (cut) {
		put_bytes(s, bytes + ret, UNIT - cut);
		ret += UNIT - cut;
	}
	return ret / UNIT;
}

/* Receives bytes. Returns how many, 0 when there are none, -ECONNRESET at the
 * stream's end.
 */
static ssize_t receive_bytes(struct stream *s, void *bytes, size_t len,
			     bool wait)
{
	ssize_t ret;
	int err;

	ret = recv(s->fd, bytes, len, wait ? 0 : MSG_DONTWAIT);
	if (ret < 0 && errno == EINTR && wait) {
		/* How long it waited until then is not known. */
		err = stream_wait(s, false, s->timeout_ms);
		if (err)
			return err;
		wait = false;
		ret = recv(s->fd, bytes, len, MSG_DONTWAIT);
	}
	if (ret > 0)
		return ret;
	if (ret == 0)
		return -ECONNRESET;
	if (errno == EAGAIN)
		return wait ? -ETIMEDOUT : 0;
	return errno == EINTR ? 0 : -errno;
}

int stream_fill(struct stream *s, bool wait)
{
	uint32_t left = s->in_tail - s->in_head;
	ssize_t ret;

	assert(s->in_head <= s->in_tail && s->in_tail <= STREAM_BUFFER);
	if (s->in_head) {
		memmove(s->in, s->in + s->in_head, left);
		s->in_head = 0;
		s->in_tail = left;
	}
	if (left == STREAM_BUFFER)
		return 1;
	ret = receive_bytes(s, s->in + left, STREAM_BUFFER - left, wait);
	if (ret <= 0)
		return ret;
	s->in_tail += ret;
	return 1;
}

int stream_receive(struct stream *s, struct expiry_record *units, uint32_t nr)
{
	unsigned char *bytes = (void *)units;
	uint32_t begun = s->in_tail - s->in_head;
	uint32_t cut;
	ssize_t ret;

	assert(nr && begun < UNIT);
	memcpy(bytes, s->in + s->in_head, begun);
	ret = receive_bytes(s, bytes + begun, (size_t)nr * UNIT - begun, false);
	if (ret <= 0)
		return ret;
	ret += begun;
	cut = ret % UNIT;
	memcpy(s->in, bytes + ret - cut, cut);
	s->in_head = 0;
	s->in_tail = cut;
	return ret / UNIT;
}

int stream_wait(const struct stream *s, bool out, uint32_t timeout_ms)
{
	struct pollfd pfd = {
		.fd = s->fd,
		.events = POLLIN | (out && !s->send_dead ? POLLOUT : 0),
	};
	uint64_t end_ns = end_of_wait(timeout_ms);
	int ret;

	do
		ret = poll(&pfd, 1, clock_poll_ms(end_ns));
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	return ret ? 0 : -ETIMEDOUT;
}
