// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * System calls of programs that use the library: they may wait, be interrupted,
 * transfer a part, and find the connection cut after any byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tests/sim/file.h"
#include "tests/sim/program.h"
#include "tests/sim/wrap.h"

/* Returns whether a fault of the kernel comes now. */
static bool hits(uint32_t per_mille)
{
	return sim.phase == SIM_RUN && rng_hits(&sim.kernel, per_mille);
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* ---------------------------------------------------------------------- waiting */

/* The event that a call waits for. */
struct wanted {
	int fd;
	short events;
};

static bool is_there(void *data)
{
	const struct wanted *wanted = data;

	return file_poll(wanted->fd, wanted->events);
}

static uint64_t after(uint64_t timeout_ns)
{
	return timeout_ns ? sim.mono_ns + timeout_ns : EXPIRY_NEVER;
}

int call_poll(int fd, short events, int timeout_ms, short *revents)
{
	struct wanted wanted = { fd, events };

	if (timeout_ms && hits(sim.error))
		return fail(EINTR);
	if (timeout_ms && !is_there(&wanted))
		thread_wait(is_there, &wanted,
			    after(timeout_ms < 0 ? 0 : timeout_ms * SIM_MS));
	*revents = file_poll(fd, events);
	return *revents != 0;
}

/* ---------------------------------------------------------------------- streams */

/* Returns how much of @len this call transfers, at most @left. */
static size_t part(size_t len, size_t left)
{
	if (len > left)
		len = left;
	if (len < 2 || !hits(sim.partial))
		return len;
	return 1 + rng_below(&sim.kernel, len - 1);
}

static void transferred(struct stream *stream, size_t *left, size_t n)
{
	*left -= n;
	if (*left)
		return;
	trace("client %u: its connection is cut", stream->peer->number);
	stream->peer->may_end = true;
	stream_cut(stream, &sim.kernel);
}

ssize_t __wrap_recv(int fd, void *data, size_t len, int flags)
{
	struct wanted wanted = { fd, POLLIN };
	struct stream *stream;
	size_t n;

	if (!thread_is_program())
		return __real_recv(fd, data, len, flags);
	stream = stream_of(fd);
	if (!(flags & MSG_DONTWAIT) && hits(sim.error))
		return fail(EINTR);
	if (!(flags & MSG_DONTWAIT) && !is_there(&wanted))
		thread_wait(is_there, &wanted, after(file_of(fd)->timeout_ns));
	if (!is_there(&wanted))
		return fail(EAGAIN);
	if (stream->len) {
		n = len < stream->len ? len : stream->len;
		n = stream_read(stream, data, part(n, stream->peer->cut_down));
		peer_receive(stream->peer, data, n);
		transferred(stream, &stream->peer->cut_down, n);
		return n;
	}
	peer_check_end(stream->peer);
	if (!stream->is_reset)
		return 0;
	stream->is_reset = false;
	return fail(ECONNRESET);
}

ssize_t call_send(int fd, const void *data, size_t len, int flags)
{
	struct stream *stream = stream_of(fd);
	size_t n;

	if (!(flags & MSG_DONTWAIT) || !(flags & MSG_NOSIGNAL))
		sim_fail("the library sends with flags %#x", flags);
	if (hits(sim.error))
		return fail(EINTR);
	if (!stream->other || stream->other->is_deaf)
		return fail(rng_hits(&sim.kernel, 500) ? EPIPE : ECONNRESET);
	n = stream_write(stream, data, part(len, stream->peer->cut_up));
	if (!n)
		return fail(EAGAIN);
	program_send(stream->peer, data, n);
	transferred(stream, &stream->peer->cut_up, n);
	return n;
}

/* Lets a program find no connection. */
static int refuse(int error)
{
	oracle_unconnected(thread_data(), -error);
	return fail(error);
}

int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	if (!thread_is_program())
		return file_new(FILE_MANAGER, NULL);
	return hits(sim.error) ? refuse(EMFILE) : file_new(FILE_STREAM, NULL);
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	static const int errors[] = { ECONNREFUSED, ENOENT, EAGAIN, EINTR };

	if (!thread_is_program())
		return __real_connect(fd, addr, len);
	if (hits(10 * sim.error))
		return refuse(errors[rng_below(&sim.kernel, 4)]);
	file_of(fd)->stream = program_connect();
	return file_of(fd)->stream ? 0 : refuse(EAGAIN);
}

int __wrap_fcntl(int fd, int command, ...)
{
	(void)command;
	if (!thread_is_program())
		sim_fail("the daemon calls fcntl()");
	return file_of(fd) ? 0 : -1;
}

/* ------------------------------------------------------------------ epoll files */

int __wrap_epoll_create1(int flags)
{
	if (!thread_is_program())
		return __real_epoll_create1(flags);
	return file_new(FILE_EPOLL, NULL);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	struct file *file;
	uint32_t i;

	if (!thread_is_program())
		return __real_epoll_ctl(epoll, op, fd, event);
	file = file_of(epoll);
	for (i = 0; i < file->nr_watched; i++)
		if (file->watched[i].fd == fd)
			break;
	if ((op == EPOLL_CTL_ADD) != (i == file->nr_watched))
		return fail(op == EPOLL_CTL_ADD ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_DEL) {
		file->watched[i] = file->watched[--file->nr_watched];
		return 0;
	}
	if (i == FILE_MAX_WATCHED)
		sim_fail("an epoll file of a program has too many descriptors");
	file->watched[i] = (struct watched) { fd, event->events };
	if (op == EPOLL_CTL_ADD)
		file->nr_watched++;
	return 0;
}

void call_close(int fd)
{
	struct file *file = file_of(fd);

	if (file->kind == FILE_STREAM && file->stream)
		program_hang_up(file->stream->peer);
}
