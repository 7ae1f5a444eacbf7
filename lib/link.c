// SPDX-License-Identifier: LGPL-2.1-or-later
/* A connection that is replaced when it breaks. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "acks.h"
#include "clock.h"
#include "exchange.h"
#include "inbox.h"
#include "link.h"
#include "restore.h"
#include "transport-unix.h"

/* Pauses between attempts to connect. */
#define PAUSE_MS	10
#define PAUSE_MAX_MS	1000

/* A refusal may be temporary: the server may not yet know that the previous
 * connection is closed. After this time it is final.
 */
#define REFUSED_NS	(5 * 1000000000ULL)

#define RECORD		sizeof(struct expiry_record)

static void timer_set(struct link *link, uint64_t after_ns)
{
	const struct itimerspec at = {
		.it_value.tv_sec = after_ns / 1000000000,
		.it_value.tv_nsec = after_ns % 1000000000,
	};

	timerfd_settime(link->timer_fd, 0, &at, NULL);
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
	struct link *link = h->link;
	uint64_t pause_ns = link->pause_ms * 1000000ULL;

	/* Remove it explicitly: a forked child may keep the socket open. */
	if (h->stream.fd >= 0)
		watch(h, EPOLL_CTL_DEL, h->stream.fd, 0);
	stream_disconnect(&h->stream);
	assert(!stream_unsent(&h->stream));
	link->state = LINK_DOWN;
	link->retry_ns = clock_now_ns(CLOCK_MONOTONIC) + pause_ns;
	/* 0 would stop the timer. The timer also wakes a program that must get
	 * h->error.
	 */
	timer_set(link, pause_ns ?: 1);
	link->pause_ms = link->pause_ms ? 2 * link->pause_ms : PAUSE_MS;
	if (link->pause_ms > PAUSE_MAX_MS)
		link->pause_ms = PAUSE_MAX_MS;
}

/* Returns whether the errno means that no server is running, as in a restart.
 */
static bool is_server_gone(int error)
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

int link_lost(struct expiry *h)
{
	struct link *link = h->link;
	int error = h->error;

	assert(error < 0);
	if (!is_server_gone(error))
		return error;
	h->error = 0;
	if (link->state == LINK_UP) {
		/* The program gets the error after all records that had
		 * arrived.
		 */
		inbox_drop_expirations(h);
		link->credit = h->granted;
		acks_lost(h, link->replay.sent);
		replay_lost(&link->replay, h->mode & EXPIRY_MODE_KEYED,
			    &h->inbox);
		h->awaited = 0;
	}
	link_down(h);
	return error == -ETIMEDOUT ? error : 0;
}

/* Handles a failed connect or HELLO, or a queue that is not the lost one. */
static void link_failed(struct expiry *h, int error)
{
	struct link *link = h->link;
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	if (is_server_gone(error))
		link->refused_ns = 0;
	else if (!link->refused_ns)
		link->refused_ns = now;
	if (error == -EPROTO || error == -ESTALE ||
	    (link->refused_ns && now - link->refused_ns >= REFUSED_NS))
		h->error = error;
	else
		h->error = 0;
	link_down(h);
}

/* ------------------------------------------------------------------------
 * Handshake
 */

/* Requests what tells the queue from another of its name. */
static int handshake_send(struct expiry *h)
{
	static const struct expiry_record stat = { .op = EXPIRY_OP_STAT };
	int ret;

	h->link->state = LINK_HANDSHAKE;
	stream_put(&h->stream, &stat, 1);
	ret = stream_flush(&h->stream);
	return ret < 0 ? ret : 0;
}

static int handshake_begin(struct expiry *h)
{
	struct link *link = h->link;
	struct expiry_record hello;
	int ret;

	assert(link->state == LINK_DOWN && !h->error);
	ret = stream_reconnect(&h->stream, link->path, h->timeout_ms);
	if (ret)
		return ret;
	ret = watch(h, EPOLL_CTL_ADD, h->stream.fd, POLLIN);
	if (ret)
		return ret;
	link->events = POLLIN;
	link->attached = false;
	timer_set(link, 0);
	memcpy(&hello, &link->hello, sizeof(hello));
	stream_put(&h->stream, &hello, 1);
	return handshake_send(h);
}

/* Checks the reply to HELLO: 0, or the errno that ends this attempt. */
static int check_hello(struct expiry *h, const struct expiry_record *reply)
{
	const struct link *link = h->link;

	/* The daemon is there, but the queue was dropped. */
	if (reply->op == EXPIRY_OP_HELLO && reply->status == -ENOENT &&
	    link->hello.flags & (EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE))
		return -ESTALE;
	return unix_hello_reply(h, reply, link->hello.flags);
}

/*
 * Checks that this is the queue of before. A durable queue has a number. Another
 * one has not: with the embedded engine its age is at most the daemon's. With the
 * kernel's, it has counted at least as many timers, unless other clients made up
 * the difference.
 */
