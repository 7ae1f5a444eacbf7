// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many runs of the simulator. A seed that fails is shrunk: its steps are halved,
 * then dropped, as long as it still fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/runs.h"
#include "tests/sim/sim.h"
#include "tests/sim/wrap.h"

#define JOBS_MAX	16
#define BLOCK		20	/* seeds in one line of TAP */
#define FILE_MAX	200	/* seeds of a file */
#define SHRINK_S	60	/* for each */

/* Sums of all runs, in memory that they share. */
struct report {
	_Atomic uint64_t requests;
	_Atomic uint64_t expirations;
	_Atomic uint64_t connections;
	_Atomic uint64_t turns;
};

static struct report *total;
static uint32_t nr_results, nr_failed;

/* ------------------------------------------------------------------- processes */

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
	sim_run();
	total->requests += sim.requests;
	total->expirations += sim.expirations;
	total->connections += sim.connections;
	total->turns += sim.turns;
	/* With the checker for leaks. */
	exit(0);
}

/* ------------------------------------------------------------------- shrinking */

static time_t shrink_until;

/* Returns whether the seed still fails; without time it counts as passed. */
static bool still_fails(uint64_t seed, const bool *keep)
{
	int status;
	pid_t pid;

	if (time(NULL) >= shrink_until)
		return false;
	pid = fork_run(seed, keep, true);
	waitpid(pid, &status, 0);
	return status;
}

/* Halves the number of steps. Returns the least that fails. */
static uint32_t halve(uint64_t seed)
{
	uint32_t all = sim.steps, most = all, least = 0, half;

	while (least < most) {
		half = (least + most) / 2;
		sim.steps = half;
		if (still_fails(seed, NULL))
			most = half;
		else
			least = half + 1;
	}
	sim.steps = all;
	return most;
}

/* Drops steps, many at a time and then fewer. */
static void drop(uint64_t seed, bool *keep)
{
	bool *less = sim_alloc(sim.steps);
	uint32_t size, i, j;

	for (size = sim.steps / 2; size; size /= 2)
		for (i = 0; i < sim.steps; i += size) {
			bool some = false;

			memcpy(less, keep, sim.steps);
			for (j = i; j < i + size && j < sim.steps; j++) {
				some |= less[j];
				less[j] = false;
			}
			if (some && still_fails(seed, less))
				memcpy(keep, less, sim.steps);
		}
	sim_free(less);
}

static void print_command(uint64_t seed, const bool *keep)
{
	uint32_t i, nr = 0;

	printf("# repeat: build/tests/sim/sim %s--seed %llu --steps %u --keep ",
	       sim.crashes ? "--crashes " : "", (unsigned long long)seed,
	       sim.steps);
	for (i = 0; i < sim.steps; i++)
		if (keep[i])
			printf("%s%u", nr++ ? "," : "", i);
	printf("%s --verbose\n", nr ? "" : "none");
	fflush(stdout);
}

static void shrink(uint64_t seed)
{
	uint32_t all = sim.steps;
	bool *keep;

	shrink_until = time(NULL) + SHRINK_S;
	sim.steps = halve(seed);
	keep = sim_alloc(sim.steps + 1);
	memset(keep, true, sim.steps);
	drop(seed, keep);
	print_command(seed, keep);
	sim_free(keep);
	sim.steps = all;
}

/* ---------------------------------------------------------------------- blocks */

static void run_failed(const struct runs *runs, uint64_t seed)
{
	printf("# seed %llu fails\n", (unsigned long long)seed);
	if (nr_failed++ < runs->nr_shrunk)
		shrink(seed);
}

/* Runs some seeds, and prints one result for all of them. */
static void run_block(const struct runs *runs, const uint64_t *seeds,
		      uint32_t nr, const char *name)
{
	uint32_t running = 0, next = 0, failed = 0, i;
	uint64_t bad[FILE_MAX];
	pid_t pids[FILE_MAX], pid;
	int status;

	while (next < nr || running) {
		while (next < nr && running < runs->jobs) {
			pids[next] = fork_run(seeds[next], NULL,
					      !runs->nr_shrunk && !sim.verbose);
			next++;
			running++;
		}
		pid = wait(&status);
		running--;
		for (i = 0; i < next; i++)
			if (pids[i] == pid && status)
				bad[failed++] = seeds[i];
	}
	for (i = 0; i < failed; i++)
		run_failed(runs, bad[i]);
	printf("%sok %u - %s\n", failed ? "not " : "", ++nr_results, name);
}

static void run_row(const struct runs *runs, uint64_t first, uint64_t nr)
{
	uint64_t seeds[BLOCK];
	char name[64];
	uint32_t i;

	if (nr > BLOCK)
		nr = BLOCK;
	for (i = 0; i < nr; i++)
		seeds[i] = first + i;
	snprintf(name, sizeof(name), "seeds %llu to %llu",
		 (unsigned long long)first, (unsigned long long)(first + nr - 1));
	run_block(runs, seeds, nr, name);
}

/* Runs the seeds of a file: a number at the beginning of each line. */
static bool run_file(const struct runs *runs)
{
	FILE *file = fopen(runs->file, "re");
	uint64_t seeds[FILE_MAX];
	char line[256], *end;
	uint32_t nr = 0;

	if (!file) {
		perror(runs->file);
		return false;
	}
	while (nr < FILE_MAX && fgets(line, sizeof(line), file)) {
		seeds[nr] = strtoull(line, &end, 10);
		nr += end != line;
	}
	fclose(file);
	run_block(runs, seeds, nr, "seeds that found a fault once");
	return true;
}

int runs_do(const struct runs *runs)
{
	struct runs all = *runs;
	time_t until = time(NULL) + runs->seconds;
	uint64_t done = 0;

	if (!all.jobs || all.jobs > JOBS_MAX)
		all.jobs = 2;
	total = __real_mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all.file && !run_file(&all))
		return 2;
	while (!(runs->stops && nr_failed) &&
	       (runs->seconds ? time(NULL) < until : done < all.nr)) {
		run_row(&all, all.first + done,
			runs->seconds ? BLOCK : all.nr - done);
		done += BLOCK;
	}
	printf("1..%u\n# %llu requests, %llu expirations, %llu connections, %llu turns; %u seeds failed\n",
	       nr_results, (unsigned long long)total->requests,
	       (unsigned long long)total->expirations,
	       (unsigned long long)total->connections,
	       (unsigned long long)total->turns, nr_failed);
	return nr_failed ? 1 : 0;
}
