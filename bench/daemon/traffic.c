// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/traffic.h"

#define SCRATCH		(256 * 1024)
#define EVENTS		256
#define SILENCE_MS	30000

void traffic_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int traffic_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		die("%s: too long", path);
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (void *)&address, sizeof(address)) < 0)
		die("%s: %m", path);
	return fd;
}

pid_t traffic_peer(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		die("SO_PEERCRED: %m");
	return peer.pid;
}

uint64_t traffic_cpu_ns(pid_t pid)
{
	clockid_t clock_id = CLOCK_PROCESS_CPUTIME_ID;
	struct timespec ts;

	if ((pid && clock_getcpuclockid(pid, &clock_id)) ||
	    clock_gettime(clock_id, &ts))
		die("processor time of %d cannot be read", (int)pid);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void set_blocking(struct traffic *traffic, bool blocking)
{
	uint32_t i;

	for (i = 0; i < traffic->nr_streams; i++) {
		int fd = traffic->streams[i].fd;
		int flags = fcntl(fd, F_GETFL);

		flags = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
		if (fcntl(fd, F_SETFL, flags) < 0)
			die("O_NONBLOCK: %m");
	}
}

static void epoll_stream(struct traffic *traffic, struct stream *stream, int op)
{
	struct epoll_event event = {
		.events = EPOLLIN | (stream->blocked ? EPOLLOUT : 0),
		.data.ptr = stream,
	};

	if (epoll_ctl(traffic->epoll, op, stream->fd, &event) < 0)
		die("epoll_ctl: %m");
}

static void epoll_side(struct traffic *traffic)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(traffic->epoll, EPOLL_CTL_ADD, traffic->side_fd,
		      &event) < 0)
		die("epoll_ctl: %m");
}

/* Sends as much as the socket takes. */
static void stream_send(struct traffic *traffic, struct stream *stream)
{
	struct iovec iov[TRAFFIC_DEPTH_MAX];
	struct msghdr msg = { .msg_iov = iov };
	bool blocked = false;
	uint64_t now_ns = 0;
	uint32_t i;
	ssize_t n;

	for (i = stream->sent; i < stream->nr_flight; i++) {
		struct batch *batch = &traffic->batches[stream->flight[i]];
		size_t offset = i == stream->sent ? stream->send_offset : 0;

		iov[msg.msg_iovlen].iov_base = batch->out + offset;
		iov[msg.msg_iovlen++].iov_len = batch->len - offset;
		if (!offset) {
			now_ns = now_ns ? now_ns : bench_now();
			stream->began_ns[i] = now_ns;
		}
	}
	if (!msg.msg_iovlen)
		return;
	n = sendmsg(stream->fd, &msg, MSG_NOSIGNAL);
	if (n < 0) {
		if (errno != EAGAIN)
			die("send: %m");
		n = 0;
	}
	for (i = 0; i < msg.msg_iovlen; i++) {
		if ((size_t)n < iov[i].iov_len) {
			stream->send_offset += n;
			blocked = true;
			break;
		}
		n -= iov[i].iov_len;
		stream->sent++;
		stream->send_offset = 0;
	}
	if (blocked != stream->blocked) {
		stream->blocked = blocked;
		if (traffic->epoll >= 0)
			epoll_stream(traffic, stream, EPOLL_CTL_MOD);
	}
}

/* Ends the oldest batch, which is answered. */
static void stream_done(struct traffic *traffic, struct stream *stream)
{
	uint64_t took_ns = bench_now() - stream->began_ns[0];

	traffic->took_ns[traffic->nr_done++] = took_ns;
	if (traffic->done)
		traffic->done(took_ns);
	stream->nr_flight--;
	stream->sent--;
	stream->received = 0;
	memmove(stream->flight, stream->flight + 1,
		stream->nr_flight * sizeof(*stream->flight));
	memmove(stream->began_ns, stream->began_ns + 1,
		stream->nr_flight * sizeof(*stream->began_ns));
}

static void stream_fill(struct traffic *traffic, struct stream *stream)
{
	while (stream->nr_flight < traffic->depth &&
	       traffic->next < traffic->nr_batches)
		stream->flight[stream->nr_flight++] = traffic->next++;
	if (stream->sent < stream->nr_flight)
		stream_send(traffic, stream);
}

static ssize_t check(ssize_t n)
{
	if (!n)
		die("the server ended a connection");
	if (n < 0 && errno != EAGAIN)
		die("recv: %m");
	return n;
}

