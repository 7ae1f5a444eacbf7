// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Descriptors of the daemon: sockets, the listener, eventfds, a signalfd, a
 * timerfd; and the calls on them that do not go through the ring.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/sim/file.h"
#include "tests/sim/wrap.h"

#define LISTENER	3	/* as systemd passes it, and queues behind it */
#define PASSED		8	/* most queues that are passed */
#define FILES		4096
#define BACKLOG		64

static struct file files[FILES];
static struct file listener = { .kind = FILE_LISTENER };
static struct file passed[PASSED];
static struct stream *backlog[BACKLOG];
static uint32_t nr_backlog;

struct file *file_of(int fd)
{
	if (fd == LISTENER)
		return &listener;
	if (fd > LISTENER && fd <= LISTENER + PASSED &&
	    passed[fd - LISTENER - 1].kind != FILE_NONE)
		return &passed[fd - LISTENER - 1];
	if (fd < FILE_FIRST || fd >= FILE_FIRST + FILES ||
	    files[fd - FILE_FIRST].kind == FILE_NONE)
		sim_fail("descriptor %d is not open", fd);
	return &files[fd - FILE_FIRST];
}

void files_pass(uint32_t nr)
{
	while (nr--)
		passed[nr].kind = FILE_QUEUE;
}

int file_new(enum file_kind kind, struct stream *stream)
{
	static int last;
	int i;

	/* Do not reuse a number soon, so that a stale one is found. */
	for (i = 0; i < FILES; i++)
		if (files[(last + i) % FILES].kind == FILE_NONE)
			break;
	last = (last + i) % FILES;
	files[last] = (struct file) { .kind = kind, .stream = stream };
	if (stream)
		stream->fd = FILE_FIRST + last;
	return FILE_FIRST + last++;
}

/* -------------------------------------------------------------------- streams */

static void streams_new(struct stream *pair[2], size_t max0, size_t max1)
{
	int i;

	for (i = 0; i < 2; i++) {
		pair[i] = sim_alloc(sizeof(*pair[i]));
		pair[i]->fd = -1;
		pair[i]->max = i ? max1 : max0;
		pair[i]->data = sim_alloc(pair[i]->max);
	}
	pair[0]->other = pair[1];
	pair[1]->other = pair[0];
}

struct stream *stream_of(int fd)
{
	struct file *file = file_of(fd);

	if (file->kind != FILE_STREAM || !file->stream)
		sim_fail("descriptor %d is no socket", fd);
	return file->stream;
}

size_t stream_write(struct stream *stream, const void *data, size_t len)
{
	struct stream *to = stream->other;
	size_t i;

	if (!to || to->is_deaf)
		return 0;
	if (len > to->max - to->len)
		len = to->max - to->len;
	for (i = 0; i < len; i++)
		to->data[(to->head + to->len + i) % to->max] =
			((const char *)data)[i];
	to->len += len;
	return len;
}

size_t stream_read(struct stream *stream, void *data, size_t len)
{
	size_t i;

	if (len > stream->len)
		len = stream->len;
	for (i = 0; i < len; i++)
		((char *)data)[i] = stream->data[(stream->head + i) %
						 stream->max];
	stream->head = (stream->head + len) % stream->max;
	stream->len -= len;
	return len;
}

void stream_end(struct stream *stream)
{
	if (stream->other)
		stream->other->is_ended = true;
}

void stream_close(struct stream *stream)
{
	if (stream->other) {
		stream->other->is_ended = true;
		stream->other->is_reset = stream->len;
		stream->other->other = NULL;
	}
	sim_free(stream->data);
	sim_free(stream);
}

void stream_cut(struct stream *stream, struct rng *rng)
{
	struct stream *ends[2] = { stream, stream->other };
	int i;

	for (i = 0; i < 2; i++) {
		if (!ends[i])
			continue;
		if (ends[i]->len && rng_hits(rng, 500))
			ends[i]->len = rng_below(rng, ends[i]->len);
		ends[i]->is_ended = true;
		ends[i]->is_reset = rng_hits(rng, 500);
		ends[i]->other = NULL;
	}
}

struct stream *file_connect(struct peer *peer, size_t up_max, size_t down_max)
{
	struct stream *pair[2];

