// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: expiryd, or with --echo the floor, which answers the same requests
 * and does nothing. With --keyed the queue is keyed and acknowledging, and nothing
 * falls due; with --journal DIR it is durable as well, and DIR is the daemon's
 * journal.
 *
 *	mix		of a quarter ARM, half REFRESH, a quarter CANCEL
 *	commits		the same, with the times of batches during a checkpoint
 *	checkpoint	mixes until one begins, and waits for its end
 */
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/mix.h"
#include "bench/daemon/checkpoints.h"
#include "bench/daemon/driver.h"
#include "bench/daemon/wire.h"

#define QUEUE		"bench"
#define REQUESTS_MAX	2000000U
#define STREAMS_MAX	1000U
#define FILL_BATCH	512U
#define FAR_NS		(3600 * NSEC_PER_SEC)	/* nothing falls due meanwhile */
#define WINDOW		65536U
#define CHECKPOINT_PART	64U	/* batches between two looks for a checkpoint */

static struct driver driver;
static const char *socket_path;
static bool echo;
static const char *journal;
static struct mix mix = { .random = 1 };
static struct expiry_record *records;
static struct batch *batches;
static struct stream streams[STREAMS_MAX];
static uint32_t nr_streams;
static struct consumer consumer;
static uint64_t wanted;
static uint32_t ids_max;
static bool is_timed;

/* Makes a timer due at once. All have the same deadline: they are in order,
 * independent of their client.
 */
static void make_due(struct mix *unused, struct expiry_record *record)
{
	(void)unused;
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = 1,
	};
}

static bool take_due(struct traffic *traffic)
{
	(void)traffic;
	consumer_take(&consumer, NULL);
	return consumer.got >= wanted;
}

static void need_streams(uint32_t nr)
{
	if (nr > STREAMS_MAX)
		die("at most %u connections", STREAMS_MAX);
	for (; nr_streams < nr; nr_streams++)
		streams[nr_streams].fd =
			wire_attach(socket_path, QUEUE,
				    (mix.keyed ? EXPIRY_HELLO_KEYED |
						 EXPIRY_HELLO_ACK : 0) |
				    (journal ? EXPIRY_HELLO_DURABLE : 0));
}

static uint32_t cut(uint32_t requests, uint32_t batch)
{
	uint32_t i, nr = 0;

	for (i = 0; i < requests; i += batch) {
		uint32_t count = requests - i < batch ? requests - i : batch;

		batches[nr++] = (struct batch) {
			.out = (char *)(records + i),
			.len = count * sizeof(*records),
			.replies = count,
		};
	}
	return nr;
}

static struct traffic_cost run(const struct order *order, mix_make_t *make)
{
	bool fire = make == make_due;
	struct traffic traffic = {
		.streams = streams,
		.nr_streams = order->connections,
		.depth = driver_depth(order),
		.batches = batches,
		.side_fd = -1,
		.done = is_timed ? checkpoints_time : NULL,
	};
	struct traffic_cost cost;
	uint32_t i;

	if (order->requests > REQUESTS_MAX)
		die("at most %u requests", REQUESTS_MAX);
	need_streams(order->connections);
	traffic.pid = traffic_peer(streams[0].fd);
	if (make == mix_arm && mix.nr + order->requests > ids_max)
		die("more timers than there is room for");
	if (make == mix_even && order->requests / 3 > mix.nr)
		die("too few timers for as many requests");
	for (i = 0; i < order->requests; i++)
		make(&mix, &records[i]);
	traffic.nr_batches = cut(order->requests, order->batch);
	if (fire) {
		traffic.side_fd = consumer.fd;
		traffic.side = take_due;
		wanted = consumer.got + order->requests;
	}
	cost = traffic_run(&traffic);
	for (i = 0; fire && i < order->requests; i++)
		if (records[i].status)
			die("ARM is refused: %d", records[i].status);
	if (!fire && !echo)
		mix_answers(&mix, records, order->requests);
	return cost;
}

