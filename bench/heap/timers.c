// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Timers in typical workloads, on expiry's core and on alternatives, in one
 * process: a line of JSON for each round, progress to stderr.
 * docs/heaps-timers.md explains the workloads.
 *
 * Batches are timed by their processor time. Up to TOGETHER_MAX timers all
 * peers are in memory and interleaved, round by round; above, one after the
 * other.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/pages.h"
#include "clock.h"
#include "workload.h"

#define PEERS_MAX	32U
#define TOGETHER_MAX	1000000U
#define TIMERS_MOST	100000000U

/* Longer storms of all timers are left out. */
#define STORM_SECONDS	8.0

static struct {
	const struct peer *peers[PEERS_MAX];
	uint32_t nr_peers;
	const char *workload;
	uint32_t rounds;
	uint32_t ops;
	bool quick;
	bool by_name;
} wanted;

static uint64_t start_ns;

static void progress(const char *name, uint32_t nr, const char *what)
{
	fprintf(stderr, "%5.0f s  %9u timers  %-12s %s\n",
		(double)(clock_raw() - start_ns) / NSEC_PER_SEC, nr, name,
		what);
}

/* ------------------------------------------------------------------------
 * Reports: a line of JSON for each figure of a round
 */

/* Whether the peers are interleaved, round by round. */
static bool is_interleaved;

static void report_begin(const struct load *load, const char *workload,
			 uint32_t round)
{
	printf("{\"bench\":\"timers\",\"subject\":\"%s\",\"workload\":\"%s\","
	       "\"timers\":%u,\"round\":%u", load->peer->name, workload,
	       load->nr, round);
	if (!is_interleaved)
		printf(",\"interleaved\":false");
}

static void report_cost(const struct load *load, const char *workload,
			uint32_t round, const char *work,
			const struct load_cost *cost)
{
	report_begin(load, workload, round);
	printf(",\"work\":\"%s\",\"ops\":%llu,\"ns\":%.1f", work,
	       (unsigned long long)cost->nr, (double)cost->ns / cost->nr);
}

static void report_bytes(const struct load *load)
{
	printf(",\"bytes\":%.1f", (double)load_bytes(load) / load->nr);
}

static void report_end(void)
{
	puts("}");
	fflush(stdout);
}

static struct load_cost all_costs(const struct load *load, uint32_t nr)
{
	struct load_cost all = { .nr = nr };
	int op;

	for (op = 0; op < (int)LOAD_OPS; op++)
		all.ns += load->costs[op].ns;
	return all;
}

/* Reports an operation of the workload ("main"), the memory, and the cost of each
 * kind of request.
 */
static void report_round(const struct load *load, const struct workload *workload,
		  uint32_t round, uint32_t ops)
{
	static const char *const names[LOAD_OPS] = {
		[PEER_ARM] = "arm",
		[PEER_REFRESH] = "refresh",
		[PEER_CANCEL] = "cancel",
		[LOAD_DELIVER] = "deliver",
	};
	struct load_cost all = all_costs(load, ops);
	int op;

	report_cost(load, workload->name, round, workload->work,
		    workload->delivery ? &load->costs[LOAD_DELIVER] : &all);
	printf(",\"main\":true");
	report_bytes(load);
	report_end();
	for (op = 0; op < (int)LOAD_OPS; op++) {
		/* One or two operations are no figure. */
		if (load->costs[op].nr <= ops / 10 ||
		    (workload->delivery && op == LOAD_DELIVER))
			continue;
		report_cost(load, workload->name, round, names[op],
			    &load->costs[op]);
		report_end();
	}
}

/* Reports the cost of arming all timers, and their memory. */
static void report_fill(const struct load *load, const struct family *family)
{
	struct load_cost all = all_costs(load, load->nr);

	report_cost(load, family->name, 0, "fill", &all);
	report_bytes(load);
	report_end();
}

static void report_version(const struct peer *peer)
{
	if (peer->version)
		printf("{\"bench\":\"timers\",\"subject\":\"%s\","
		       "\"version\":\"%s\"}\n", peer->name, peer->version());
}

/* ------------------------------------------------------------------------
 * The run
 */

/* Returns the operations of a round. Interleaved peers all do the same, so that
 * their answers can be compared.
 */
