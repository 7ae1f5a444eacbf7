// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One run of the simulator, and the options of the program.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/config.h"
#include "daemon/util/notify.h"
#include "tests/sim/lives.h"
#include "tests/sim/runs.h"

#define STEPS		1500
#define RUN_LIMIT_S	60

struct sim sim;

void sim_fail(const char *format, ...)
{
	va_list ap;

	inside_trace();
	fflush(stdout);
	fprintf(stderr, "seed %llu, step %u: ", (unsigned long long)sim.seed,
		sim.step);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(1);
}

void sim_trace(const char *format, ...)
{
	va_list ap;

	printf("%6u %12llu ", sim.step, (unsigned long long)sim.mono_ns);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

/* ------------------------------------------------------------------- one run */

static uint64_t one_of(struct rng *rng, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t of[] = { a, b, c };

	return of[rng_below(rng, 3)];
}

static struct config base;

/* Sets limits, small enough to be reached; others at each reload. */
static int configure(struct config *config)
{
	struct rng rng = { sim.seed * 31 + sim.step };

	*config = base;
	config->connections = one_of(&rng, 16384, 8, 16384);
	config->connections_per_user = one_of(&rng, 4096, 6, 4096);
	config->queues_per_user = one_of(&rng, 16384, 2, 16384);
	config->timers_per_user = one_of(&rng, 1 << 20, 1 << 20, 100);
	config->busy_after = one_of(&rng, 4000, 5, 4000);
	config->observer_memory = one_of(&rng, 1 << 20, 1 << 12, 1 << 8);
	return 0;
}

static void set_kernel(struct rng *rng)
{
	sim.mono_ns = SIM_S + rng_below(rng, SIM_S);
	sim.boot_ahead = rng_below(rng, 100 * SIM_S);
	sim.real_ahead = 1700000000ULL * SIM_S;
	sim.complete = one_of(rng, 1000, 500, 100);
	sim.partial = one_of(rng, 0, 200, 700);
	sim.error = one_of(rng, 0, 2, 10);
	sim.age = rng_below(rng, 3);
	sim.has_multishot = rng_hits(rng, 700);
	sim.has_quiet = rng_hits(rng, 800);
	sim.sq_entries = one_of(rng, 0, 0, 16);
	sim.cq_entries = one_of(rng, 0, 0, 16);
	sim.slow = one_of(rng, 0, 0, 300);
	sim.broken = one_of(rng, 0, 0, 3);
}

static void set_base(struct config *config, struct rng *rng)
{
	config_init(config);
	strcpy(config->engine, "embedded");
	strcpy(config->queue_files, "/queues");
	config->threads = one_of(rng, 1, 1, 1 + rng_below(rng, 3));
	config->buffers = one_of(rng, 4, 8, 32);
	config->buffer_size = one_of(rng, 2048, 2048, 4096);
	config->records_in_flight = one_of(rng, 64, 64, 256);
	config->memory = 1 << 28;
	config->backlog_memory = one_of(rng, 1 << 20, 1 << 20, 30000);
	sim.forgives = config->backlog_memory < 1 << 20;
	config->queues = 64;
	config->credit_max = 64;
	config->timers_per_queue = one_of(rng, 1000, 200, 20);
	config->observers_per_queue = 2;
	strcpy(config->layout, rng_hits(rng, 500) ? "radix" :
			       rng_hits(rng, 500) ? "sorted" : "subtree");
}

/* Gives the daemon a journal, and leaves out what forgets timers. */
static void set_crashes(struct config *config)
{
	strcpy(config->journal, "/journal");
	sim.commits_late = sim.seed % 4 == 3;
	strcpy(config->commit, sim.commits_late ? "100ms" : "flushed");
	sim.broken = 0;
	/* One seed in sixteen. */
	sim.drops = sim.seed % 16 == 14;
	if (sim.drops)
		config->threads = 2 + sim.seed / 16 % 2;
}

static struct config config;

static void run_world(void)
{
	world_run(&config, configure);
}

void sim_run(void)
{
	struct rng rng = { sim.seed };

	rng_next(&rng);
	sim.kernel.state = rng_next(&rng);
	alarm(RUN_LIMIT_S);
	topics_init(&rng);
	set_kernel(&rng);
	set_base(&base, &rng);
	if (sim.crashes)
		set_crashes(&base);
	configure(&config);
	manager_init(&rng);
	declared_init(&rng);
	trace("%u threads, %u buffers of %u, engine slow %u, broken %u",
	      (uint32_t)config.threads, (uint32_t)config.buffers,
	      (uint32_t)config.buffer_size, sim.slow, sim.broken);
	if (sim.crashes)
		lives_run(run_world);
	else
		run_world();
}

/* ------------------------------------------------------------------ the options */

static const bool *parse_keep(char *text)
{
	bool *keep = sim_alloc(sim.steps);
	char *rest = NULL, *part;
	uint64_t step;

	for (part = strtok_r(text, ",", &rest); part;
	     part = strtok_r(NULL, ",", &rest)) {
		step = strtoull(part, NULL, 10);
		if (step < sim.steps && strcmp(part, "none"))
			keep[step] = true;
	}
	return keep;
}

static const struct option options[] = {
	{ "seed", required_argument, NULL, 's' },
	{ "seeds", required_argument, NULL, 'n' },
	{ "steps", required_argument, NULL, 'm' },
	{ "keep", required_argument, NULL, 'k' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "seconds", required_argument, NULL, 't' },
	{ "shrink", required_argument, NULL, 'x' },
	{ "stop", no_argument, NULL, 'e' },
	{ "file", required_argument, NULL, 'f' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "crashes", no_argument, NULL, 'c' },
	{ 0 },
};

int main(int argc, char **argv)
{
	struct runs runs = { .first = 1, .jobs = 2, .nr_shrunk = 3 };
	char *keep = NULL;
	int c;

	sim.steps = STEPS;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			runs.first = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			runs.nr = strtoull(optarg, NULL, 10);
			break;
		case 'm':
			sim.steps = strtoul(optarg, NULL, 10);
			break;
		case 'k':
			keep = optarg;
			break;
		case 'j':
			runs.jobs = strtoul(optarg, NULL, 10);
			break;
		case 't':
			runs.seconds = strtoul(optarg, NULL, 10);
			break;
		case 'x':
			runs.nr_shrunk = strtoul(optarg, NULL, 10);
			break;
		case 'e':
			runs.stops = true;
			break;
		case 'f':
			runs.file = optarg;
			break;
		case 'c':
			sim.crashes = true;
			break;
		case 'v':
			sim.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (runs.nr || runs.seconds)
		return runs_do(&runs);
	sim.seed = runs.first;
	if (keep)
		sim.keep = parse_keep(keep);
	sim_run();
	return 0;
}
