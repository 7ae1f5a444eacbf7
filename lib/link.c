// SPDX-License-Identifier: LGPL-2.1-or-later
/* A connection that is replaced when it breaks. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "link.h"
#include "transport-unix.h"

/* Pauses between attempts to connect. */
#define PAUSE_MS	10
#define PAUSE_MAX_MS	1000

/* A refusal may be temporary: the server may not yet know that the previous
 * connection is closed. After this time it is final.
 */
#define REFUSED_NS	(5 * 1000000000ULL)

#define RECORD		sizeof(struct expiry_record)

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void timer_set(struct reconnect *r, uint64_t after_ns)
{
	const struct itimerspec at = {
		.it_value.tv_sec = after_ns / 1000000000,
		.it_value.tv_nsec = after_ns % 1000000000,
	};

	timerfd_settime(r->timer_fd, 0, &at, NULL);
}

static int watch(const struct expiry *h, int op, int fd, short events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(h->fd, op, fd, &event) ? -errno : 0;
}

/* ------------------------------------------------------------------------
 * Down
 */

/* Marks the connection as lost: the first time, reconnect at once. */
static void link_down(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	uint64_t pause_ns = r->pause_ms * 1000000ULL;

	/* Remove it explicitly: a forked child may keep the socket open. */
	if (h->stream.fd >= 0)
		watch(h, EPOLL_CTL_DEL, h->stream.fd, 0);
	stream_hang_up(&h->stream);
	r->state = LINK_DOWN;
	r->retry_ns = now_ns(CLOCK_MONOTONIC) + pause_ns;
	/* 0 would stop the timer. The timer also wakes a program that must get
	 * h->error.
	 */
	timer_set(r, pause_ns ?: 1);
	r->pause_ms = r->pause_ms ? 2 * r->pause_ms : PAUSE_MS;
	if (r->pause_ms > PAUSE_MAX_MS)
		r->pause_ms = PAUSE_MAX_MS;
}

/* Drops expirations that the program has not seen; the server delivers them
 * again, marked. So the program sees each once. Its credit stays. Copies do not
 * come again.
 */
static void forget_held(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	uint32_t i, nr = ring_nr(&h->kept);
	struct expiry_record record;

	if (h->observe)
		return;
	for (i = 0; i < nr; i++) {
		ring_take(&h->kept, &record, 1);
		if (record.op == EXPIRY_OP_EXPIRED)
			continue;
		if (record.op == EXPIRY_OP_CLOCK_SET)
			h->clock_set = h->kept.tail;
		ring_put(&h->kept, &record);
	}
	h->granted += h->held;
	h->held = 0;
	h->credit_due = 0;
	r->credit = h->granted;
}

/* Returns whether the errno means that no server is running, as in a restart.
 */
static bool is_gone(int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case ECONNRESET:
	case ENOENT:
	case EPIPE:
	case ETIMEDOUT:
		return true;
	}
	return false;
}

int reconnect_lost(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	int error = h->error;

	if (!is_gone(error))
		return error;
	h->error = 0;
	if (r->state == LINK_UP) {
		/* The program gets the error after all records that had
		 * arrived.
		 */
		forget_held(h);
		replay_lost(&r->replay, h->mode & EXPIRY_MODE_KEYED, &h->kept);
		h->awaited = 0;
	}
	link_down(h);
	return error == -ETIMEDOUT ? error : 0;
}

/* Handles a failed connect or HELLO, or a queue that is not the lost one. */
static void link_failed(struct expiry *h, int error)
{
	struct reconnect *r = h->reconnect;
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (is_gone(error))
		r->refused_ns = 0;
	else if (!r->refused_ns)
		r->refused_ns = now;
	if (error == -EPROTO || error == -ESTALE ||
	    (r->refused_ns && now - r->refused_ns >= REFUSED_NS))
		h->error = error;
	else
		h->error = 0;
	link_down(h);
}

/* ------------------------------------------------------------------------
 * Greeting
 */

