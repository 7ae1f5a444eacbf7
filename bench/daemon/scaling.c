// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: expiryd with several clients at once, a thread each, either with a
 * queue of their own ("refresh") or with a shared one ("shared"). All clients
 * begin together, with records made before. The time is from the first to begin
 * to the last to end.
 *
 * "burn" measures the machine itself: the same number of threads that count,
 * and no server.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/mix.h"
#include "bench/daemon/driver.h"
#include "bench/daemon/wire.h"

#define CLIENTS		2U
#define FILL_BATCH	512U
#define FAR_NS		(3600 * NSEC_PER_SEC)	/* nothing falls due meanwhile */
#define DEPTH		4	/* batches in flight: the server always has one */

/**
 * struct client - one client
 * @fd: of the connection to its own queue; @shared: to that of the first
 * @mix: the timers it armed
 * @records: @nr requests of @use, sent by @batch
 * @answers: the latest answers; all of them if @keep
 * @began_ns: when it began; @ended_ns likewise
 */
struct client {
	int fd;
	int shared;
	struct mix mix;
	struct expiry_record *records;
	struct expiry_record *answers;
	bool keep;
	int use;
	uint32_t nr;
	uint32_t batch;
	uint64_t began_ns;
	uint64_t ended_ns;
	pthread_t thread;
};

static struct client clients[CLIENTS];
static pthread_barrier_t barrier;
static uint32_t requests_max;
static uint64_t burns;

static void prepare(struct client *client, struct mix *mix, mix_make_t *make,
		    uint32_t nr, uint32_t batch)
{
	uint32_t i;

	if (nr > requests_max)
		die("at most %u requests of a client", requests_max);
	for (i = 0; i < nr; i++)
		make(mix, &client->records[i]);
	client->nr = nr;
	client->batch = batch;
}

/* Sends requests made before, and receives all answers into one buffer: the
 * least work possible.
 */
static void *run(void *data)
{
	struct client *client = data;
	uint32_t sent = 0, got = 0, count;

	pthread_barrier_wait(&barrier);
	client->began_ns = bench_now();
	while (got < client->nr) {
		while (sent < client->nr && sent - got < DEPTH * client->batch) {
			count = client->batch < client->nr - sent ?
				client->batch : client->nr - sent;
			wire_send(client->use, client->records + sent, count);
			sent += count;
		}
		count = client->batch < client->nr - got ? client->batch :
							   client->nr - got;
		wire_receive(client->use,
			     client->answers + (client->keep ? got : 0), count);
		got += count;
	}
	client->ended_ns = bench_now();
	return NULL;
}

static void *burn(void *data)
{
	struct client *client = data;
	uint64_t x = 1, i;

	pthread_barrier_wait(&barrier);
	client->began_ns = bench_now();
	for (i = 0; i < burns; i++)
		x = x * 6364136223846793005ULL + i;
	client->ended_ns = bench_now();
	/* Keep the compiler from dropping the loop. */
	client->nr = x != 0;
	return NULL;
}

static void together(uint32_t nr, void *(*work)(void *), pid_t server,
		     struct traffic_cost *cost)
{
	uint64_t began_ns = UINT64_MAX, ended_ns = 0;
	uint32_t i;

	if (pthread_barrier_init(&barrier, NULL, nr))
		die("no barrier");
	if (server)
		cost->server_ns -= traffic_cpu_ns(server);
	cost->client_ns -= traffic_cpu_ns(0);
	for (i = 0; i < nr; i++)
		if (pthread_create(&clients[i].thread, NULL, work, &clients[i]))
			die("no thread");
	for (i = 0; i < nr; i++) {
		struct client *client = &clients[i];

		pthread_join(client->thread, NULL);
		if (client->began_ns < began_ns)
			began_ns = client->began_ns;
		if (client->ended_ns > ended_ns)
			ended_ns = client->ended_ns;
	}
	cost->client_ns += traffic_cpu_ns(0);
	if (server)
		cost->server_ns += traffic_cpu_ns(server);
	cost->took_ns += ended_ns - began_ns;
	pthread_barrier_destroy(&barrier);
}

/* All clients of the shared queue know the names of the first one's timers. */
static void serve(const struct order *order, mix_make_t *make, bool shared,
		  struct traffic_cost *cost)
{
	uint32_t each = order->requests / order->connections, i;

	for (i = 0; i < order->connections; i++) {
		struct client *client = &clients[i];

		prepare(client, shared ? &clients[0].mix : &client->mix, make,
			each, order->batch);
		client->use = shared ? client->shared : client->fd;
		client->keep = make == mix_arm;
	}
	together(order->connections, run, traffic_peer(clients[0].fd), cost);
	for (i = 0; i < order->connections; i++)
		mix_answers(&clients[i].mix, clients[i].answers,
			    clients[i].keep ? each : order->batch);
}

static void fill(const char *path, uint32_t timers)
{
	struct order order = { .batch = FILL_BATCH, .connections = CLIENTS };
	struct traffic_cost cost = { 0 };
	char name[16];
	uint32_t i;

	requests_max = 2 * timers;
	order.requests = CLIENTS * timers;
	for (i = 0; i < CLIENTS; i++) {
		struct client *client = &clients[i];

		client->mix.random = i + 1;
		client->mix.from_ns = bench_now() + FAR_NS;
		client->mix.ids = driver_map((uint64_t)requests_max *
					      sizeof(*client->mix.ids));
		client->records = driver_map((uint64_t)requests_max *
					      sizeof(*client->records));
		client->answers = driver_map((uint64_t)requests_max *
					      sizeof(*client->answers));
		snprintf(name, sizeof(name), "scaling-%u", i);
		client->fd = wire_attach(path, name, 0);
		client->shared = wire_attach(path, "scaling-0", 0);
	}
	serve(&order, mix_arm, false, &cost);
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	if (order->connections > CLIENTS)
		die("at most %u clients", CLIENTS);
	if (!strcmp(order->op, "burn")) {
		burns = order->requests / order->connections;
		together(order->connections, burn, 0, cost);
	} else if (!strcmp(order->op, "refresh")) {
		serve(order, mix_refresh, false, cost);
	} else if (!strcmp(order->op, "shared")) {
		serve(order, mix_refresh, true, cost);
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct driver driver = {
		.name = "scaling",
		.fill = fill,
		.measure = measure,
	};

	return driver_main(&driver, argc, argv);
}
