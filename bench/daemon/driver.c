// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "bench/daemon/driver.h"

void *driver_map(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory");
	return memory;
}

uint32_t driver_depth(const struct order *order)
{
	if (order->depth)
		return order->depth;
	if (order->batch == 1 || order->connections >= TRAFFIC_DEPTH_MAX)
		return 1;
	return TRAFFIC_DEPTH_MAX / order->connections;
}

void driver_times(const char *name, const uint64_t *times_ns, uint32_t nr)
{
	uint32_t i;

	printf(", \"%s\": [", name);
	for (i = 0; i < nr; i++)
		printf("%s%.1f", i ? ", " : "", times_ns[i] / 1e3);
	printf("]");
}

static void report(const struct driver *driver, const struct order *order,
		   const struct traffic_cost *cost)
{
	printf("{\"subject\": \"%s\", \"op\": \"%s\", \"batch\": %u, "
	       "\"connections\": %u, \"requests\": %u, \"done\": %u, "
	       "\"per_second\": %.0f, "
	       "\"server_ns\": %.1f, \"client_ns\": %.1f, \"p50_us\": %.1f, "
	       "\"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f",
	       driver->name,
	       order->op, order->batch, order->connections, order->requests,
	       cost->done ? cost->done : order->requests,
	       order->requests * (double)NSEC_PER_SEC / cost->took_ns,
	       (double)cost->server_ns / order->requests,
	       (double)cost->client_ns / order->requests,
	       cost->p50_ns / 1e3, cost->p99_ns / 1e3, cost->p999_ns / 1e3,
	       cost->max_ns / 1e3);
	if (driver->more)
		driver->more();
	puts("}");
	fflush(stdout);
}

static void serve(const struct driver *driver)
{
	char line[256], op[32];

	while (fgets(line, sizeof(line), stdin)) {
		struct traffic_cost cost = { 0 };
		struct order order = { .op = op };

		if (sscanf(line, "%31s %u %u %u %u", op, &order.batch,
			   &order.connections, &order.requests,
			   &order.depth) < 4 ||
		    !order.batch || !order.connections || !order.requests ||
		    order.depth > TRAFFIC_DEPTH_MAX)
			die("%s: not OP BATCH CONNECTIONS REQUESTS [DEPTH]",
			    line);
		if (!driver->measure(&order, &cost))
			die("%s cannot %s", driver->name, op);
		report(driver, &order, &cost);
	}
}

int driver_main(struct driver *driver, int argc, char **argv)
{
	static const char *path;
	static uint32_t timers;
	struct option_row options[3 + DRIVER_OPTIONS] = {
		{ "socket", "PATH", .text = &path },
		{ "timers", "N", .number = &timers },
	};
	uint64_t took_ns;
	int i;

	for (i = 0; driver->options && driver->options[i].name; i++)
		options[2 + i] = driver->options[i];
	options_parse(argc, argv, options, "");
	traffic_files();
	took_ns = bench_now();
	driver->fill(path, timers);
	took_ns = bench_now() - took_ns;
	printf("{\"subject\": \"%s\", \"timers\": %u, \"fill_s\": %.3f",
	       driver->name, timers, took_ns / 1e9);
	if (driver->more)
		driver->more();
	puts("}");
	fflush(stdout);
	serve(driver);
	return 0;
}
