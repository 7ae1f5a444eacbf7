// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Abusers: hostile clients, one kind at a time, until they are killed:
 *
 *	abuser --socket PATH [--user UID] KIND
 *
 * prints "ready" when it has its resources and begins. KIND is one of the
 * table's at the end.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/daemon/traffic.h"
#include "bench/daemon/wire.h"

#define BATCH		512U
#define BATCH_BYTES	(BATCH * sizeof(struct expiry_record))
#define TIMERS		1000000U
#define HOUR_NS		(3600 * NSEC_PER_SEC)
#define CONNECTIONS	64U
#define IDLE_MAX	10000U		/* idle connections */

static const char *path = EXPIRY_SOCKET_DEFAULT;
static struct expiry_record records[BATCH];
static char sink[1 << 16];

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void make(uint8_t op, uint64_t ahead_ns)
{
	uint32_t i;

	for (i = 0; i < BATCH; i++)
		records[i] = (struct expiry_record) {
			.op = op,
			.deadline_ns = op == EXPIRY_OP_ARM ?
				       bench_now() + ahead_ns + i : 0,
			.period_ms = op == EXPIRY_OP_SCAN ? UINT32_MAX : 0,
		};
}

static void arm(int fd, uint32_t nr, uint64_t *ids)
{
	wire_arm(fd, &(struct wire_arming) {
		.nr = nr, .from_ns = bench_now() + HOUR_NS,
		.within_ns = HOUR_NS, .ids = ids,
	});
}

/* Sends as much of the same batch as the socket takes, repeatedly. It may end
 * inside a record; then only the same caller can continue the stream.
 */
