// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs of the simulator: one seed, or many, each in a process of its own. A seed
 * that fails is shrunk to few steps.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/util/config.h"
#include "daemon/util/notify.h"
#include "tests/sim/sim.h"
#include "tests/sim/wrap.h"

#define STEPS		1500
#define JOBS_MAX	16
#define RUN_LIMIT_S	60

struct sim sim;

void sim_fail(const char *format, ...)
{
	va_list ap;

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
	config->observer_memory = one_of(&rng, 1 << 20, 1 << 12, 1 << 12);
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
	memset(config->queue_files, 0, sizeof(config->queue_files));
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
	strcpy(config->layout, rng_hits(rng, 500) ? "sorted" : "subtree");
}

static void run_seed(void)
{
	struct config config;
	struct rng rng = { sim.seed };

	rng_next(&rng);
	sim.kernel.state = rng_next(&rng);
	alarm(RUN_LIMIT_S);
	topics_init(&rng);
	set_kernel(&rng);
	set_base(&base, &rng);
	configure(&config);
	trace("%u threads, %u buffers of %u, engine slow %u, broken %u",
	      (uint32_t)config.threads, (uint32_t)config.buffers,
	      (uint32_t)config.buffer_size, sim.slow, sim.broken);
	world_run(&config, configure);
}

/* ---------------------------------------------------------------- many runs */

/* Sums of all runs, in memory that they share. */
struct report {
	_Atomic uint64_t requests;
	_Atomic uint64_t expirations;
	_Atomic uint64_t connections;
	_Atomic uint64_t turns;
};

static struct report *total;

/* Runs a seed in a process of its own. */
static pid_t fork_run(uint64_t seed, const bool *keep, bool quiet)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	if (quiet && !freopen("/dev/null", "w", stderr))
		_exit(2);
	sim.seed = seed;
	sim.keep = keep;
	run_seed();
	total->requests += sim.requests;
	total->expirations += sim.expirations;
	total->connections += sim.connections;
	total->turns += sim.turns;
	/* With the checker for leaks. */
	exit(0);
}

static bool passes(uint64_t seed, const bool *keep)
{
	int status;
	pid_t pid = fork_run(seed, keep, true);

	waitpid(pid, &status, 0);
	return !status;
}

/* Leaves out steps as long as it fails without them. */
static void shrink(uint64_t seed)
{
	bool *keep = sim_alloc(sim.steps), *less = sim_alloc(sim.steps);
	uint32_t size, i, j, nr = 0;

	memset(keep, true, sim.steps);
	for (size = sim.steps / 2; size; size /= 2)
		for (i = 0; i < sim.steps; i += size) {
			bool some = false;

			memcpy(less, keep, sim.steps);
			for (j = i; j < i + size && j < sim.steps; j++) {
				some |= less[j];
				less[j] = false;
			}
			if (some && !passes(seed, less))
				memcpy(keep, less, sim.steps);
		}
	printf("reproduce: build/tests/sim/sim --seed %llu --steps %u --keep ",
	       (unsigned long long)seed, sim.steps);
	for (i = 0; i < sim.steps; i++)
		if (keep[i])
			printf("%s%u", nr++ ? "," : "", i);
	printf("%s --verbose\n", nr ? "" : "none");
	fflush(stdout);
	sim_free(keep);
	sim_free(less);
}

/* Runs @nr seeds from @seed, or for @seconds. Returns how many fail. */
static uint32_t run_many(uint64_t seed, uint64_t nr, uint32_t jobs,
			 uint32_t seconds, uint32_t nr_shrunk)
{
	uint64_t seeds[JOBS_MAX], end = seed + nr;
	pid_t pids[JOBS_MAX] = { 0 };
	uint32_t failed = 0, running = 0, i;
	time_t until = time(NULL) + seconds;
	int status;
	pid_t pid;

	do {
		while (running < jobs &&
		       (seconds ? time(NULL) < until : seed < end)) {
			for (i = 0; pids[i]; i++)
				;
			seeds[i] = seed++;
			pids[i] = fork_run(seeds[i], NULL, !nr_shrunk);
			running++;
		}
		if (!running)
			break;
		pid = wait(&status);
		for (i = 0; i < JOBS_MAX; i++)
			if (pids[i] == pid)
				break;
		if (i == JOBS_MAX)
			continue;
		pids[i] = 0;
		running--;
		if (status) {
			printf("not ok - seed %llu\n",
			       (unsigned long long)seeds[i]);
			if (failed++ < nr_shrunk)
				shrink(seeds[i]);
		}
	} while (1);
	return failed;
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
	{ "verbose", no_argument, NULL, 'v' },
	{ 0 },
};

int main(int argc, char **argv)
{
	uint64_t seed = 1, seeds = 0;
	uint32_t jobs = 2, seconds = 0, nr_shrunk = 3, failed;
	char *keep = NULL;
	int c;

	sim.steps = STEPS;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			seeds = strtoull(optarg, NULL, 10);
			break;
		case 'm':
			sim.steps = strtoul(optarg, NULL, 10);
			break;
		case 'k':
			keep = optarg;
			break;
		case 'j':
			jobs = strtoul(optarg, NULL, 10);
			break;
		case 't':
			seconds = strtoul(optarg, NULL, 10);
			break;
		case 'x':
			nr_shrunk = strtoul(optarg, NULL, 10);
			break;
		case 'v':
			sim.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (!seeds && !seconds) {
		sim.seed = seed;
		if (keep)
			sim.keep = parse_keep(keep);
		run_seed();
		return 0;
	}
	if (!jobs || jobs > JOBS_MAX)
		jobs = 2;
	total = __real_mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	failed = run_many(seed, seeds, jobs, seconds, nr_shrunk);
	printf("%llu requests, %llu expirations, %llu connections, %llu turns; %u seeds failed\n",
	       (unsigned long long)total->requests,
	       (unsigned long long)total->expirations,
	       (unsigned long long)total->connections,
	       (unsigned long long)total->turns, failed);
	return failed ? 1 : 0;
}