static uint32_t ops_of(const struct workload *workload, const struct load *load)
{
	uint32_t nr = load->nr, ops, cycle = nr / 10 * workload->cycle;

	if (wanted.ops)
		return wanted.ops;
	if (wanted.quick)
		ops = 1U << 15;
	else
		ops = nr > PEER_HUGE ? 1U << 20 :
		      nr > 100000 ? 1U << 17 : 1U << 16;
	if (ops < cycle && (load->peer->lazy || nr <= TOGETHER_MAX))
		ops = cycle;
	return ops;
}

static uint32_t rounds_of(const struct workload *workload, uint32_t nr)
{
	if (wanted.rounds)
		return wanted.rounds;
	if (nr > TOGETHER_MAX)
		return workload->delivery || nr > PEER_HUGE ? 1 : 3;
	if (nr == TOGETHER_MAX)
		return wanted.quick ? 1 : 3;
	return wanted.quick ? 3 : 5;
}

static bool is_wanted(const struct workload *workload)
{
	return !wanted.workload || !strcmp(wanted.workload, workload->name);
}

static bool family_is_wanted(const struct family *family)
{
	const struct workload *workload;

	for (workload = family->workloads; workload->name; workload++)
		if (is_wanted(workload))
			return true;
	return false;
}

static uint32_t work(struct load *load, const struct workload *workload,
		     uint32_t ops)
{
	uint32_t done = 0;

	load_enter(load);
	load_reset(load);
	while (done < ops)
		done += workload->step(load);
	load_leave(load);
	return done;
}

/* Returns whether a storm of all timers would take too long, estimated from the
 * one before.
 */
static bool is_too_slow(const struct load *load,
			const struct workload *workload)
{
	const struct load_cost *deliver = &load->costs[LOAD_DELIVER];
	const struct load_cost *arm = &load->costs[PEER_ARM];
	double seconds;

	if (load->nr <= TOGETHER_MAX || wanted.workload ||
	    strcmp(workload->name, WORKLOAD_STORM))
		return false;
	seconds = ((double)deliver->ns / deliver->nr +
		   (double)arm->ns / arm->nr) * load->nr / NSEC_PER_SEC;
	if (seconds < STORM_SECONDS)
		return false;
	fprintf(stderr, "%s: %s left out, it would take %.0f s\n",
		load->peer->name, workload->name, seconds);
	return true;
}

static void run_workload(const struct workload *workload, struct load *loads,
			 uint32_t nr_loads)
{
	uint32_t nr = loads->nr, round, rounds = rounds_of(workload, nr), i;
	uint32_t ops;

	if (nr_loads == 1 && is_too_slow(loads, workload))
		return;
	progress(workload->name, nr, nr_loads > 1 ? "in turns" :
						   loads->peer->name);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < nr_loads; i++) {
			ops = work(&loads[i], workload,
				   ops_of(workload, &loads[i]));
			report_round(&loads[i], workload, round, ops);
		}
	}
}

/* Up to this many timers all remaining ones are removed at the end. */
#define DRAIN_MAX	100000U

static void fill(struct load *load, const struct family *family,
		 const struct peer *peer, uint32_t nr, uint32_t *due)
{
	load_init(load, peer, nr, due);
	load_enter(load);
	family->fill(load);
	load_leave(load);
	report_fill(load, family);
}

static uint64_t finish(struct load *load)
{
	uint32_t nr;

	if (load->nr <= DRAIN_MAX) {
		nr = load_advance(load, load->latest_ns - load->now_ns +
					LOAD_GRAIN_NS);
		if (nr != load->nr)
			die("%s: %u timers of %u were left", load->peer->name,
			    nr, load->nr);
	}
	if (load->nr <= TOGETHER_MAX)
		load_deinit(load);
	return load->sum;
}

/* Returns a checksum of the deliveries, which must be the same for all. */
static uint64_t run_loads(const struct family *family,
			  const struct peer *const *who, uint32_t nr_loads,
			  uint32_t nr, uint32_t *due)
{
	static struct load loads[PEERS_MAX];
	const struct workload *workload;
	uint64_t sum, first = 0;
	uint32_t i;

	for (i = 0; i < nr_loads; i++)
		fill(&loads[i], family, who[i], nr, due);
	for (workload = family->workloads; workload->name; workload++)
		if (is_wanted(workload))
			run_workload(workload, loads, nr_loads);
	for (i = 0; i < nr_loads; i++) {
		sum = finish(&loads[i]);
		if (!i)
			first = sum;
		else if (sum != first)
			die("%s, %s: other timers came due than with %s",
			    who[i]->name, family->name, who[0]->name);
	}
	return first;
}

/* Runs a peer in a process of its own, whose exit frees all the memory.
 * libevent, for one, would remove its timers one after the other.
 */