	if (nr_backlog == BACKLOG)
		return NULL;
	streams_new(pair, down_max, up_max);
	pair[0]->peer = peer;
	pair[1]->peer = peer;
	backlog[nr_backlog++] = pair[1];
	return pair[0];
}

int file_accept(void)
{
	struct stream *stream = backlog[0];

	if (!nr_backlog)
		return -EAGAIN;
	memmove(backlog, backlog + 1, --nr_backlog * sizeof(*backlog));
	return file_new(FILE_STREAM, stream);
}

bool file_is_readable(int fd)
{
	const struct file *file = file_of(fd);
	const struct stream *stream = file->stream;

	if (file->kind == FILE_LISTENER)
		return nr_backlog;
	if (file->kind == FILE_STREAM)
		return !stream || stream->len || stream->is_ended ||
		       stream->is_deaf;
	if (file->kind == FILE_ALARM)
		return file->due_ns && file->due_ns <= sim.mono_ns;
	if (file->kind == FILE_EPOLL)
		return file_poll(fd, POLLIN);
	return file->count;
}

/* Returns whether a send would not have to wait. */
static bool is_writable(const struct stream *stream)
{
	return !stream || !stream->other ||
	       stream->other->max > stream->other->len;
}

short file_poll(int fd, short events)
{
	const struct file *file = file_of(fd);
	short ready = 0;
	uint32_t i;

	if (file->kind == FILE_EPOLL) {
		for (i = 0; i < file->nr_watched; i++)
			if (file_poll(file->watched[i].fd,
				      file->watched[i].events))
				ready |= POLLIN;
		return ready & events;
	}
	if (file_is_readable(fd))
		ready |= POLLIN;
	if (file->kind == FILE_STREAM && is_writable(file->stream))
		ready |= POLLOUT;
	return ready & events;
}

uint64_t files_next_ns(void)
{
	uint64_t next_ns = EXPIRY_NEVER;
	int i;

	for (i = 0; i < FILES; i++)
		if (files[i].kind == FILE_ALARM && files[i].due_ns &&
		    files[i].due_ns < next_ns)
			next_ns = files[i].due_ns;
	return next_ns;
}

ssize_t file_read(int fd, void *data, size_t len)
{
	struct file *file = file_of(fd);
	struct signalfd_siginfo info = { .ssi_signo = file->count };

	if (!file->count)
		return -EAGAIN;
	if (file->kind == FILE_SIGNAL)
		memcpy(data, &info, len);
	else
		memcpy(data, &file->count, len);
	file->count = 0;
	return len;
}

void file_signal(int signal)
{
	int i;

	for (i = 0; i < FILES; i++)
		if (files[i].kind == FILE_SIGNAL)
			files[i].count = signal;
}

void file_clock_set(void)
{
	int i;

	for (i = 0; i < FILES; i++)
		if (files[i].kind == FILE_TIMER)
			files[i].count++;
}

void files_check_closed(void)
{
	int i;

	for (i = 0; i < PASSED; i++)
		if (passed[i].kind != FILE_NONE)
			sim_fail("queue %d, which was passed, is left open", i);
	for (i = 0; i < FILES; i++)
		if (files[i].kind != FILE_NONE)
			sim_fail("descriptor %d of kind %d is left open",
				 FILE_FIRST + i, files[i].kind);
	while (nr_backlog)
		stream_close(backlog[--nr_backlog]);
}

/* ------------------------------------------------------------------ the calls */

int __wrap_close(int fd)
{
	struct file *file;

	file = file_of(fd);
	if (sim.phase < SIM_STOP && rings_use(fd, false))
		sim_fail("descriptor %d is closed while the ring uses it", fd);
	if (thread_is_program())
		call_close(fd);
	else if (file->kind == FILE_STREAM)
		stream_close(file->stream);
	if (fd != LISTENER)
		file->kind = FILE_NONE;
	return 0;
}