static int check_queue(struct expiry *h, const struct expiry_stat *stat,
		       const struct expiry_server_stat *server)
{
	uint64_t now = clock_now_ns(CLOCK_BOOTTIME);
	struct link *link = h->link;
	bool lost;

	lost = link->learns ? !server->durable :
			      server->durable != link->durable;
	link->learns = false;
	link->durable = server->durable;
	if (!link->durable && server->engine == EXPIRY_ENGINE_EMBEDDED)
		lost |= server->uptime_ns < now - link->attached_ns;
	if (!link->durable)
		lost |= stat->arms < link->arms;
	if (lost && !h->restore)
		return -ESTALE;
	if (lost)
		h->restore->wanted = true;
	link->arms = stat->arms;
	link->attached_ns = now;
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
	if (head->op != EXPIRY_OP_STAT || head->status > 0)
		return -EPROTO;
	/* A daemon that is overloaded may refuse it. */
	if (head->status)
		return head->status;
	if (head->period_ms < sizeof(stat) / RECORD ||
	    head->period_ms > STREAM_BUFFER / RECORD - 1)
		return -EPROTO;
	if (stream_nr(&h->stream) < 1 + head->period_ms)
		return 0;
	memcpy(&stat, head + 1, sizeof(stat));
	size = head->period_ms * RECORD - sizeof(stat);
	memcpy(&server, (const char *)(head + 1) + sizeof(stat),
	       size < sizeof(server) ? size : sizeof(server));
	stream_skip(&h->stream, 1 + head->period_ms);
	ret = check_queue(h, &stat, &server);
	return ret ?: 1;
}

/* Processes the server's replies: 1 when complete, 0 to wait for more, or
 * -errno.
 */
static int handshake_continue(struct expiry *h)
{
	const struct expiry_record *reply;
	struct link *link = h->link;
	int ret;

	ret = stream_fill(&h->stream, false);
	if (ret <= 0)
		return ret;
	if (!link->attached && stream_nr(&h->stream)) {
		reply = stream_units(&h->stream);
		ret = check_hello(h, reply);
		if (ret)
			return ret;
		if (h->restore && !reply->id)
			h->restore->wanted = true;
		stream_skip(&h->stream, 1);
		link->attached = true;
		/* Before the events that come with the handshake. */
		link->count++;
	}
	if (!link->attached)
		return 0;
	/* A consumer may get a CLOCK_SET first. */
	ret = inbox_sort(h, NULL, 0);
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
	struct link *link = h->link;
	const struct expiry_record *next;
	uint32_t nr;
	int ret = 1;

	assert(link->state == LINK_UP && h->awaited <= link->replay.sent);
	link->credit += h->credit_due;
	h->credit_due = 0;
	while (ret > 0 && replay_unsent(&link->replay)) {
		next = replay_next(&link->replay, &nr);
		ret = exchange_send(h, next, nr);
		if (ret > 0)
			link->replay.sent += ret;
	}
	assert(h->awaited <= link->replay.sent);
	if (!replay_unsent(&link->replay) && !link->repeating) {
		h->credit_due = link->credit;
		link->credit = 0;
	}
	if (!h->error)
		exchange_flush(h);
}

static void restoring(struct expiry *h)
{
	h->link->state = LINK_RESTORE;
	restore_begin(h);
}

/* Continues to arm the program's timers. 1 when all are, 0 to wait, or -errno
 * of the connection or h->error.
 */
static int restore_continue(struct expiry *h)
{
	struct link *link = h->link;
	int ret = restore_step(h);

	link->arms += h->restore->armed;
	h->restore->armed = 0;
	if (!ret) {
		timer_set(link, restore_pause_ns(h));
		link_update_events(h);
	}
	return ret;
}

/* Enters the state after the handshake, or after the timers are armed. */
static void asking(struct expiry *h)
{
	h->link->state = LINK_ACKS;
	acks_begin(h);
}

/* Asks for timers of ACKs. 1 when all are answered, 0 to wait, or -errno of the
 * connection or h->error.
 */
static int acks_continue(struct expiry *h)
{
	int ret = acks_step(h);

	if (!ret)
		link_update_events(h);
	return ret;
}

bool link_step(struct expiry *h)
{
	struct link *link = h->link;
	int ret = 0;

	if (h->error)
		return false;
	if (link->state == LINK_DOWN) {
		if (clock_now_ns(CLOCK_MONOTONIC) < link->retry_ns)
			return false;
		ret = handshake_begin(h);
	}
	if (!ret && link->state == LINK_HANDSHAKE) {
		ret = handshake_continue(h);
		if (!ret)
			return false;
		if (ret > 0 && restore_is_wanted(h))
			restoring(h);
		else if (ret > 0)
			asking(h);
	}
	if (ret >= 0 && link->state == LINK_RESTORE) {
		ret = restore_continue(h);
		if (!ret || h->error)
			return false;
		if (ret > 0)
			asking(h);
	}
	if (ret >= 0 && link->state == LINK_ACKS) {
		ret = acks_continue(h);
		if (!ret || h->error)
			return false;
	}
	if (ret < 0) {
		link_failed(h, ret);
		return false;
	}
	if (ret) {
		link->state = LINK_UP;
		link->refused_ns = 0;
	}
	send_posted(h);
	if (h->error)
		link_lost(h);
	return !h->error && link->state == LINK_UP;
}

