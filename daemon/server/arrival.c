// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/client/client.h"
#include "daemon/server/arrival.h"
#include "daemon/server/server.h"
#include "daemon/util/log.h"

static void arrival_received(struct loop_op *op, int result, uint32_t flags);
static void arrival_lands(struct server *server, struct mail *mail);

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
static void arrival_limit(struct arrival *arrival)
{
	struct server *server = arrival->server;
	uint64_t now_ns = loop_now(&server->loop, CLOCK_MONOTONIC);

	arrival->left = loop_timespec(arrival->due_ns - now_ns);
	io_uring_prep_link_timeout(loop_sqe(&server->loop, &server->hello_limit),
				   &arrival->left, 0);
}

static void arrival_receive(struct arrival *arrival)
{
	struct loop *loop = &arrival->server->loop;
	struct io_uring_sqe *sqe;

	loop_reserve(loop, 2);
	sqe = loop_sqe(loop, &arrival->received);
	io_uring_prep_recv(sqe, arrival->fd,
			   (char *)&arrival->hello + arrival->len,
			   sizeof(arrival->hello) - arrival->len, 0);
	if (arrival->due_ns) {
		sqe->flags |= IOSQE_IO_LINK;
		arrival_limit(arrival);
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

void arrivals_init(struct server *server)
{
	list_init(&server->arrivals);
	server->hello_limit.done = hello_limited;
}

int arrival_new(struct server *server, int fd, pid_t pid,
		struct account *account)
{
	struct shards *shards = server->shards;
	struct arrival *arrival;

	pthread_mutex_lock(&shards->arrival_lock);
	arrival = pool_get(&shards->arrival_pool);
	pthread_mutex_unlock(&shards->arrival_lock);
	if (!arrival)
		return -ENOMEM;
	arrival->server = server;
	arrival->account = account;
	arrival->fd = fd;
	arrival->pid = pid;
	if (server->config.hello_timeout)
		arrival->due_ns = loop_now(&server->loop, CLOCK_MONOTONIC) +
				  server->config.hello_timeout * 1000000;
	arrival->received.done = arrival_received;
	arrival->landing.deliver = arrival_lands;
	list_add(&server->arrivals, &arrival->all);
	share_add(&shards->connections, 1);
	share_add(&account->connections, 1);
	arrival_receive(arrival);
	return 0;
}

/* Frees an arrival and its reference to the account. The connection's next owner
 * has charged a reference of its own.
 */
static void arrival_free(struct arrival *arrival)
{
	struct shards *shards = arrival->server->shards;

	place_put(&shards->directory, arrival->place);
	account_put(&shards->accounts, arrival->account);
	pthread_mutex_lock(&shards->arrival_lock);
	pool_put(&shards->arrival_pool, arrival);
	pthread_mutex_unlock(&shards->arrival_lock);
}

/* Ends an arrival that becomes no client, in @server's thread. */
static void arrival_end(struct server *server, struct arrival *arrival)
{
	share_put(&server->shards->connections, 1);
	share_put(&arrival->account->connections, 1);
	arrival_free(arrival);
}

static void arrival_lands(struct server *server, struct mail *mail)
{
	struct arrival *arrival = container_of(mail, struct arrival, landing);

	if (client_new(server, arrival) < 0) {
		connection_refuse(server, arrival->fd, -ENOMEM);
		arrival_end(server, arrival);
		return;
	}
	arrival_free(arrival);
}

/* Passes a connection with its HELLO to the thread of its queue. */
static void arrival_go(struct arrival *arrival)
{
	const struct expiry_hello *hello = (const void *)&arrival->hello;
	struct server *server = arrival->server;
	struct shards *shards = server->shards;
	struct server *to = server;

	list_del(&arrival->all);
	arrival->received_ns = loop_now(&server->loop, CLOCK_MONOTONIC);
	if (shards->nr > 1) {
		arrival->place = place_get(&shards->directory, hello->name);
		if (!arrival->place) {
			connection_refuse(server, arrival->fd, -ENOMEM);
			arrival_end(server, arrival);
			return;
		}
		to = shards->servers[arrival->place->thread];
	}
	if (to == server)
		arrival_lands(server, &arrival->landing);
	else
		mail_post(&to->mailbox, &arrival->landing);
}

static struct log_about arrival_about(const struct arrival *arrival)
{
	return (struct log_about) {
		.id = LOG_CLIENT_ENDED,
		.peer = true,
		.uid = arrival->account->uid,
		.pid = arrival->pid,
	};
}

/* Ends an arrival after its time limit: sends HELLO's reply and closes it. */
static void arrival_expire(struct arrival *arrival)
{
	struct log_about ended = arrival_about(arrival);
	struct server *server = arrival->server;

	ended.error = ETIMEDOUT;
	log_peer(&ended, "client of pid %d, uid %u ended: its HELLO did not come in time",
		 (int)arrival->pid, (unsigned int)arrival->account->uid);
	counter_add(&server->stat.closed_hello, 1);
	list_del(&arrival->all);
	connection_end(arrival->fd, -ETIMEDOUT);
	arrival_end(server, arrival);
}

static void arrival_left(struct arrival *arrival)
{
	struct log_about ended = arrival_about(arrival);
	struct server *server = arrival->server;

	if (arrival->len) {
		counter_add(&server->stat.closed_protocol, 1);
		log_peer(&ended,
			 "client of pid %d, uid %u ended: its stream ended inside a record",
			 (int)arrival->pid,
			 (unsigned int)arrival->account->uid);
	}
	list_del(&arrival->all);
	close(arrival->fd);
	arrival_end(server, arrival);
}

static void arrival_received(struct loop_op *op, int result, uint32_t flags)
{
	struct arrival *arrival = container_of(op, struct arrival, received);

	(void)flags;
	if (result > 0) {
		arrival->len += result;
	} else if (result == -ECANCELED) {
		arrival_expire(arrival);
		return;
	} else if (result != -EINTR && result != -EAGAIN) {
		/* The peer closed the connection; that is not an error. */
		if (result < 0)
			arrival->len = 0;
		arrival_left(arrival);
		return;
	}
	if (arrival->len == sizeof(arrival->hello))
		arrival_go(arrival);
	else
		arrival_receive(arrival);
}

void arrivals_deinit(struct server *server)
{
	struct list *entry;

	while ((entry = list_pop(&server->arrivals))) {
		struct arrival *arrival = container_of(entry, struct arrival,
						       all);

		close(arrival->fd);
		share_put(&server->shards->connections, 1);
		share_put(&arrival->account->connections, 1);
		arrival_free(arrival);
	}
}