static int link_greet(struct expiry *h)
{
	static const struct expiry_record stat = { .op = EXPIRY_OP_STAT };
	struct reconnect *r = h->reconnect;
	struct expiry_record hello;
	int ret;

	ret = stream_redial(&h->stream, r->path, h->timeout_ms);
	if (ret)
		return ret;
	ret = watch(h, EPOLL_CTL_ADD, h->stream.fd, POLLIN);
	if (ret)
		return ret;
	r->polled = POLLIN;
	r->attached = false;
	r->state = LINK_GREETING;
	timer_set(r, 0);
	memcpy(&hello, &r->hello, sizeof(hello));
	stream_put(&h->stream, &hello, 1);
	stream_put(&h->stream, &stat, 1);
	ret = stream_flush(&h->stream);
	return ret < 0 ? ret : 0;
}

/* Checks the reply to HELLO: 0, or the errno that ends this attempt. */
static int check_hello(const struct reconnect *r,
		       const struct expiry_record *reply)
{
	if (reply->op != EXPIRY_OP_HELLO || reply->status > 0)
		return -EPROTO;
	/* The daemon is there, but the queue was dropped. */
	if (reply->status == -ENOENT &&
	    r->hello.flags & (EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE))
		return -ESTALE;
	if (reply->status)
		return unix_hello_error(reply->status);
	return reply->cookie ? 0 : -EPROTO;
}

/*
 * Checks that this is the queue of before. With the embedded engine its age is
 * at most the daemon's. With the kernel's, it has counted at least as many
 * timers, unless other clients made up the difference.
 */
static int check_queue(struct reconnect *r, const struct expiry_stat *stat,
		       const struct expiry_server_stat *server)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);

	if (server->engine == EXPIRY_ENGINE_EMBEDDED &&
	    server->uptime_ns < now - r->met_ns)
		return -ESTALE;
	if (stat->arms < r->arms)
		return -ESTALE;
	r->arms = stat->arms;
	r->met_ns = now;
	return 0;
}

/* Takes the reply to STAT: 1, 0 if it is incomplete, or -errno. */
static int take_stat(struct expiry *h)
{
	const struct expiry_record *head = stream_units(&h->stream);
	struct expiry_server_stat server = { 0 };
	struct expiry_stat stat;
	size_t size;
	int ret;

	if (!stream_nr(&h->stream))
		return 0;
	if (head->op != EXPIRY_OP_STAT || head->status > 0 ||
	    head->period_ms < sizeof(stat) / RECORD ||
	    head->period_ms > STREAM_BUFFER / RECORD - 1)
		return -EPROTO;
	if (head->status)
		return head->status;
	if (stream_nr(&h->stream) < 1 + head->period_ms)
		return 0;
	memcpy(&stat, head + 1, sizeof(stat));
	size = head->period_ms * RECORD - sizeof(stat);
	memcpy(&server, (const char *)(head + 1) + sizeof(stat),
	       size < sizeof(server) ? size : sizeof(server));
	stream_skip(&h->stream, 1 + head->period_ms);
	ret = check_queue(h->reconnect, &stat, &server);
	return ret ?: 1;
}

/* Processes the server's replies: 1 when complete, 0 to wait for more, or
 * -errno.
 */
static int link_greeted(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	int ret;

	ret = stream_fill(&h->stream, false);
	if (ret <= 0)
		return ret;
	if (!r->attached && stream_nr(&h->stream)) {
		ret = check_hello(r, stream_units(&h->stream));
		if (ret)
			return ret;
		stream_skip(&h->stream, 1);
		r->attached = true;
		/* Before the events that come with the greeting. */
		r->count++;
	}
	if (!r->attached)
		return 0;
	/* A consumer may get a CLOCK_SET first. */
	ret = unix_sort(h, NULL, 0);
	return ret ?: take_stat(h);
}

/* ------------------------------------------------------------------------
 * Up
 */

/* Sends posted requests first, then the credit. Otherwise a timer in doubt
 * could expire, be armed again and expire twice.
 */
static void send_posted(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	const struct expiry_record *run;
	uint32_t nr;
	int ret = 1;

	r->credit += h->credit_due;
	h->credit_due = 0;
	while (ret > 0 && replay_unsent(&r->replay)) {
		run = replay_run(&r->replay, &nr);
		ret = unix_send(h, run, nr);
		if (ret > 0)
			r->replay.sent += ret;
	}
	if (!replay_unsent(&r->replay) && !r->repeating) {
		h->credit_due = r->credit;
		r->credit = 0;
	}
	if (!h->error)
		unix_flush(h);
}