/* Overwrites requests with their answers. */
static void receive_in_place(struct traffic *traffic, struct stream *stream)
{
	struct iovec iov[TRAFFIC_DEPTH_MAX];
	struct msghdr msg = { .msg_iov = iov };
	ssize_t n;
	uint32_t i;

	for (i = 0; i < stream->sent; i++) {
		struct batch *batch = &traffic->batches[stream->flight[i]];
		size_t offset = i ? 0 : stream->received;

		iov[i].iov_base = batch->out + offset;
		iov[i].iov_len = batch->len - offset;
	}
	msg.msg_iovlen = i;
	n = check(recvmsg(stream->fd, &msg, 0));
	while (n > 0) {
		struct batch *batch = &traffic->batches[stream->flight[0]];
		size_t left = batch->len - stream->received;

		if ((size_t)n < left) {
			stream->received += n;
			break;
		}
		n -= left;
		stream_done(traffic, stream);
	}
}

static void receive_parsed(struct traffic *traffic, struct stream *stream)
{
	static char scratch[SCRATCH];
	ssize_t n = check(recv(stream->fd, scratch, sizeof(scratch), 0));

	if (n <= 0)
		return;
	stream->received += traffic->parse(stream, scratch, n);
	while (stream->nr_flight) {
		struct batch *batch = &traffic->batches[stream->flight[0]];
		size_t more;

		if (stream->received < batch->replies)
			break;
		more = stream->received - batch->replies;
		stream_done(traffic, stream);
		stream->received = more;
	}
}

static void receive(struct traffic *traffic, struct stream *stream)
{
	if (traffic->parse)
		receive_parsed(traffic, stream);
	else
		receive_in_place(traffic, stream);
}

/* Runs one connection, one batch at a time, with the fewest calls. */
static void run_alone(struct traffic *traffic)
{
	struct stream *stream = traffic->streams;

	set_blocking(traffic, true);
	while (traffic->nr_done < traffic->nr_batches) {
		stream_fill(traffic, stream);
		receive(traffic, stream);
	}
}

static void run_many(struct traffic *traffic)
{
	struct epoll_event events[EVENTS];
	uint32_t i;
	int j, n;

	set_blocking(traffic, false);
	traffic->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (traffic->epoll < 0)
		die("epoll_create1: %m");
	for (i = 0; i < traffic->nr_streams; i++)
		epoll_stream(traffic, &traffic->streams[i], EPOLL_CTL_ADD);
	for (i = 0; i < traffic->nr_streams; i++)
		stream_fill(traffic, &traffic->streams[i]);
	if (traffic->side_fd >= 0)
		epoll_side(traffic);
	while (traffic->nr_done < traffic->nr_batches || traffic->side_fd >= 0) {
		n = epoll_wait(traffic->epoll, events, EVENTS, SILENCE_MS);
		if (!n)
			die("the server is silent");
		for (j = 0; j < n; j++) {
			struct stream *stream = events[j].data.ptr;

			if (!stream) {
				if (traffic->side(traffic))
					traffic->side_fd = -1;
				continue;
			}
			if (events[j].events & ~EPOLLOUT)
				receive(traffic, stream);
			if (events[j].events & EPOLLOUT || !stream->blocked)
				stream_fill(traffic, stream);
		}
	}
	close(traffic->epoll);
}

void traffic_sort(struct traffic_cost *cost, uint64_t *took_ns, uint32_t nr)
{
	bench_sort_ns(took_ns, nr);
	cost->p50_ns = took_ns[nr / 2];
	cost->p99_ns = took_ns[nr - 1 - nr / 100];
	cost->max_ns = took_ns[nr - 1];
}

struct traffic_cost traffic_run(struct traffic *traffic)
{
	uint32_t nr = traffic->nr_batches;
	struct traffic_cost cost = { 0 };

	traffic->took_ns = malloc(nr * sizeof(*traffic->took_ns));
	if (!traffic->took_ns)
		die("no memory");
	traffic->nr_done = 0;
	traffic->next = 0;
	traffic->epoll = -1;

	if (traffic->pid)
		cost.server_ns = traffic_cpu_ns(traffic->pid);
	cost.client_ns = traffic_cpu_ns(0);
	cost.took_ns = bench_now();
	if (traffic->nr_streams == 1 && traffic->depth == 1 &&
	    traffic->side_fd < 0)
		run_alone(traffic);
	else
		run_many(traffic);
	cost.took_ns = bench_now() - cost.took_ns;
	cost.client_ns = traffic_cpu_ns(0) - cost.client_ns;
	if (traffic->pid)
		cost.server_ns = traffic_cpu_ns(traffic->pid) - cost.server_ns;

	traffic_sort(&cost, traffic->took_ns, nr);
	free(traffic->took_ns);
	return cost;
}
