// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: beanstalkd. put with a delay (in whole seconds, its unit), delete,
 * and for due jobs reserve and delete, all pipelined. It cannot move a delayed
 * job in one step, so there is no refresh; a mix is of as many puts as deletes.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/driver.h"

#define REQUESTS_MAX	1000000U
#define REQUEST_BYTES	64U
#define STREAMS_MAX	1000U
#define FILL_BATCH	64U
#define FAR_S		3600U
#define RESERVES	64U	/* the consumer's commands in flight */
#define LINE_LEN	64

static const char *socket_path;
static uint64_t *ids;
static uint32_t nr_ids;
static uint64_t random_state = 1;
static bool learn;
static struct stream streams[STREAMS_MAX];
static char lines[STREAMS_MAX + 1][LINE_LEN];	/* incomplete lines, by connection */
static uint32_t nr_streams;
static struct batch *batches;
static char *text, *text_end;

static void put_request(const char *op)
{
	if (!strcmp(op, "cancel")) {
		uint64_t *id = &ids[bench_below(&random_state, nr_ids)];

		text_end += sprintf(text_end, "delete %llu\r\n",
				    (unsigned long long)*id);
		*id = ids[--nr_ids];
	} else {
		uint32_t delay = strcmp(op, "fire") ?
			FAR_S + bench_below(&random_state, FAR_S) : 0;

		text_end += sprintf(text_end, "put 1 %u 3600 8\r\n12345678\r\n",
				    delay);
	}
}

/* Passes @line, which may come in parts, to @each when it is complete. */
static uint32_t split(char *begun, const char *data, size_t len,
		      void (*each)(const char *line))
{
	uint32_t used = strlen(begun), nr = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (data[i] == '\n') {
			begun[used] = 0;
			each(begun);
			used = 0;
			nr++;
		} else if (used < LINE_LEN - 1) {
			begun[used++] = data[i];
		}
	}
	begun[used] = 0;
	return nr;
}

static void answered(const char *line)
{
	unsigned long long id;

	if (sscanf(line, "INSERTED %llu", &id) == 1) {
		if (learn)
			ids[nr_ids++] = id;
	} else if (strncmp(line, "DELETED", 7)) {
		die("beanstalkd: %s", line);
	}
}

static uint32_t parse(struct stream *stream, const char *data, size_t len)
{
	return split(lines[stream - streams], data, len, answered);
}

/* The consumer deletes each job that comes, and reserves one more. */
static int consumer = -1;
static uint64_t got, wanted;
static char orders[RESERVES * 1024];
static size_t orders_len;

static void consumed(const char *line)
{
	unsigned long long id;

	if (sscanf(line, "RESERVED %llu", &id) != 1)
		return;
	got++;
	orders_len += sprintf(orders + orders_len, "delete %llu\r\nreserve\r\n",
			      id);
}

static void order_more(void)
{
	size_t i;
	ssize_t n;

	for (i = 0; i < orders_len; i += n) {
		n = send(consumer, orders + i, orders_len - i, MSG_NOSIGNAL);
		if (n < 0)
			die("beanstalkd: send: %m");
	}
	orders_len = 0;
}

static bool consume(struct traffic *traffic)
{
	char data[4096];
	ssize_t n = recv(consumer, data, sizeof(data), 0);

	(void)traffic;
	if (n <= 0)
		die("beanstalkd ended a connection");
	split(lines[STREAMS_MAX], data, n, consumed);
	order_more();
	return got >= wanted;
}

static struct traffic_cost run(const struct order *order)
{
	struct traffic traffic = {
		.streams = streams,
		.nr_streams = order->connections,
		.depth = driver_depth(order),
		.parse = parse,
		.batches = batches,
		.side_fd = -1,
	};
	bool fire = !strcmp(order->op, "fire");
	struct batch *batch = batches;
	uint32_t i;

	if (order->requests > REQUESTS_MAX || order->connections > STREAMS_MAX)
		die("too many requests or connections");
	for (; nr_streams < order->connections; nr_streams++)
		streams[nr_streams].fd = traffic_connect(socket_path);
	traffic.pid = traffic_peer(streams[0].fd);
	text_end = text;
	for (i = 0; i < order->requests; i++) {
		if (!(i % order->batch)) {
			batch = &batches[traffic.nr_batches++];
			*batch = (struct batch) { .out = text_end };
		}
		put_request(!strcmp(order->op, "mix") ?
				    (i & 1 ? "cancel" : "arm") : order->op);
		batch->replies++;
		batch->len = text_end - batch->out;
	}
	learn = !fire && strcmp(order->op, "cancel");
	if (fire) {
		if (consumer < 0) {
			consumer = traffic_connect(socket_path);
			for (i = 0; i < RESERVES; i++)
				orders_len += sprintf(orders + orders_len,
						      "reserve\r\n");
			order_more();
		}
		wanted = got + order->requests;
		traffic.side_fd = consumer;
		traffic.side = consume;
	}
	return traffic_run(&traffic);
}

static void fill(const char *path, uint32_t timers)
{
	struct order order = {
		.op = "arm",
		.batch = FILL_BATCH,
		.connections = 1,
	};
	uint32_t done;

	socket_path = path;
	ids = driver_map(((uint64_t)timers + REQUESTS_MAX) * sizeof(*ids));
	batches = driver_map((uint64_t)REQUESTS_MAX * sizeof(*batches));
	text = driver_map((uint64_t)REQUESTS_MAX * REQUEST_BYTES);
	for (done = 0; done < timers; done += order.requests) {
		order.requests = timers - done < REQUESTS_MAX ?
				 timers - done : REQUESTS_MAX;
		run(&order);
	}
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	if (strcmp(order->op, "arm") && strcmp(order->op, "cancel") &&
	    strcmp(order->op, "mix") && strcmp(order->op, "fire"))
		return false;
	*cost = run(order);
	return true;
}

int main(int argc, char **argv)
{
	static struct driver driver = {
		.name = "beanstalkd",
		.fill = fill,
		.measure = measure,
	};

	return driver_main(&driver, argc, argv);
}