/* Waits for the epoll file until @end_ns, if that is not 0. */
static int wait_until(const struct expiry *h, uint64_t end_ns)
{
	struct pollfd pfd = { .fd = h->fd, .events = POLLIN };
	int ms = clock_poll_ms(end_ns);

	if (!ms)
		return -ETIMEDOUT;
	return poll(&pfd, 1, ms) < 0 && errno != EINTR ? -errno : 0;
}

int link_wait(struct expiry *h)
{
	struct link *link = h->link;
	uint64_t end_ns = 0, arms = link->arms;
	bool up;
	int ret;

	for (;;) {
		up = link_step(h);
		if (h->error)
			return h->error;
		if (up && !replay_unsent(&link->replay))
			return 0;
		if (up) {
			exchange_make_room(h);
			link_acked(h, NULL, 0);
			ret = h->error ? link_lost(h) : 0;
		} else {
			/* A server that arms timers is not silent. */
			if (link->state == LINK_RESTORE && link->arms != arms)
				end_ns = 0;
			arms = link->arms;
			if (!end_ns && h->timeout_ms)
				end_ns = clock_now_ns(CLOCK_MONOTONIC) +
					 h->timeout_ms * 1000000ULL;
			ret = wait_until(h, end_ns);
		}
		if (ret)
			return ret;
	}
}

void link_acked(struct expiry *h, const struct expiry_record *records,
		uint32_t nr)
{
	struct link *link = h->link;
	uint32_t i;

	for (i = 0; i < nr; i++)
		link->arms += records[i].op == EXPIRY_OP_ARM &&
			   !records[i].status;
	if (replay_answered(&link->replay, h->awaited) || nr)
		link->pause_ms = 0;
}

void link_update_events(const struct expiry *h)
{
	struct link *link = h->link;
	bool out = stream_unsent(&h->stream);
	short events = POLLIN;

	if (link->state < LINK_RESTORE)
		return;
	if (link->state == LINK_UP)
		out |= h->credit_due || replay_unsent(&link->replay);
	if (out && !h->stream.send_dead)
		events |= POLLOUT;
	if (events != link->events &&
	    !watch(h, EPOLL_CTL_MOD, h->stream.fd, events))
		link->events = events;
}

/* ------------------------------------------------------------------------
 * Life
 */

int link_restore(struct expiry *h)
{
	/* A durable queue's STAT comes first. */
	if (h->link->state == LINK_UP)
		restoring(h);
	return link_wait(h);
}

int link_open(struct expiry *h, const char *path,
	      const struct expiry_options *options)
{
	struct link *link;
	int ret = -ENOMEM;

	link = calloc(1, sizeof(*link));
	if (!link)
		return -ENOMEM;
	assert(!h->link && h->stream.fd >= 0);
	h->link = link;
	unix_hello(&link->hello, options);
	link->state = LINK_UP;
	link->attached_ns = clock_now_ns(CLOCK_BOOTTIME);
	/* Each was armed once. A periodic one may count twice: it is armed and
	 * unacknowledged.
	 */
	link->arms = h->timers / 2;
	link->events = POLLIN;
	link->timer_fd = -1;
	h->fd = -1;
	link->path = strdup(path);
	if (!link->path || ring_init(&link->replay.ring, h->window) ||
	    acks_init(h, &link->replay.ring))
		goto err;
	link->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	h->fd = epoll_create1(EPOLL_CLOEXEC);
	if (link->timer_fd < 0 || h->fd < 0) {
		ret = -errno;
		goto err;
	}
	ret = watch(h, EPOLL_CTL_ADD, h->stream.fd, POLLIN);
	if (!ret)
		ret = watch(h, EPOLL_CTL_ADD, link->timer_fd, POLLIN);
	if (!ret && h->durable) {
		link->attached = true;
		link->learns = true;
		/* link_wait() connects again after a failure. */
		(void)handshake_send(h);
	}
	if (!ret)
		return 0;
err:
	link_close(h);
	return ret;
}

void link_close(struct expiry *h)
{
	struct link *link = h->link;

	if (h->fd >= 0)
		close(h->fd);
	if (link->timer_fd >= 0)
		close(link->timer_fd);
	free(h->acks);
	h->acks = NULL;
	ring_free(&link->replay.ring);
	free(link->path);
	free(link);
	h->link = NULL;
}
