// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: expiryd through the library, as a program uses it, over one
 * connection; with --keyed on a keyed queue. The orders' connections are
 * ignored.
 *
 *	mix		half ARM, a quarter REFRESH, a quarter CANCEL; a batch is
 *			answered before the next is sent
 *	mix-ahead	the same, PIPELINE batches in flight
 *	arm, refresh	likewise, of this kind only
 *
 * A mix arms more than it cancels: before it, the number of timers is brought
 * to what makes it the filled one half-way.
 */
#include <string.h>
#include <unistd.h>

#include <expiry/expiry.h>

#include "bench/bench.h"
#include "bench/mix.h"
#include "bench/daemon/driver.h"

#define BATCH		512U
#define PIPELINE	8U
#define PART		1000000U	/* requests made at a time */
#define FAR_NS		(3600 * NSEC_PER_SEC)	/* nothing falls due meanwhile */

static struct driver driver;
static struct expiry *handle;
static struct mix mix = { .random = 1 };
static struct expiry_record *records;
static uint32_t nr_filled, ids_max;
static pid_t server;

static void need(int ret, uint8_t op)
{
	if (ret < 0)
		die("%s", expiry_explain(ret, op));
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void send_waiting(uint32_t nr, uint32_t batch)
{
	uint32_t done;
	int ret;

	for (done = 0; done < nr; done += ret) {
		ret = expiry_submit(handle, records + done,
				    least(batch, nr - done));
		need(ret, EXPIRY_OP_ARM);
	}
}

/* Answers come in the order of the requests, so they overwrite them. */
static void send_ahead(uint32_t nr, uint32_t batch)
{
	uint32_t sent = 0, done = 0, count;
	int ret;

	while (done < nr) {
		ret = 0;
		count = least(batch, nr - sent);
		if (count && sent + count - done <= PIPELINE * batch) {
			ret = expiry_post(handle, records + sent, count);
			need(ret, EXPIRY_OP_ARM);
			sent += ret;
			if ((uint32_t)ret == count && sent < nr)
				continue;
		}
		ret = sent > done ? expiry_next(handle, records + done,
						sent - done) : 0;
		need(ret, EXPIRY_OP_ARM);
		done += ret;
		if (!ret && expiry_wait(handle, 30000) <= 0)
			die("the daemon is silent");
	}
}

/* Makes up to PART requests, then measures their answering. */
static void work(mix_make_t *make, uint32_t nr, uint32_t batch, bool ahead,
		 struct traffic_cost *cost)
{
	uint32_t i;

	if (mix.nr + nr > ids_max) {
		ids_max = mix.nr + 2 * PART;
		mix.ids = realloc(mix.ids, ids_max * sizeof(*mix.ids));
		if (!mix.ids)
			die("no memory");
	}
	for (i = 0; i < nr; i++)
		make(&mix, &records[i]);
	cost->server_ns -= traffic_cpu_ns(server);
	cost->client_ns -= traffic_cpu_ns(0);
	cost->took_ns -= bench_now();
	if (ahead)
		send_ahead(nr, batch);
	else
		send_waiting(nr, batch);
	cost->took_ns += bench_now();
	cost->client_ns += traffic_cpu_ns(0);
	cost->server_ns += traffic_cpu_ns(server);
	mix_answers(&mix, records, nr);
}

static void bring_to(uint32_t nr)
{
	struct traffic_cost unused;

	while (mix.nr < nr)
		work(mix_arm, least(PART, nr - mix.nr), BATCH, true, &unused);
	while (mix.nr > nr)
		work(mix_cancel, least(PART, mix.nr - nr), BATCH, true, &unused);
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	bool ahead = strcmp(order->op, "mix");
	mix_make_t *make = mix_any;
	uint32_t done, nr;

	if (!strcmp(order->op, "arm"))
		make = mix_arm;
	else if (!strcmp(order->op, "refresh"))
		make = mix_refresh;
	else if (ahead && strcmp(order->op, "mix-ahead"))
		return false;
	if (make == mix_any)
		bring_to(nr_filled - order->requests / 8);
	for (done = 0; done < order->requests; done += nr) {
		nr = least(PART, order->requests - done);
		work(make, nr, order->batch, ahead, cost);
	}
	return true;
}

static void print_pages(void)
{
	struct expiry_stat stat;

	need(expiry_stat(handle, &stat, NULL, 0), EXPIRY_OP_STAT);
	if (mix.nr)
		printf(", \"page_bytes\": %.1f", 4096.0 / mix.nr *
		       (stat.pages_heap + stat.pages_slots + stat.pages_index));
}

static void fill(const char *path, uint32_t timers)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = mix.keyed ? EXPIRY_OPEN_KEYED : 0,
		.clock_id = CLOCK_MONOTONIC,
		.timeout_ms = 30000,
	};
	char address[128];

	if (mix.keyed)
		driver.name = "keyed";
	snprintf(address, sizeof(address), "unix:%s", path);
	need(expiry_open(&handle, address, &options), EXPIRY_OP_HELLO);
	server = traffic_peer(expiry_fd(handle));
	records = driver_map(PART * sizeof(*records));
	mix.from_ns = expiry_now(handle) + FAR_NS;
	bring_to(timers);
	nr_filled = timers;
}

static const struct option_row options[] = {
	{ "keyed", .flag = &mix.keyed },
	{ 0 }
};

static struct driver driver = {
	.name = "plain",
	.fill = fill,
	.measure = measure,
	.more = print_pages,
	.options = options,
};

int main(int argc, char **argv)
{
	return driver_main(&driver, argc, argv);
}