static void run_alone(const struct family *family, const struct peer *const *who,
		      uint32_t nr, uint32_t *due)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork() failed");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		run_loads(family, who, 1, nr, due);
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("%s did not come to its end", (*who)->name);
}

static bool is_able(const struct peer *peer, const struct family *family,
		    uint32_t nr)
{
	if (peer->ttl_ns && !family->ttl)
		return false;
	return wanted.by_name || nr <= peer->most;
}

static void run_family(const struct family *family, uint32_t nr, uint32_t *due)
{
	const struct peer *able[PEERS_MAX];
	uint32_t nr_able = 0, i;

	for (i = 0; i < wanted.nr_peers; i++)
		if (is_able(wanted.peers[i], family, nr))
			able[nr_able++] = wanted.peers[i];
	if (nr <= TOGETHER_MAX) {
		run_loads(family, able, nr_able, nr, due);
		return;
	}
	for (i = 0; i < nr_able; i++)
		run_alone(family, &able[i], nr, due);
}

static bool is_short(const struct family *family, uint32_t nr)
{
	return nr <= PEER_HUGE || wanted.workload ||
	       !strcmp(family->name, "exponential");
}

static void run(uint32_t nr)
{
	uint32_t *due = bench_map(nr * sizeof(*due));
	const struct family *family;

	is_interleaved = nr <= TOGETHER_MAX;
	for (family = families; family->name; family++)
		if (family_is_wanted(family) && is_short(family, nr))
			run_family(family, nr, due);
	bench_unmap(due, nr * sizeof(*due));
}

/* ------------------------------------------------------------------------ */

/* Puts malloc()'s memory on huge pages, as expiry has its own. malloc() must
 * know that before the program begins.
 */
static void want_huge_pages(char **argv)
{
	static const char tunable[] = "glibc.malloc.hugetlb=1";
	const char *tunables = getenv("GLIBC_TUNABLES");

	if (tunables && strstr(tunables, "glibc.malloc.hugetlb"))
		return;
	if (setenv("GLIBC_TUNABLES", tunable, 1))
		die("no memory");
	execv("/proc/self/exe", argv);
}

static uint32_t timers[8], nr_timers;

static void want_timers(const char *text)
{
	unsigned long nr = strtoul(text, NULL, 10);

	if (nr_timers == sizeof(timers) / sizeof(*timers) ||
	    nr < WORKLOAD_TIMERS_MIN || nr > TIMERS_MOST)
		die("--timers %s: %u to %u, eight times", text,
		    WORKLOAD_TIMERS_MIN, TIMERS_MOST);
	timers[nr_timers++] = nr;
}

static void want_peer(const char *name)
{
	const struct peer *const *peer;

	for (peer = peers; *peer && strcmp((*peer)->name, name); peer++)
		;
	if (!*peer || wanted.nr_peers == PEERS_MAX)
		die("no subject %s", name);
	wanted.peers[wanted.nr_peers++] = *peer;
	wanted.by_name = true;
}

static void check_workload(void)
{
	const struct family *family;

	for (family = families; family->name; family++)
		if (family_is_wanted(family))
			return;
	die("no workload %s", wanted.workload);
}

int main(int argc, char **argv)
{
	static const struct option_row options[] = {
		{ "quick", .flag = &wanted.quick },
		{ "subject", "NAME", .call = want_peer },
		{ "workload", "NAME", .text = &wanted.workload },
		{ "timers", "N", .call = want_timers },
		{ "rounds", "N", .number = &wanted.rounds, .least = 1,
		  .most = 1000 },
		{ "ops", "N", .number = &wanted.ops, .least = 1,
		  .most = 1U << 30 },
		{ 0 }
	};
	uint32_t i;

	want_huge_pages(argv);
	start_ns = clock_raw();
	options_parse(argc, argv, options, "");
	if (!wanted.by_name)
		for (i = 0; peers[i]; i++)
			wanted.peers[wanted.nr_peers++] = peers[i];
	check_workload();
	if (!nr_timers) {
		timers[nr_timers++] = 10000;
		timers[nr_timers++] = 100000;
		if (!wanted.quick) {
			timers[nr_timers++] = 1000000;
			timers[nr_timers++] = 10000000;
		}
	}
	for (i = 0; i < wanted.nr_peers; i++)
		report_version(wanted.peers[i]);
	for (i = 0; i < nr_timers; i++)
		run(timers[i]);
	return 0;
}