static void fill(const char *path, uint32_t timers)
{
	struct order order = {
		.batch = FILL_BATCH,
		.connections = 1,
	};
	uint32_t done;

	if (echo)
		driver.name = "echo";
	if (journal)
		checkpoints_watch(journal);
	mix.keyed |= !!journal;
	socket_path = path;
	mix.from_ns = bench_now() + FAR_NS;
	ids_max = timers + REQUESTS_MAX;
	mix.ids = driver_map((uint64_t)ids_max * sizeof(*mix.ids));
	records = driver_map((uint64_t)REQUESTS_MAX * sizeof(*records));
	batches = driver_map((uint64_t)REQUESTS_MAX * sizeof(*batches));
	if (!echo && !mix.keyed) {
		wire_clocks_fill(path);
		consumer_attach(&consumer, path, QUEUE, WINDOW);
	}
	for (done = 0; done < timers; done += order.requests) {
		order.requests = timers - done < REQUESTS_MAX ?
				 timers - done : REQUESTS_MAX;
		run(&order, mix_arm);
	}
}

static void add(struct traffic_cost *sum, const struct traffic_cost *part,
		double share)
{
	sum->took_ns += part->took_ns;
	sum->server_ns += part->server_ns;
	sum->client_ns += part->client_ns;
	sum->p50_ns += part->p50_ns * share;
	sum->p99_ns += part->p99_ns * share;
	if (sum->max_ns < part->max_ns)
		sum->max_ns = part->max_ns;
}

/* Arms or cancels in parts that are small beside the live timers, each with its
 * counterpart off the clock.
 */
static void run_parts(const struct order *order, mix_make_t *make,
		      struct traffic_cost *cost)
{
	uint32_t streams_wide = order->connections > TRAFFIC_DEPTH_MAX ?
				order->connections : TRAFFIC_DEPTH_MAX;
	uint32_t size = 2 * streams_wide * order->batch, done;
	struct order part = *order;
	struct traffic_cost one;

	if (size < mix.nr / 8)
		size = mix.nr / 8;
	for (done = 0; done < order->requests; done += part.requests) {
		part.requests = order->requests - done < size ?
				order->requests - done : size;
		one = run(&part, mix_arm);
		if (make == mix_arm)
			add(cost, &one, (double)part.requests / order->requests);
		one = run(&part, mix_cancel);
		if (make == mix_cancel)
			add(cost, &one, (double)part.requests / order->requests);
	}
}

/* Sends what was ordered until a checkpoint begins, then waits for its end. */
static void run_checkpoint(const struct order *order, struct traffic_cost *cost)
{
	struct order part = *order;
	struct traffic_cost one;

	part.requests = CHECKPOINT_PART * order->batch;
	/* At least once, for the figures: the fill may have begun one. */
	do {
		one = run(&part, mix_even);
		add(cost, &one, 1);
		cost->done += part.requests;
	} while (!checkpoints_in_progress() && cost->done < order->requests);
	checkpoints_await_end();
}

static bool measure_mix(const struct order *order, struct traffic_cost *cost)
{
	if (!strcmp(order->op, "checkpoint") && journal) {
		run_checkpoint(order, cost);
		return true;
	}
	is_timed = journal && !strcmp(order->op, "commits");
	if (!is_timed && strcmp(order->op, "mix"))
		return false;
	*cost = run(order, mix_even);
	return true;
}

static void print_checkpoints(void)
{
	if (is_timed)
		checkpoints_print();
	is_timed = false;
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	mix_make_t *make;

	if (mix.keyed && measure_mix(order, cost))
		return true;
	if (!strcmp(order->op, "arm"))
		make = mix_arm;
	else if (!strcmp(order->op, "refresh") && !echo)
		make = mix_refresh;
	else if (!strcmp(order->op, "cancel") && !echo)
		make = mix_cancel;
	else if (!strcmp(order->op, "fire") && !echo &&
		 !mix.keyed)
		make = make_due;
	else
		return false;
	if (echo || make == mix_refresh || make == make_due)
		*cost = run(order, make);
	else
		run_parts(order, make, cost);
	return true;
}

static const struct option_row options[] = {
	{ "echo", .flag = &echo },
	{ "keyed", .flag = &mix.keyed },
	{ "journal", "DIR", .text = &journal },
	{ 0 }
};

static struct driver driver = {
	.name = "expiryd",
	.fill = fill,
	.measure = measure,
	.more = print_checkpoints,
	.options = options,
};

int main(int argc, char **argv)
{
	return driver_main(&driver, argc, argv);
}
