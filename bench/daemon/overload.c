// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Overload: an open-loop generator. It makes batches of requests at a fixed
 * rate, whether or not earlier ones are answered. A batch that a connection's
 * socket does not take is dropped and counted: that is the server's
 * backpressure. All requests that a socket took must be answered. Meanwhile
 * timers fall due in the same queue, and as many of a timerfd. A process of its
 * own waits for each, to see whether they are on time.
 *
 *	overload --socket PATH [--timers N] [--seconds S] [--rounds N]
 *
 * Load 1 is the rate of answers when the sockets are kept full (all). Each
 * round offers every load once, for S seconds, the next round in the opposite
 * order. During one load very many timers of another queue are due at once.
 * Prints one JSON object for each load of each round.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/daemon/driver.h"
#include "bench/daemon/traffic.h"
#include "bench/daemon/waiter.h"
#include "bench/daemon/wire.h"

#define QUEUE		"bench"
#define STORM_QUEUE	"storm"
#define BATCH		64U
#define BYTES		(BATCH * sizeof(struct expiry_record))
#define CONNECTIONS	32U
#define IN_FLIGHT	1024U		/* batches; a socket takes fewer */
#define FAR_NS		(3600 * NSEC_PER_SEC)
#define MSEC		1000000ULL
#define WAITED_NS	MSEC		/* between two timers of a waiter */
#define STORM		100000U		/* timers that fall due at once */
#define SAMPLES		(1U << 22)
#define CALIBRATIONS	5

/**
 * struct source - a connection that gets load
 * @began_ns: when each batch in flight was sent, a ring
 * @sent: batches begun; @done of them are answered
 * @left: unsent bytes of the last; @in bytes of an answer
 * @full: its socket takes no more
 */
struct source {
	int fd;
	uint64_t began_ns[IN_FLIGHT];
	uint64_t sent;
	uint64_t done;
	size_t left;
	size_t in;
	bool full;
};

static struct source sources[CONNECTIONS];
static struct expiry_record request[BATCH];
static int producer = -1, storm_producer = -1;
static struct waiter queue_waiter, timerfd_waiter, storm_waiter;
static uint64_t nr_refused, nr_answered;
static uint64_t *latency, nr_latency;

/* ------------------------------------------------------------------------
 * Timers
 */

static void fill(uint32_t timers)
{
	uint64_t *ids = driver_map(timers * sizeof(*ids));
	uint64_t from_ns = bench_now() + FAR_NS;
	uint32_t i;

	wire_arm(producer, &(struct wire_arming) {
		.nr = timers, .from_ns = from_ns, .within_ns = FAR_NS,
		.ids = ids,
	});
	/* Some of them are refreshed: their number stays the same. */
	for (i = 0; i < BATCH; i++)
		request[i] = (struct expiry_record) {
			.op = EXPIRY_OP_REFRESH,
			.id = ids[timers - 1 - i],
			.deadline_ns = from_ns + FAR_NS / BATCH * i,
		};
}

/* ------------------------------------------------------------------------
 * Requests
 */

static bool source_push(struct source *source)
{
	const char *data = (const void *)request;
	ssize_t n = send(source->fd, data + BYTES - source->left, source->left,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN)
		die("send: %m");
	if (n > 0)
		source->left -= n;
	source->full = source->left;
	return n > 0;
}

/* Offers a batch. Returns false if the socket takes no more. */
static bool source_offer(struct source *source)
{
	uint64_t now_ns = bench_now();

	if (source->full || source->sent - source->done == IN_FLIGHT)
		return false;
	source->left = BYTES;
	if (!source_push(source)) {
		source->left = 0;
		return false;
	}
	source->began_ns[source->sent++ % IN_FLIGHT] = now_ns;
	return true;
}

static void source_receive(struct source *source)
{
	static struct expiry_record answers[16 * BATCH];
	ssize_t n = recv(source->fd, answers, sizeof(answers), MSG_DONTWAIT);
	uint64_t now_ns;
	size_t i;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		die("the daemon ended a connection");
	/* Check for refusals where records are complete. */
	i = source->in % sizeof(*answers) ? n : 0;
	for (; i < n / sizeof(*answers); i++)
		nr_refused += answers[i].status != 0;
	now_ns = bench_now();
	source->in += n;
	for (; source->in >= BYTES; source->in -= BYTES) {
		if (nr_latency < SAMPLES)
			latency[nr_latency++] = now_ns -
				source->began_ns[source->done % IN_FLIGHT];
		source->done++;
		nr_answered += BATCH;
	}
	if (source->full)
		source_push(source);
}

/* ------------------------------------------------------------------------
 * One load
 */

static double part(uint64_t *values, uint64_t nr, double share)
{
	return nr ? values[(uint64_t)((nr - 1) * share)] / 1e3 : 0;
}

/* Offers @rate requests a second, open-loop; 0 = all that is taken. Returns how
 * many of *@offeredp batches the sockets did not take.
 */
static uint64_t generate(double rate, uint64_t began_ns, uint64_t end_ns,
			 uint64_t *offeredp)
{
	uint64_t now_ns = began_ns, offered = 0, dropped = 0, due;
	uint32_t i, turn = 0;

	while (now_ns < end_ns) {
		due = rate ? (now_ns - began_ns) / 1e9 * rate / BATCH :
			     offered + 8 * CONNECTIONS;
		for (; offered < due; offered++)
			dropped += !source_offer(&sources[turn++ %
							  CONNECTIONS]);
		for (i = 0; i < CONNECTIONS; i++)
			if (sources[i].sent > sources[i].done)
				source_receive(&sources[i]);
		now_ns = bench_now();
	}
	*offeredp = offered;
	return dropped;
}

