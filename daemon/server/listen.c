// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/queue/context.h"
#include "daemon/queue/store.h"
#include "daemon/server/handshake.h"
#include "daemon/server/listen.h"
#include "daemon/util/log.h"
#include "daemon/util/socket-default.h"
#include "daemon/util/util.h"

#define LISTEN_BACKLOG	4096

/* Reserved shares of all connections: one for users with few, and one for root.
 * A user has few below the latter.
 */
#define CONNECTIONS_FOR_FEW	8
#define CONNECTIONS_FEW		256

/* Refusals in one turn through the reserve, and the pause if even that fails.
 */
#define TURN_REFUSALS	16
#define REFUSAL_PAUSE_NS	100000000

/* Linux 6.16; older headers lack it. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

/* Accepts one client a turn. A multishot accept would take the whole backlog at
 * once, and all other clients would wait for that.
 */
static void listener_accept(struct listener *listener)
{
	struct io_uring_sqe *sqe =
		loop_sqe(&listener->context->loop, &listener->op);

	assert(!listener->accepting);
	io_uring_prep_accept(sqe, listener->fd, NULL, NULL, SOCK_CLOEXEC);
	listener->accepting = true;
}

/* Returns the most connections at which a user with @nr may have one more. A
 * few users must not exclude all others.
 */
static uint64_t connections_max(const struct context *context, uid_t uid,
				uint64_t nr)
{
	uint64_t all = context->config.connections;
	uint64_t few = all / CONNECTIONS_FEW;

	if (accounts_privileged(&context->shared->accounts, uid))
		return all;
	if (nr && nr >= few)
		return all - all / CONNECTIONS_FOR_FEW;
	return all - few;
}

static void admit(struct listener *listener, int fd)
{
	struct context *context = listener->context;
	const struct config *config = &context->config;
	struct log_about refused = { .id = LOG_CLIENT_REFUSED, .peer = true };
	struct shared *shared = context->shared;
	socklen_t len = sizeof(struct ucred);
	struct account *account;
	struct ucred peer;
	uint64_t max;
	int r = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		close(fd);
		return;
	}
	refused.uid = peer.uid;
	refused.pid = peer.pid;
	account = account_get(&shared->accounts, peer.uid);
	if (!account) {
		connection_refuse(context, fd, -ENOMEM);
		return;
	}
	/* The count can only fall meanwhile: only this thread admits clients.
	 */
	max = connections_max(context, peer.uid,
			      share_read(&account->connections));
	if (share_read(&shared->connections) >= max) {
		refused.error = EBUSY;
		log_peer(&refused,
			 "client of pid %d, uid %u refused: %llu connections are the limit",
			 (int)peer.pid, (unsigned int)peer.uid,
			 (unsigned long long)max);
		r = -EBUSY;
	} else if (share_read(&account->connections) >=
		   config->connections_per_user) {
		refused.error = EDQUOT;
		log_peer(&refused,
			 "client of pid %d, uid %u refused: %llu connections are the limit of a user",
			 (int)peer.pid, (unsigned int)peer.uid,
			 (unsigned long long)config->connections_per_user);
		r = -EDQUOT;
	} else {
		r = handshake_new(listener->handshakes, fd, peer.pid, account);
	}
	if (r < 0) {
		account_put(&shared->accounts, account);
		connection_refuse(context, fd, r);
	}
}

/* ------------------------------------------------------- without descriptors */

static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS ||
	       error == ENOMEM;
}

