// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The victim: a well-behaved client beside any other load. At a fixed rate that
 * does not slow down with the daemon it refreshes a batch of its timers. It also
 * arms one that is due soon, and waits for its expiration as a consumer.
 *
 *	victim --socket PATH [--seconds S] [--warm S] [--samples]
 *
 * prints one JSON object: how long the batches took to be answered and how late
 * the expirations were, in microseconds; with --samples each of them.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/daemon/driver.h"
#include "bench/daemon/wire.h"

#define QUEUE		"victim"
#define TIMERS		100000U
#define BATCH		16U
#define PERIOD_NS	500000ULL	/* between two batches */
#define AHEAD_NS	5000000ULL	/* from arming to the deadline */
#define FAR_NS		(3600 * NSEC_PER_SEC)
#define SAMPLES		(1U << 20)
#define WAITING		(1U << 12)	/* batches without an answer, at most */
#define LOST_NS		(10 * NSEC_PER_SEC)

/* Samples of one figure. */
struct figures {
	uint64_t ns[SAMPLES];
	uint32_t nr;
};

static struct figures answers, late;
static struct consumer consumer;
static struct expiry_record request[BATCH + 1];
static uint64_t *ids;
static bool counting;

static void add(struct figures *figures, uint64_t ns)
{
	if (counting && figures->nr < SAMPLES)
		figures->ns[figures->nr++] = ns;
}

static void note(const struct expiry_record *record, uint64_t now_ns)
{
	add(&late, now_ns - record->deadline_ns);
}

static void fill(int fd)
{
	ids = driver_map(TIMERS * sizeof(*ids));
	wire_arm(fd, &(struct wire_arming) {
		.nr = TIMERS, .from_ns = bench_now() + FAR_NS,
		.within_ns = FAR_NS, .ids = ids,
	});
}

static void make(uint64_t now_ns)
{
	static uint64_t random = 1;
	uint32_t i;

	for (i = 0; i < BATCH; i++)
		request[i] = (struct expiry_record) {
			.op = EXPIRY_OP_REFRESH,
			.id = ids[bench_below(&random, TIMERS)],
			.deadline_ns = now_ns + FAR_NS +
				       bench_below(&random, FAR_NS),
		};
	request[BATCH] = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = now_ns + AHEAD_NS,
	};
}

/* Takes the answers that have arrived. Returns how many bytes they were. */
static size_t take(int fd)
{
	static struct expiry_record records[64 * (BATCH + 1)];
	ssize_t n = recv(fd, records, sizeof(records), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		die("the daemon ended a victim's connection");
	return n;
}

static void work(int fd, uint64_t warm_ns, uint64_t end_ns)
{
	static uint64_t began_ns[WAITING];
	struct pollfd fds[3] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = consumer.fd, .events = POLLIN },
		{ .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
		  .events = POLLIN },
	};
	struct itimerspec every = {
		.it_interval.tv_nsec = PERIOD_NS,
		.it_value.tv_nsec = PERIOD_NS,
	};
	uint64_t sent = 0, done = 0, ticks, now_ns;
	size_t in = 0;

	if (timerfd_settime(fds[2].fd, 0, &every, NULL) < 0)
		die("timerfd: %m");
	while ((now_ns = bench_now()) < end_ns) {
		counting = now_ns >= warm_ns;
		if (poll(fds, 3, 1000) < 0)
			die("poll: %m");
		if (fds[0].revents)
			in += take(fd);
		now_ns = bench_now();
		for (; in >= sizeof(request); in -= sizeof(request))
			add(&answers, now_ns - began_ns[done++ % WAITING]);
		if (fds[1].revents)
			consumer_take(&consumer, note);
		if (!fds[2].revents ||
		    read(fds[2].fd, &ticks, sizeof(ticks)) != sizeof(ticks))
			continue;
		for (; ticks; ticks--) {
			if (sent - done == WAITING)
				die("a victim is not answered");
			now_ns = bench_now();
			make(now_ns);
			began_ns[sent++ % WAITING] = now_ns;
			wire_send(fd, request, BATCH + 1);
		}
	}
	/* Wait until all batches that were taken are answered. */
	while (done < sent) {
		in += take(fd);
		for (; in >= sizeof(request); in -= sizeof(request))
			done++;
		if (bench_now() > end_ns + LOST_NS)
			die("a victim is not answered");
	}
}

static void print(const char *name, struct figures *figures, bool samples)
{
	uint32_t i;

	if (!figures->nr)
		die("nothing came back");
	bench_sort_ns(figures->ns, figures->nr);
	printf("\"%s_p50_us\": %.1f, \"%s_p99_us\": %.1f, \"%s_max_us\": %.1f",
	       name, figures->ns[figures->nr / 2] / 1e3, name,
	       figures->ns[(uint64_t)figures->nr * 99 / 100] / 1e3, name,
	       figures->ns[figures->nr - 1] / 1e3);
	if (!samples)
		return;
	printf(", \"%s_us\": [", name);
	for (i = 0; i < figures->nr; i++)
		printf("%s%.1f", i ? ", " : "", figures->ns[i] / 1e3);
	putchar(']');
}

int main(int argc, char **argv)
{
	static const char *path = EXPIRY_SOCKET_DEFAULT;
	static double seconds = 1, warm = 0.1;
	static bool samples;
	static const struct option_row options[] = {
		{ "socket", "PATH", .text = &path },
		{ "seconds", "S", .real = &seconds },
		{ "warm", "S", .real = &warm },
		{ "samples", .flag = &samples },
		{ 0 }
	};
	uint64_t begin_ns;
	int fd;

	options_parse(argc, argv, options, "");
	fd = wire_attach(path, QUEUE, 0);
	fill(fd);
	consumer_attach(&consumer, path, QUEUE, 65536);
	consumer.any_order = true;
	begin_ns = bench_now() + warm * NSEC_PER_SEC;
	work(fd, begin_ns, begin_ns + seconds * NSEC_PER_SEC);
	putchar('{');
	print("answer", &answers, samples);
	printf(", ");
	print("late", &late, samples);
	puts("}");
	/* Leave no timers for the next client. */
	request[0] = (struct expiry_record) { .op = EXPIRY_OP_CLEAR };
	wire_send(fd, request, 1);
	wire_receive(fd, request, 1);
	return 0;
}