int __wrap_shutdown(int fd, int how)
{
	struct stream *stream = stream_of(fd);

	if (how == SHUT_WR || how == SHUT_RDWR)
		stream_end(stream);
	if (how == SHUT_RDWR)
		stream->is_deaf = true;
	return 0;
}

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	struct stream *stream = stream_of(fd);
	size_t n;

	if (thread_is_program())
		return call_send(fd, data, len, flags);
	if (!stream->other) {
		errno = EPIPE;
		return -1;
	}
	n = stream_write(stream, data, len);
	if (!n)
		errno = EAGAIN;
	return n ? (ssize_t)n : -1;
}

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	struct file *file;

	if (fd < FILE_FIRST)
		return __real_write(fd, data, len);
	file = file_of(fd);
	if (file->kind == FILE_STREAM)
		return stream_write(file->stream, data, len);
	file->count += *(const uint64_t *)data;
	/* The other thread may work before this one goes on. */
	if (sim.phase != SIM_START)
		thread_yield(NULL);
	return len;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	const struct stream *stream = stream_of(fd);
	struct ucred cred = { 0 };

	(void)level;
	if (name != SO_PEERCRED) {
		*len = 0;
		return 0;
	}
	cred.pid = stream->peer->number;
	cred.uid = stream->peer->uid;
	cred.gid = stream->peer->uid;
	memcpy(value, &cred, sizeof(cred));
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len)
{
	(void)level;
	(void)len;
	if (name == SO_RCVTIMEO) {
		file_of(fd)->timeout_ns =
			((const struct timeval *)value)->tv_sec * SIM_S +
			((const struct timeval *)value)->tv_usec * SIM_US;
	}
	/* Little, at both ends: a probe wants to see it full. */
	if (name == SO_SNDBUF)
		stream_of(fd)->other->max = 4096;
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	nfds_t i;
	int ready = 0;

	if (thread_is_program())
		return call_poll(fds->fd, fds->events, timeout, &fds->revents);
	for (i = 0; i < nr; i++)
		ready += file_is_readable(fds[i].fd);
	return ready;
}

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int r;

	(void)fd;
	(void)addr;
	(void)len;
	(void)flags;
	r = sim.phase == SIM_RUN && rng_hits(&sim.kernel, 300) ? -EMFILE :
								 file_accept();
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
	struct stream *pair[2];

	(void)domain;
	(void)type;
	(void)protocol;
	streams_new(pair, 65536, 65536);
	fds[0] = file_new(FILE_STREAM, pair[0]);
	fds[1] = file_new(FILE_STREAM, pair[1]);
	return 0;
}

int __wrap_eventfd(unsigned int count, int flags)
{
	(void)count;
	(void)flags;
	return file_new(FILE_EVENT, NULL);
}

int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
	(void)fd;
	(void)mask;
	(void)flags;
	return file_new(FILE_SIGNAL, NULL);
}

int __wrap_timerfd_create(int clock_id, int flags)
{
	(void)clock_id;
	(void)flags;
	return file_new(thread_is_program() ? FILE_ALARM : FILE_TIMER, NULL);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
			   struct itimerspec *old)
{
	(void)flags;
	(void)old;
	file_of(fd)->count = 0;
	if (file_of(fd)->kind == FILE_ALARM)
		file_of(fd)->due_ns = sim.mono_ns + value->it_value.tv_nsec +
				      value->it_value.tv_sec * SIM_S;
	if (!value->it_value.tv_nsec && !value->it_value.tv_sec)
		file_of(fd)->due_ns = 0;
	return 0;
}

uint64_t sim_now(uint32_t clock_id)
{
	switch (clock_id) {
	case CLOCK_REALTIME:
		return sim.mono_ns + sim.real_ahead;
	case CLOCK_BOOTTIME:
		return sim.mono_ns + sim.boot_ahead;
	default:
		return sim.mono_ns;
	}
}

int __wrap_clock_gettime(clockid_t clock_id, struct timespec *ts)
{
	uint64_t now_ns = sim_now(clock_id);

	ts->tv_sec = now_ns / SIM_S;
	ts->tv_nsec = now_ns % SIM_S;
	return 0;
}

ssize_t __wrap_getrandom(void *data, size_t len, unsigned int flags)
{
	size_t i;

	(void)flags;
	for (i = 0; i < len; i++)
		((char *)data)[i] = rng_next(&sim.kernel);
	return len;
}
