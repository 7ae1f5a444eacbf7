// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Overload: an open-loop generator. Batches of requests are made at a fixed
 * rate whatever becomes of those before. One that a connection's socket does
 * not take is dropped and counted: that is how a server which takes no more
 * than it can do says so. All that a socket took must be answered. Meanwhile
 * timers fall due in the same queue, to see whether they stay on time.
 *
 *	overload --socket PATH [--timers N] [--seconds S]
 *
 * prints one JSON object for each offered load: as much as the sockets take (0),
 * then parts and multiples of what was answered then; in the end once more the
 * rate below that while many timers fall due at once.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/subject.h"
#include "bench/daemon/traffic.h"
#include "bench/daemon/wire.h"

#define QUEUE		"bench"
#define BATCH		64U
#define BYTES		(BATCH * sizeof(struct expiry_record))
#define CONNECTIONS	32U
#define IN_FLIGHT	1024U		/* batches; a socket takes fewer */
#define FAR_NS		(3600 * NSEC_PER_SEC)
#define MSEC		1000000ULL
#define PROBE_NS	(2 * MSEC)	/* between two timers that are watched */
#define AHEAD_NS	(100 * MSEC)	/* armed so long before they are due */
#define STORM		1000000U	/* timers that fall due at once */
#define SAMPLES		(1U << 22)

/**
 * struct source - a connection that work is offered to
 * @began_ns: when each batch in flight was handed to the socket, a ring
 * @sent: batches whose sending has begun; @done of them are answered
 * @left: bytes of the last that are not sent yet; @in bytes of an answer
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
static struct consumer consumer = { .fd = -1 };
static int prober = -1;
static uint64_t nr_refused, nr_answered;
static uint64_t *latency, nr_latency;
static uint64_t *late, nr_late;

/* The watched ones have a cookie. */
static void note(const struct expiry_record *record, uint64_t now_ns)
{
	if (record->cookie && nr_late < SAMPLES)
		late[nr_late++] = now_ns - record->deadline_ns;
}

/* @nr timers by batches of 512, due from @from_ns on. */
static void arm(int fd, uint32_t nr, uint64_t from_ns, uint64_t spread_ns)
{
	static struct expiry_record records[512];
	static uint64_t random = 1;
	uint32_t i, done;

	for (done = 0; done < nr; done += 512) {
		for (i = 0; i < 512; i++)
			records[i] = (struct expiry_record) {
				.op = EXPIRY_OP_ARM,
				.deadline_ns = from_ns +
					bench_below(&random, spread_ns),
			};
		wire_send(fd, records, 512);
		wire_receive(fd, records, 512);
	}
	/* Timers of its own, to be refreshed: their number stays what it is. */
	for (i = 0; i < BATCH; i++) {
		request[i] = records[i];
		request[i].op = EXPIRY_OP_REFRESH;
	}
}

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

/* Returns false if the socket takes no more. */
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
	/* Refusals are looked for where records lie whole. */
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