bool reconnect_step(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	int ret = 0;

	if (h->error)
		return false;
	if (r->state == LINK_DOWN) {
		if (now_ns(CLOCK_MONOTONIC) < r->retry_ns)
			return false;
		ret = link_greet(h);
	}
	if (!ret && r->state == LINK_GREETING) {
		ret = link_greeted(h);
		if (!ret)
			return false;
	}
	if (ret < 0) {
		link_failed(h, ret);
		return false;
	}
	if (ret) {
		r->state = LINK_UP;
		r->refused_ns = 0;
	}
	send_posted(h);
	if (h->error)
		reconnect_lost(h);
	return !h->error && r->state == LINK_UP;
}

/* Waits for the epoll file until @end_ns, if that is not 0. */
static int wait_until(const struct expiry *h, uint64_t end_ns)
{
	struct pollfd pfd = { .fd = h->fd, .events = POLLIN };
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int ms = -1;

	if (end_ns) {
		if (now >= end_ns)
			return -ETIMEDOUT;
		ms = (end_ns - now + 999999) / 1000000;
	}
	return poll(&pfd, 1, ms) < 0 && errno != EINTR ? -errno : 0;
}

int reconnect_wait(struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	uint64_t end_ns = 0;
	bool up;
	int ret;

	for (;;) {
		up = reconnect_step(h);
		if (h->error)
			return h->error;
		if (up && !replay_unsent(&r->replay))
			return 0;
		if (up) {
			unix_make_room(h);
			reconnect_heard(h, NULL, 0);
			ret = h->error ? reconnect_lost(h) : 0;
		} else {
			if (!end_ns && h->timeout_ms)
				end_ns = now_ns(CLOCK_MONOTONIC) +
					 h->timeout_ms * 1000000ULL;
			ret = wait_until(h, end_ns);
		}
		if (ret)
			return ret;
	}
}

void reconnect_heard(struct expiry *h, const struct expiry_record *records,
		     uint32_t nr)
{
	struct reconnect *r = h->reconnect;
	uint32_t i;

	for (i = 0; i < nr; i++)
		r->arms += records[i].op == EXPIRY_OP_ARM &&
			   !records[i].status;
	if (replay_answered(&r->replay, h->awaited) || nr)
		r->pause_ms = 0;
}

void reconnect_poll(const struct expiry *h)
{
	struct reconnect *r = h->reconnect;
	bool out = stream_unsent(&h->stream) || h->credit_due ||
		   replay_unsent(&r->replay);
	short events = POLLIN;

	if (r->state != LINK_UP)
		return;
	if (out && !h->stream.send_dead)
		events |= POLLOUT;
	if (events != r->polled &&
	    !watch(h, EPOLL_CTL_MOD, h->stream.fd, events))
		r->polled = events;
}

/* ------------------------------------------------------------------------
 * Life
 */

int reconnect_open(struct expiry *h, const char *path,
		   const struct expiry_options *options)
{
	struct reconnect *r;
	int ret = -ENOMEM;

	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	h->reconnect = r;
	unix_hello(&r->hello, options);
	r->state = LINK_UP;
	r->met_ns = now_ns(CLOCK_BOOTTIME);
	/* Each was armed once. A periodic one may count twice: it is armed and
	 * unacknowledged.
	 */
	r->arms = h->timers / 2;
	r->polled = POLLIN;
	r->timer_fd = -1;
	h->fd = -1;
	r->path = strdup(path);
	if (!r->path || ring_init(&r->replay.ring, h->window))
		goto err;
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	h->fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->timer_fd < 0 || h->fd < 0) {
		ret = -errno;
		goto err;
	}
	ret = watch(h, EPOLL_CTL_ADD, h->stream.fd, POLLIN);
	if (!ret)
		ret = watch(h, EPOLL_CTL_ADD, r->timer_fd, POLLIN);
	if (!ret)
		return 0;
err:
	reconnect_close(h);
	return ret;
}

void reconnect_close(struct expiry *h)
{
	struct reconnect *r = h->reconnect;

	if (h->fd >= 0)
		close(h->fd);
	if (r->timer_fd >= 0)
		close(r->timer_fd);
	ring_free(&r->replay.ring);
	free(r->path);
	free(r);
	h->reconnect = NULL;
}
