// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/client/client.h"
#include "daemon/server/handshake.h"
#include "daemon/server/server.h"
#include "daemon/util/log.h"

static void handshake_received(struct loop_op *op, int result, uint32_t flags);
static void handshake_landed(struct server *server, struct mail *mail);

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

void connection_refuse(struct server *server, int fd, int error)
{
	counter_add(&server->stat.refused_connections, 1);
	connection_end(fd, error);
}

/* Links a time limit to the receive, which ends with it. So a timely HELLO
 * causes no wake-up, and no list is searched for late ones.
 */
static void handshake_limit(struct handshake *handshake)
{
	struct server *server = handshake->server;
	uint64_t now_ns = loop_now(&server->loop, CLOCK_MONOTONIC);

	handshake->left = loop_timespec(handshake->due_ns - now_ns);
	io_uring_prep_link_timeout(loop_sqe(&server->loop,
					    &server->hello_limit),
				   &handshake->left, 0);
}

static void handshake_receive(struct handshake *handshake)
{
	struct loop *loop = &handshake->server->loop;
	struct io_uring_sqe *sqe;

	loop_reserve(loop, 2);
	sqe = loop_sqe(loop, &handshake->received);
	io_uring_prep_recv(sqe, handshake->fd,
			   (char *)&handshake->hello + handshake->len,
			   sizeof(handshake->hello) - handshake->len, 0);
	if (handshake->due_ns) {
		sqe->flags |= IOSQE_IO_LINK;
		handshake_limit(handshake);
	}
}

static void hello_limited(struct loop_op *op, int result, uint32_t flags)
{
	struct server *server = container_of(op, struct server, hello_limit);

	(void)flags;
	/* The receive completes by itself: done or cancelled. */
	if (result != -ETIME && result != -ECANCELED && result != -ENOENT &&
	    result != -EALREADY)
		loop_fail(&server->loop, "time limit of HELLO", result);
}

void handshakes_init(struct server *server)
{
	list_init(&server->handshakes);
	server->hello_limit.done = hello_limited;
}

int handshake_new(struct server *server, int fd, pid_t pid,
		  struct account *account)
{
	struct shards *shards = server->shards;
	struct handshake *handshake;

	pthread_mutex_lock(&shards->handshake_lock);
	handshake = pool_get(&shards->handshake_pool);
	pthread_mutex_unlock(&shards->handshake_lock);
	if (!handshake)
		return -ENOMEM;
	handshake->server = server;
	handshake->account = account;
	handshake->fd = fd;
	handshake->pid = pid;
	if (server->config.hello_timeout)
		handshake->due_ns = loop_now(&server->loop, CLOCK_MONOTONIC) +
				    server->config.hello_timeout * 1000000;
	handshake->received.done = handshake_received;
	handshake->handoff.deliver = handshake_landed;
	list_add(&server->handshakes, &handshake->all);
	share_add(&shards->connections, 1);
	share_add(&account->connections, 1);
	handshake_receive(handshake);
	return 0;
}

/* Frees a handshake and its reference to the account. The connection's next owner
 * has charged a reference of its own.
 */
static void handshake_free(struct handshake *handshake)
{
	struct shards *shards = handshake->server->shards;

	directory_unref(&shards->directory, handshake->in_directory);
	account_put(&shards->accounts, handshake->account);
	pthread_mutex_lock(&shards->handshake_lock);
	pool_put(&shards->handshake_pool, handshake);
	pthread_mutex_unlock(&shards->handshake_lock);
}

/* Ends a handshake that becomes no client, in @server's thread. */
static void handshake_end(struct server *server, struct handshake *handshake)
{
	share_put(&server->shards->connections, 1);
	share_put(&handshake->account->connections, 1);
	handshake_free(handshake);
}

static void handshake_landed(struct server *server, struct mail *mail)
{
	struct handshake *handshake =
		container_of(mail, struct handshake, handoff);

	if (client_new(server, handshake) < 0) {
		connection_refuse(server, handshake->fd, -ENOMEM);
		handshake_end(server, handshake);
		return;
	}
	handshake_free(handshake);
}

/* Passes a connection with its HELLO to the thread of its queue. */
static void handshake_handoff(struct handshake *handshake)
{
	const struct expiry_hello *hello = (const void *)&handshake->hello;
	struct server *server = handshake->server;
	struct shards *shards = server->shards;
	struct server *to = server;

	list_del(&handshake->all);
	handshake->received_ns = loop_now(&server->loop, CLOCK_MONOTONIC);
	if (shards->nr > 1) {
		handshake->in_directory =
			directory_get(&shards->directory, hello->name);
		if (!handshake->in_directory) {
			connection_refuse(server, handshake->fd, -ENOMEM);
			handshake_end(server, handshake);
			return;
		}
		to = shards->servers[handshake->in_directory->thread];
	}
	if (to == server)
		handshake_landed(server, &handshake->handoff);
	else
		mail_post(&to->mailbox, &handshake->handoff);
}

static struct log_about handshake_about(const struct handshake *handshake)
{
	return (struct log_about) {
		.id = LOG_CLIENT_ENDED,
		.peer = true,
		.uid = handshake->account->uid,
		.pid = handshake->pid,
	};
}

/* Ends a handshake after its time limit: sends HELLO's reply and closes it. */
static void handshake_expire(struct handshake *handshake)
{
	struct log_about ended = handshake_about(handshake);
	struct server *server = handshake->server;

	ended.error = ETIMEDOUT;
	log_peer(&ended,
		 "client of pid %d, uid %u ended: its HELLO did not come in time",
		 (int)handshake->pid, (unsigned int)handshake->account->uid);
	counter_add(&server->stat.closed_hello, 1);
	list_del(&handshake->all);
	connection_end(handshake->fd, -ETIMEDOUT);
	handshake_end(server, handshake);
}

static void handshake_left(struct handshake *handshake)
{
	struct log_about ended = handshake_about(handshake);
	struct server *server = handshake->server;

	if (handshake->len) {
		counter_add(&server->stat.closed_protocol, 1);
		log_peer(&ended,
			 "client of pid %d, uid %u ended: its stream ended inside a record",
			 (int)handshake->pid,
			 (unsigned int)handshake->account->uid);
	}
	list_del(&handshake->all);
	close(handshake->fd);
	handshake_end(server, handshake);
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
	if (handshake->len == sizeof(handshake->hello))
		handshake_handoff(handshake);
	else
		handshake_receive(handshake);
}

void handshakes_deinit(struct server *server)
{
	struct list *entry;

	while ((entry = list_pop(&server->handshakes))) {
		struct handshake *handshake =
			container_of(entry, struct handshake, all);

		close(handshake->fd);
		share_put(&server->shards->connections, 1);
		share_put(&handshake->account->connections, 1);
		handshake_free(handshake);
	}
}