/* Waits until all requests that were taken are answered: none may be lost. */
static void drain(void)
{
	uint64_t end_ns = bench_now() + 10 * NSEC_PER_SEC;
	uint32_t i;

	for (i = 0; i < CONNECTIONS; i++)
		while (sources[i].sent > sources[i].done || sources[i].left) {
			source_receive(&sources[i]);
			if (bench_now() > end_ns)
				die("what was taken is not answered");
		}
}

/* Offers one load. Returns the goodput. */
static double offer(const char *name, double rate, double seconds,
		    uint32_t round, bool storm)
{
	uint32_t nr_waited = seconds * NSEC_PER_SEC / WAITED_NS;
	uint64_t began_ns = bench_now() + (100 + storm * 100) * MSEC;
	uint64_t storm_ns = began_ns + seconds / 4 * NSEC_PER_SEC;
	uint64_t end_ns = began_ns + seconds * NSEC_PER_SEC;
	uint64_t offered, dropped;
	double goodput;

	wire_arm(producer, &(struct wire_arming) {
		.nr = nr_waited, .from_ns = began_ns, .every_ns = WAITED_NS,
	});
	if (storm)
		wire_arm(storm_producer, &(struct wire_arming) {
			.nr = STORM, .from_ns = storm_ns, .within_ns = MSEC,
		});
	if (bench_now() > began_ns)
		die("timers were not armed in time");
	waiter_begin(&queue_waiter, began_ns, WAITED_NS, nr_waited);
	waiter_begin(&timerfd_waiter, began_ns + WAITED_NS / 2, WAITED_NS, nr_waited);
	if (storm)
		waiter_begin(&storm_waiter, storm_ns, 0, STORM);
	while (bench_now() < began_ns)
		;

	nr_answered = 0;
	nr_refused = 0;
	nr_latency = 0;
	dropped = generate(rate, began_ns, end_ns, &offered);
	goodput = nr_answered / ((bench_now() - began_ns) / 1e9);
	drain();
	waiter_end(&queue_waiter);
	waiter_end(&timerfd_waiter);
	if (storm)
		waiter_end(&storm_waiter);

	bench_sort_ns(latency, nr_latency);
	printf("{\"load\": \"%s\", \"round\": %u, \"offered\": %.0f, "
	       "\"goodput\": %.0f, \"dropped\": %.3f, \"refused\": %llu, "
	       "\"p50_us\": %.1f, \"p99_us\": %.1f", name, round,
	       rate ? rate : (double)offered * BATCH / seconds, goodput,
	       (double)dropped / offered, (unsigned long long)nr_refused,
	       part(latency, nr_latency, 0.5), part(latency, nr_latency, 0.99));
	driver_times("late_us", queue_waiter.late_ns, queue_waiter.nr);
	driver_times("timerfd_us", timerfd_waiter.late_ns, timerfd_waiter.nr);
	printf("}\n");
	fflush(stdout);
	return goodput;
}

static const struct {
	const char *name;
	double factor;
	bool storm;
} loads[] = {
	{ "all", 0, false }, { "0.1", 0.1, false }, { "0.5", 0.5, false },
	{ "0.8", 0.8, false }, { "0.8, a storm", 0.8, true },
	{ "1", 1, false }, { "2", 2, false }, { "5", 5, false },
	{ "10", 10, false },
};

#define LOADS	(sizeof(loads) / sizeof(*loads))

static double calibrate(double seconds)
{
	double found[CALIBRATIONS];
	uint64_t began_ns, offered;
	uint32_t i;

	for (i = 0; i < CALIBRATIONS; i++) {
		nr_answered = 0;
		began_ns = bench_now();
		generate(0, began_ns, began_ns + seconds * NSEC_PER_SEC,
			 &offered);
		found[i] = nr_answered / ((bench_now() - began_ns) / 1e9);
		drain();
	}
	return bench_median(found, CALIBRATIONS).median;
}

static void measure(double seconds, uint32_t rounds)
{
	double capacity = calibrate(seconds);
	uint32_t i, round;

	for (round = 0; round < rounds; round++)
		for (i = 0; i < LOADS; i++) {
			uint32_t n = round & 1 ? LOADS - 1 - i : i;

			offer(loads[n].name, capacity * loads[n].factor,
			      seconds, round, loads[n].storm);
		}
}

int main(int argc, char **argv)
{
	static const char *path = EXPIRY_SOCKET_DEFAULT;
	static uint32_t timers = 1000000, rounds = 1;
	static double seconds = 0.5;
	static const struct option_row options[] = {
		{ "socket", "PATH", .text = &path },
		{ "timers", "N", .number = &timers, .least = BATCH },
		{ "seconds", "S", .real = &seconds },
		{ "rounds", "N", .number = &rounds },
		{ 0 }
	};
	uint32_t i;

	options_parse(argc, argv, options, "");
	waiter_queue(&queue_waiter, path, QUEUE);
	waiter_queue(&storm_waiter, path, STORM_QUEUE);
	waiter_timerfd(&timerfd_waiter);
	latency = driver_map((uint64_t)SAMPLES * sizeof(*latency));
	producer = wire_attach(path, QUEUE, 0);
	storm_producer = wire_attach(path, STORM_QUEUE, 0);
	fill(timers);
	for (i = 0; i < CONNECTIONS; i++)
		sources[i].fd = wire_attach(path, QUEUE, 0);
	measure(seconds, rounds);
	return 0;
}