static void consumer_look(void)
{
	char byte;

	if (recv(consumer.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		consumer_take(&consumer, note);
}

static void probe(uint64_t now_ns)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = now_ns + AHEAD_NS,
		.cookie = 1,
	};
	char answers[4096];

	if (send(prober, &record, sizeof(record),
		 MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
		die("send: %m");
	while (recv(prober, answers, sizeof(answers), MSG_DONTWAIT) > 0)
		;
}

/* ------------------------------------------------------------------------
 * One load
 */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double part(uint64_t *samples, uint64_t nr, double share)
{
	return nr ? samples[(uint64_t)((nr - 1) * share)] / 1e3 : 0;
}

/* Returns the goodput; @rate: requests a second, 0 = all that is taken. */
static double offer(const char *name, double rate, double seconds)
{
	uint64_t began_ns = bench_now(), now_ns = began_ns, probe_ns = began_ns;
	uint64_t end_ns = began_ns + seconds * NSEC_PER_SEC;
	uint64_t offered = 0, dropped = 0, due;
	uint32_t i, turn = 0;
	double goodput;

	nr_answered = 0;
	nr_refused = 0;
	nr_latency = 0;
	nr_late = 0;
	while (now_ns < end_ns) {
		due = rate ? (now_ns - began_ns) / 1e9 * rate / BATCH :
			     offered + 8 * CONNECTIONS;
		for (; offered < due; offered++)
			dropped += !source_offer(&sources[turn++ %
							  CONNECTIONS]);
		for (i = 0; i < CONNECTIONS; i++)
			if (sources[i].sent > sources[i].done)
				source_receive(&sources[i]);
		consumer_look();
		now_ns = bench_now();
		if (now_ns - probe_ns >= PROBE_NS) {
			probe_ns += PROBE_NS;
			probe(now_ns);
		}
	}
	goodput = nr_answered / ((now_ns - began_ns) / 1e9);

	/* All that was taken is answered: nothing is met by silence. */
	end_ns = bench_now() + 10 * NSEC_PER_SEC;
	for (i = 0; i < CONNECTIONS; i++)
		while (sources[i].sent > sources[i].done || sources[i].left) {
			source_receive(&sources[i]);
			if (bench_now() > end_ns)
				die("what was taken is not answered");
		}
	end_ns = bench_now() + 2 * AHEAD_NS;
	while (bench_now() < end_ns)
		consumer_look();

	qsort(latency, nr_latency, sizeof(*latency), compare);
	qsort(late, nr_late, sizeof(*late), compare);
	printf("{\"load\": \"%s\", \"offered\": %.0f, \"goodput\": %.0f, "
	       "\"dropped\": %.3f, \"refused\": %llu, \"p50_us\": %.1f, "
	       "\"p99_us\": %.1f, \"watched\": %llu, \"late_p50_us\": %.1f, "
	       "\"late_p99_us\": %.1f, \"late_max_us\": %.1f}\n", name,
	       rate ? rate : (double)offered * BATCH / seconds, goodput,
	       (double)dropped / offered, (unsigned long long)nr_refused,
	       part(latency, nr_latency, 0.5), part(latency, nr_latency, 0.99),
	       (unsigned long long)nr_late, part(late, nr_late, 0.5),
	       part(late, nr_late, 0.99), part(late, nr_late, 1));
	fflush(stdout);
	return goodput;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "timers", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 'S' },
		{ 0 },
	};
	static const struct {
		const char *name;
		double factor;
	} loads[] = {
		{ "0.5", 0.5 }, { "0.8", 0.8 }, { "1", 1 }, { "2", 2 },
		{ "5", 5 }, { "10", 10 },
	};
	double seconds = 2, capacity;
	const char *path = EXPIRY_SOCKET_DEFAULT;
	uint32_t i, timers = 1000000;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			path = optarg;
			break;
		case 't':
			timers = strtoul(optarg, NULL, 10);
			break;
		case 'S':
			seconds = strtod(optarg, NULL);
			break;
		default:
			return 2;
		}
	}
	latency = subject_map((uint64_t)SAMPLES * sizeof(*latency));
	late = subject_map((uint64_t)SAMPLES * sizeof(*late));
	prober = wire_attach(path, QUEUE, 0);
	arm(prober, timers, bench_now() + FAR_NS, FAR_NS);
	consumer_attach(&consumer, path, QUEUE, 65536);
	consumer.any_order = true;
	for (i = 0; i < CONNECTIONS; i++)
		sources[i].fd = wire_attach(path, QUEUE, 0);

	capacity = offer("all", 0, seconds);
	for (i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		offer(loads[i].name, capacity * loads[i].factor, seconds);
	/* Half-way through, a storm. */
	arm(prober, STORM, bench_now() + (2 + seconds / 2) * NSEC_PER_SEC,
	    MSEC);
	arm(prober, 512, bench_now() + FAR_NS, FAR_NS);
	offer("0.8, a storm", capacity * 0.8, seconds);
	return 0;
}