static void push(int fd, size_t *offset)
{
	const char *data = (const void *)records;
	ssize_t n;

	while ((n = send(fd, data + *offset, BATCH_BYTES - *offset,
			 MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		*offset = (*offset + n) % BATCH_BYTES;
	if (n < 0 && errno != EAGAIN && errno != EPIPE && errno != ECONNRESET)
		die("send: %m");
}

/* Sends and takes answers on @nr connections as fast as the daemon does. */
static void keep_full(const int *fds, uint32_t nr)
{
	size_t offset[CONNECTIONS] = { 0 };
	struct pollfd polls[CONNECTIONS];
	uint32_t i;

	for (i = 0; i < nr; i++)
		polls[i] = (struct pollfd) {
			.fd = fds[i],
			.events = POLLIN | POLLOUT,
		};
	for (;;) {
		if (poll(polls, nr, -1) < 0)
			die("poll: %m");
		for (i = 0; i < nr; i++) {
			if (polls[i].revents & POLLIN &&
			    recv(fds[i], sink, sizeof(sink), MSG_DONTWAIT) == 0)
				die("ended by the daemon");
			if (polls[i].revents & POLLOUT)
				push(fds[i], &offset[i]);
		}
	}
}

/* Sends requests with long answers and reads none. When the daemon takes no
 * more, does the same on a new connection.
 */
static void unread(void)
{
	int fds[CONNECTIONS];
	uint32_t i;

	make(EXPIRY_OP_STAT, 0);
	for (i = 0; i < CONNECTIONS; i++)
		fds[i] = wire_attach(path, "", 0);
	ready();
	for (i = 0;; i = (i + 1) % CONNECTIONS) {
		size_t offset = 0;
		int tries;

		for (tries = 0; tries < 20; tries++) {
			push(fds[i], &offset);
			usleep(100);
		}
		close(fds[i]);
		fds[i] = wire_attach(path, "", 0);
	}
}

/* Fills many connections with answers and takes a byte a second from each. */
static void trickle(void)
{
	size_t offset[CONNECTIONS] = { 0 };
	int fds[CONNECTIONS];
	uint32_t i;

	make(EXPIRY_OP_QUERY, 0);
	for (i = 0; i < CONNECTIONS; i++) {
		fds[i] = wire_attach(path, "", 0);
		push(fds[i], &offset[i]);
	}
	ready();
	for (i = 0;; i = (i + 1) % CONNECTIONS) {
		recv(fds[i], sink, 1, MSG_DONTWAIT);
		push(fds[i], &offset[i]);
		usleep(1000000 / CONNECTIONS);
	}
}

/* Connects as fast as it can. Every other connection sends HELLO and closes
 * without taking the answer.
 */
static void connects(void)
{
	struct expiry_hello hello = {
		.op = EXPIRY_OP_HELLO,
		.version = EXPIRY_WIRE_VERSION,
		.clock_id = CLOCK_MONOTONIC,
	};
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	static int fds[IDLE_MAX];
	uint32_t i;

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	for (i = 0; i < IDLE_MAX; i++)
		fds[i] = -1;
	ready();
	for (i = 0;; i = (i + 1) % IDLE_MAX) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fds[i] < 0 ||
		    connect(fds[i], (void *)&address, sizeof(address)) < 0)
			die("connect: %m");
		if (i % 2)
			send(fds[i], &hello, sizeof(hello), MSG_NOSIGNAL);
	}
}

/* Has the most timers allowed, and requests more. */
static void quota(void)
{
	int fds[8];
	uint32_t i;

	for (i = 0; i < 8; i++)
		fds[i] = wire_attach(path, "", 0);
	for (i = 0; i < 8; i++)
		arm(fds[i], TIMERS / 8, NULL);
	make(EXPIRY_OP_ARM, HOUR_NS);
	ready();
	keep_full(fds, 8);
}

/* Dies repeatedly: inside a record, with expirations in transit to it and
 * credit for more, its answers unread.
 */
static void dies(void)
{
	make(EXPIRY_OP_ARM, 0);
	ready();
	for (;;) {
		int fd = wire_attach(path, "", EXPIRY_HELLO_CONSUME);

		wire_credit(fd, 4096);
		send(fd, records, BATCH_BYTES - 7, MSG_DONTWAIT | MSG_NOSIGNAL);
		close(fd);
	}
}

/* Sends the largest SCAN repeatedly, in a queue of many timers. */
static void scans(void)
{
	int fds[8];
	uint32_t i;

	fds[0] = wire_attach(path, "scanned", 0);
	arm(fds[0], TIMERS, NULL);
	for (i = 1; i < 8; i++)
		fds[i] = wire_attach(path, "scanned", 0);
	make(EXPIRY_OP_SCAN, 0);
	ready();
	keep_full(fds, 8);
}

/* Does the same where all timers but the last were cancelled: many slots, one
 * row.
 */
static void empty_scans(void)
{
	static uint64_t ids[TIMERS / BATCH * BATCH];
	const uint32_t nr = sizeof(ids) / sizeof(*ids);
	uint32_t done, i;
	int fds[8];

	for (i = 0; i < 8; i++)
		fds[i] = wire_attach(path, "empty", 0);
	arm(fds[0], nr, ids);
	for (done = 0; done < nr; done += BATCH) {
		make(EXPIRY_OP_CANCEL, 0);
		for (i = 0; i < BATCH; i++)
			records[i].id = done + i + 1 < nr ? ids[done + i] : 0;
		wire_send(fds[0], records, BATCH);
		wire_receive(fds[0], records, BATCH);
	}
	make(EXPIRY_OP_SCAN, 0);
	ready();
	keep_full(fds, 8);
}

/* Sends only ordinary requests, as many as are taken, on many connections. */
static void floods(void)
{
	int fds[CONNECTIONS];
	uint32_t i;

	for (i = 0; i < CONNECTIONS; i++)
		fds[i] = wire_attach(path, "", 0);
	make(EXPIRY_OP_QUERY, 0);
	ready();
	keep_full(fds, CONNECTIONS);
}

static void become(const char *user)
{
	if (setuid(strtoul(user, NULL, 10)) < 0)
		die("setuid: %m");
}

int main(int argc, char **argv)
{
	static const struct option_row options[] = {
		{ "socket", "PATH", .text = &path },
		{ "user", "UID", .call = become },
		{ 0 }
	};
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = {
		{ "unread", unread }, { "trickle", trickle },
		{ "connects", connects }, { "quota", quota }, { "dies", dies },
		{ "scans", scans }, { "empty-scans", empty_scans },
		{ "floods", floods },
	};
	int arg = options_parse(argc, argv, options, "KIND");
	uint32_t i;

	traffic_files();
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (arg < argc && !strcmp(argv[arg], kinds[i].name))
			kinds[i].run();
	options_usage(options, "KIND", 2);
}
