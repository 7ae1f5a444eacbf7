// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/client/session.h"
#include "daemon/queue/context.h"
#include "daemon/queue/directory.h"
#include "daemon/server/handshake.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

static void handshake_received(struct loop_op *op, int result, uint32_t flags);
static void handshake_landed(struct context *context, struct mail *mail);

/* Closes a connection before its HELLO was carried out. Sends the errno as
 * HELLO's reply, if the socket takes it.
 */
static void connection_end(int fd, int error)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_HELLO,
		.status = error,
	};

	send(fd, &record, sizeof(record), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

void connection_refuse(struct context *context, int fd, int error)
{
	counter_add(&context->stat.refused_connections, 1);
	connection_end(fd, error);
}

/* Links a time limit to the receive, which ends with it. So a timely HELLO
 * causes no wake-up, and no list is searched for late ones.
 */
static void handshake_limit(struct handshake *handshake)
{
	struct context *context = handshake->handshakes->context;
	uint64_t now_ns = loop_now(&context->loop, CLOCK_MONOTONIC);

	handshake->left = loop_timespec(handshake->due_ns - now_ns);
	io_uring_prep_link_timeout(loop_sqe(&context->loop,
					    &handshake->handshakes->limit),
				   &handshake->left, 0);
}

static void handshake_receive(struct handshake *handshake)
{
	struct loop *loop = &handshake->handshakes->context->loop;
	struct io_uring_sqe *sqe;

	loop_reserve(loop, 2);
	sqe = loop_sqe(loop, &handshake->received);
	io_uring_prep_recv(sqe, handshake->start.fd,
			   (char *)&handshake->start.hello + handshake->len,
			   sizeof(handshake->start.hello) - handshake->len, 0);
	if (handshake->due_ns) {
		sqe->flags |= IOSQE_IO_LINK;
		handshake_limit(handshake);
	}
}

static void hello_limited(struct loop_op *op, int result, uint32_t flags)
{
	struct handshakes *handshakes =
		container_of(op, struct handshakes, limit);

	(void)flags;
	/* The receive completes by itself: done or cancelled. */
	if (result != -ETIME && result != -ECANCELED && result != -ENOENT &&
	    result != -EALREADY)
		loop_fail(&handshakes->context->loop, "time limit of HELLO",
			  result);
}

void handshakes_init(struct handshakes *handshakes, struct context *context)
{
	handshakes->context = context;
	handshakes->limit.done = hello_limited;
	list_init(&handshakes->all);
	pthread_mutex_init(&handshakes->lock, NULL);
	/* A handshake is a connection; those are limited. */
	pool_init(&handshakes->pool, sizeof(struct handshake), UINT64_MAX);
}

int handshake_new(struct handshakes *handshakes, int fd, pid_t pid,
		  struct account *account)
{
	struct context *context = handshakes->context;
	struct handshake *handshake;

	pthread_mutex_lock(&handshakes->lock);
	handshake = pool_get(&handshakes->pool);
	pthread_mutex_unlock(&handshakes->lock);
	if (!handshake)
		return -ENOMEM;
	handshake->handshakes = handshakes;
	handshake->start.account = account;
	handshake->start.fd = fd;
	handshake->start.pid = pid;
	if (context->config.hello_timeout)
		handshake->due_ns = loop_now(&context->loop, CLOCK_MONOTONIC) +
				    context->config.hello_timeout * NSEC_PER_MSEC;
	handshake->received.done = handshake_received;
	handshake->handoff.deliver = handshake_landed;
	list_add(&handshakes->all, &handshake->all);
	share_add(&context->shared->connections, 1);
	share_add(&account->connections, 1);
	handshake_receive(handshake);
	return 0;
}

/* Frees a handshake and its reference to the account. The connection's next owner
 * has charged a reference of its own.
 */
static void handshake_free(struct handshake *handshake)
{
	struct handshakes *handshakes = handshake->handshakes;
	struct shared *shared = handshakes->context->shared;

	directory_unref(&shared->directory, handshake->start.in_directory);
	account_put(&shared->accounts, handshake->start.account);
	pthread_mutex_lock(&handshakes->lock);
	pool_put(&handshakes->pool, handshake);
	pthread_mutex_unlock(&handshakes->lock);
}

/* Ends a handshake that becomes no client, in the thread of @context. */
static void handshake_end(struct context *context, struct handshake *handshake)
{
	share_put(&context->shared->connections, 1);
	share_put(&handshake->start.account->connections, 1);
	handshake_free(handshake);
}

static void handshake_landed(struct context *context, struct mail *mail)
{
	struct handshake *handshake =
		container_of(mail, struct handshake, handoff);

	if (session_begin(context, &handshake->start) < 0) {
		connection_refuse(context, handshake->start.fd, -ENOMEM);
		handshake_end(context, handshake);
		return;
	}
	handshake_free(handshake);
}

/* Passes a connection with its HELLO to the thread of its queue. */
static void handshake_handoff(struct handshake *handshake)
{
	const struct expiry_hello *hello =
		(const void *)&handshake->start.hello;
	struct context *context = handshake->handshakes->context;
	struct shared *shared = context->shared;
	struct context *to = context;

	assert(handshake->len == sizeof(handshake->start.hello));
	list_del(&handshake->all);
	handshake->start.received_ns =
		loop_now(&context->loop, CLOCK_MONOTONIC);
	if (shared->nr > 1) {
		handshake->start.in_directory =
			directory_get(&shared->directory, hello->name);
		if (!handshake->start.in_directory) {
			connection_refuse(context, handshake->start.fd,
					  -ENOMEM);
			handshake_end(context, handshake);
			return;
		}
		to = shared->contexts[handshake->start.in_directory->thread];
	}
	if (to == context)
		handshake_landed(context, &handshake->handoff);
	else
		mail_post(&to->mailbox, &handshake->handoff);
}

static struct log_about handshake_about(const struct handshake *handshake)
{
	return (struct log_about) {
		.id = LOG_CLIENT_ENDED,
		.peer = true,
		.uid = handshake->start.account->uid,
		.pid = handshake->start.pid,
	};
}

/* Ends a handshake after its time limit: sends HELLO's reply and closes it. */
static void handshake_expire(struct handshake *handshake)
{
	struct log_about ended = handshake_about(handshake);
	struct context *context = handshake->handshakes->context;

	ended.error = ETIMEDOUT;
	log_peer(&ended,
		 "client of pid %d, uid %u ended: its HELLO did not come in time",
		 (int)handshake->start.pid,
		 (unsigned int)handshake->start.account->uid);
	counter_add(&context->stat.closed_hello, 1);
	list_del(&handshake->all);
	connection_end(handshake->start.fd, -ETIMEDOUT);
	handshake_end(context, handshake);
}

static void handshake_left(struct handshake *handshake)
{
	struct log_about ended = handshake_about(handshake);
	struct context *context = handshake->handshakes->context;

	if (handshake->len) {
		counter_add(&context->stat.closed_protocol, 1);
		log_peer(&ended,
			 "client of pid %d, uid %u ended: its stream ended inside a record",
			 (int)handshake->start.pid,
			 (unsigned int)handshake->start.account->uid);
	}
	list_del(&handshake->all);
	close(handshake->start.fd);
	handshake_end(context, handshake);
}

static void handshake_received(struct loop_op *op, int result, uint32_t flags)
{
	struct handshake *handshake =
		container_of(op, struct handshake, received);

	(void)flags;
	if (result > 0) {
		handshake->len += result;
	} else if (result == -ECANCELED) {
		handshake_expire(handshake);
		return;
	} else if (result != -EINTR && result != -EAGAIN) {
		/* The peer closed the connection; that is not an error. */
		if (result < 0)
			handshake->len = 0;
		handshake_left(handshake);
		return;
	}
	if (handshake->len == sizeof(handshake->start.hello))
		handshake_handoff(handshake);
	else
		handshake_receive(handshake);
}

void handshakes_deinit(struct handshakes *handshakes)
{
	struct list *entry;

	while ((entry = list_pop(&handshakes->all))) {
		struct handshake *handshake =
			container_of(entry, struct handshake, all);

		close(handshake->start.fd);
		handshake_end(handshakes->context, handshake);
	}
	pool_deinit(&handshakes->pool);
	pthread_mutex_destroy(&handshakes->lock);
}