static bool somebody_waits(const struct listener *listener)
{
	struct pollfd poll_fd = { .fd = listener->fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

/* Frees the reserve for the next connection, refuses it, and takes the
 * descriptor back. Returns false if that fails, too.
 */
static bool refuse_from_reserve(struct listener *listener, int error)
{
	struct log_about refused = {
		.id = LOG_CLIENT_REFUSED,
		.peer = true,
		.error = error,
	};
	socklen_t len = sizeof(struct ucred);
	struct ucred peer = { 0 };
	int fd;

	if (listener->reserve >= 0)
		close(listener->reserve);
	fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
		refused.uid = peer.uid;
		refused.pid = peer.pid;
		log_peer(&refused, "client of pid %d, uid %u refused: %s",
			 (int)peer.pid, (unsigned int)peer.uid,
			 strerror(error));
		connection_refuse(listener->context, fd, -EBUSY);
	}
	listener->reserve = eventfd(0, EFD_CLOEXEC);
	return fd >= 0;
}

static void listener_wait(struct listener *listener, bool pause)
{
	struct io_uring_sqe *sqe =
		loop_sqe(&listener->context->loop, &listener->wait);

	if (pause)
		io_uring_prep_timeout(sqe, &listener->pause, 0, 0);
	else
		io_uring_prep_poll_add(sqe, listener->fd, POLLIN);
}

/* Tries again: descriptors may be available. */
static void listener_waited(struct loop_op *op, int result, uint32_t flags)
{
	struct listener *listener = container_of(op, struct listener, wait);
	int i, fd, r;

	(void)flags;
	if (result == -ECANCELED)
		return;
	for (i = 0; i < TURN_REFUSALS && somebody_waits(listener); i++) {
		fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			admit(listener, fd);
			listener_accept(listener);
			return;
		}
		r = -errno;
		if (is_shortage(-r) && !refuse_from_reserve(listener, -r)) {
			log_peer(NULL, "cannot accept connections: %s",
				 strerror(-r));
			listener_wait(listener, true);
			return;
		}
	}
	listener_wait(listener, false);
}

static void listener_accepted(struct loop_op *op, int result, uint32_t flags)
{
	struct listener *listener = container_of(op, struct listener, op);

	if (!(flags & IORING_CQE_F_MORE))
		listener->accepting = false;
	if (result >= 0)
		admit(listener, result);
	if (listener->accepting || result == -ECANCELED)
		return;
	if (is_shortage(-result))
		listener_wait(listener, false);
	else
		listener_accept(listener);
}

/* Refuses descriptors that clients send with their records. The daemon does not
 * use them. Closing one may block without end, for example a TCP socket that
 * lingers. Connections inherit this from the listening socket. Kernels before
 * 6.16 cannot refuse them.
 */
static void refuse_descriptors(int fd)
{
	const int pass = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &pass, sizeof(pass));
}

/* Makes the listening socket. */
static int listener_make(struct listener *listener, const char *path,
			 mode_t mode)
{
	int r;

	r = socket_default_prepare(path);
	if (r < 0)
		return r;
	listener->fd = socket_file_make(&listener->file, path, mode);
	if (listener->fd < 0)
		return listener->fd;
	refuse_descriptors(listener->fd);
	if (!listen(listener->fd, LISTEN_BACKLOG))
		return 0;
	r = -errno;
	log_err("%s: %s", path, strerror(-r));
	return r;
}

int listener_init(struct listener *listener, struct handshakes *handshakes)
{
	struct context *context = handshakes->context;
	const char *path = context->config.socket;
	int r;

	*listener = (struct listener) {
		.context = context,
		.handshakes = handshakes,
		.fd = -1,
		.file.lock_fd = -1,
		.reserve = eventfd(0, EFD_CLOEXEC),
		.op.done = listener_accepted,
		.wait.done = listener_waited,
		.pause.tv_nsec = REFUSAL_PAUSE_NS,
	};
	if (context->shared->store->listener >= 0) {
		listener->fd = context->shared->store->listener;
		refuse_descriptors(listener->fd);
	} else {
		r = listener_make(listener, path, context->config.socket_mode);
		if (r < 0)
			return r;
	}
	listener_accept(listener);
	return 0;
}

void listener_deinit(struct listener *listener)
{
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	if (listener->reserve >= 0)
		close(listener->reserve);
	listener->reserve = -1;
	socket_file_remove(&listener->file);
}
