// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Heaps alone, side by side: the cost of an operation while filling one,
 * holding it (take the first, put in one that is due later) and draining it.
 *
 * All heaps of a size are filled with the same keys and are in memory together;
 * the rounds are interleaved. One JSON object for each heap, work and round.
 * "control" is a heap that keeps nothing: the cost of the loop, the random
 * numbers and the calls.
 */
#include <string.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "heap.h"
#include "increments.h"

#define ROUNDS		7U
#define ROUNDS_QUICK	3U
#define KINDS_MAX	16U

/* The clock of processor time is too coarse for fewer operations. */
#define SHORT		10000U
#define LARGE		10000000U

static struct increments increments;
static unsigned int rounds = ROUNDS;
static uint32_t most_ops = 1000000;
static const char *only;

/**
 * struct candidate - a heap in the run
 * @random: equal for all with the same operations
 * @last_ns: deadline of the last node taken
 */
struct candidate {
	const struct heap_kind *kind;
	void *heap;
	uint64_t random;
	uint64_t last_ns;
	uint32_t nr;
};

/* Returns the operations of a round: operations on a large heap are slow. */
static uint32_t round_ops(uint32_t nr)
{
	return nr < LARGE ? most_ops : most_ops / 2;
}

/* ------------------------------------------------------------------------
 * The heap that keeps nothing
 */

static void *control_create(uint32_t nr_max)
{
	static uint64_t deadline;

	(void)nr_max;
	return &deadline;
}

static void control_destroy(void *heap)
{
	(void)heap;
}

static void control_push(void *heap, const struct heap_node *node)
{
	*(uint64_t *)heap = node->deadline;
}

static struct heap_node control_pop(void *heap)
{
	return (struct heap_node) { .deadline = *(uint64_t *)heap };
}

static const struct heap_kind control = {
	.name = "control",
	.create = control_create,
	.destroy = control_destroy,
	.push = control_push,
	.pop = control_pop,
};

/* ------------------------------------------------------------------------
 * The works
 */

static void fill(struct candidate *who, uint32_t nr)
{
	const struct heap_kind *kind = who->kind;
	uint64_t random = who->random;
	void *heap = who->heap;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct heap_node node = {
			.deadline = increments_next(&increments, &random),
			.slot = i,
		};

		kind->push(heap, &node);
	}
	who->random = random;
	who->last_ns = 0;
	who->nr += nr;
}

static void hold(struct candidate *who, uint32_t ops)
{
	const struct heap_kind *kind = who->kind;
	uint64_t random = who->random, last_ns = who->last_ns;
	void *heap = who->heap;
	struct heap_node node;
	uint32_t i;

	for (i = 0; i < ops; i++) {
		node = kind->pop(heap);
		if (node.deadline < last_ns)
			die("%s: out of order", kind->name);
		last_ns = node.deadline;
		node.deadline += increments_next(&increments, &random);
		kind->push(heap, &node);
	}
	who->random = random;
	/* The control's next nodes are later than this. */
	who->last_ns = last_ns;
}

static void drain(struct candidate *who, uint32_t nr)
{
	const struct heap_kind *kind = who->kind;
	uint64_t last_ns = kind == &control ? 0 : who->last_ns;
	void *heap = who->heap;
	struct heap_node node;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		node = kind->pop(heap);
		if (node.deadline < last_ns)
			die("%s: out of order", kind->name);
		last_ns = node.deadline;
	}
	who->last_ns = last_ns;
	who->nr -= nr;
}

/* ------------------------------------------------------------------------
 * The run
 */

static void report(const struct candidate *who, const char *work, uint32_t nr,
		   unsigned int round, double ns)
{
	printf("{\"bench\":\"heaps\",\"subject\":\"%s\",\"work\":\"%s\","
	       "\"timers\":%u,\"round\":%u,\"ns\":%.2f}\n", who->kind->name,
	       work, nr, round, ns);
}

static void progress(uint32_t nr, const char *work)
{
	static uint64_t start_ns;

	if (!start_ns)
		start_ns = bench_now();
	fprintf(stderr, "%5llu s  %9u nodes   %s\n",
		(unsigned long long)(bench_now() - start_ns) / NSEC_PER_SEC,
		nr, work);
}

/* Reports how much of this program's memory is on huge pages. */
static void report_memory(uint32_t nr, unsigned int together)
{
	unsigned long rss = 0, huge = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "Rss: %lu", &rss);
		sscanf(line, "AnonHugePages: %lu", &huge);
	}
	if (file)
		fclose(file);
	printf("{\"bench\":\"heaps\",\"work\":\"memory\",\"timers\":%u,"
	       "\"heaps_together\":%u,\"rss_kib\":%lu,\"huge_kib\":%lu}\n", nr,
	       together, rss, huge);
}

/* Fills the first time, and reports figures that need only one fill. */
static void first_fill(struct candidate *who, uint32_t nr)
{
	uint64_t start_ns = bench_cpu();

	fill(who, nr);
	if (nr >= SHORT)
		report(who, "fill", nr, 0, (double)(bench_cpu() - start_ns) / nr);
}

/* Runs one round of drain and, where that empties the heap, of fill. Small
 * heaps are drained and filled many times, each by the clock, less the clock's
 * own time. The result is their median, because some are interrupted.
 */
static void drain_and_fill(struct candidate *who, uint32_t nr,
			   unsigned int round)
{
	static double drain_ns[SHORT], fill_ns[SHORT], clock_ns[SHORT];
	uint64_t (*now)(void) = nr < SHORT ? bench_now : bench_cpu;
	uint32_t reps = nr < SHORT ? 10 * SHORT / nr : 1, ops = round_ops(nr);
	uint32_t count = who->nr < ops ? who->nr : ops, i;
	uint64_t start_ns, drained_ns, filled_ns;
	double clock;

	if (reps > SHORT)
		reps = SHORT;
	for (i = 0; i < reps; i++) {
		start_ns = now();
		drain(who, count);
		drained_ns = now();
		if (!who->nr)
			fill(who, nr);
		filled_ns = now();
		drain_ns[i] = drained_ns - start_ns;
		fill_ns[i] = filled_ns - drained_ns;
		clock_ns[i] = now() - filled_ns;
	}
	clock = bench_median(clock_ns, reps).median;
	report(who, "drain", nr, round,
	       (bench_median(drain_ns, reps).median - clock) / count);
	if (who->nr == nr)
		report(who, "fill", nr, round,
		       (bench_median(fill_ns, reps).median - clock) / nr);
}

static void run_together(const struct heap_kind *const *kinds,
			 unsigned int nr_kinds, uint32_t nr)
{
	struct candidate who[KINDS_MAX];
	uint32_t ops = round_ops(nr);
	uint64_t start_ns;
	unsigned int i, k;

	progress(nr, "fill");
	for (k = 0; k < nr_kinds; k++) {
		who[k] = (struct candidate) {
			.kind = kinds[k],
			.heap = kinds[k]->create(nr),
			.random = 1,
		};
		first_fill(&who[k], nr);
	}
	report_memory(nr, nr_kinds);
	progress(nr, "hold");
	/* Round 0 settles the heaps and is not counted. */
	for (i = 0; i <= rounds; i++) {
		for (k = 0; k < nr_kinds; k++) {
			start_ns = bench_cpu();
			hold(&who[k], ops);
			if (i)
				report(&who[k], "hold", nr, i,
				       (double)(bench_cpu() - start_ns) / ops);
		}
	}
	progress(nr, "drain");
	for (i = 1; i <= rounds; i++) {
		for (k = 0; k < nr_kinds; k++)
			if (who[k].nr)
				drain_and_fill(&who[k], nr, i);
	}
	for (k = 0; k < nr_kinds; k++)
		kinds[k]->destroy(who[k].heap);
	fflush(stdout);
}

static void run(uint32_t nr, uint64_t memory)
{
	const struct heap_kind *kinds[KINDS_MAX];
	uint64_t each = (uint64_t)nr * sizeof(struct heap_node) + (8 << 20);
	unsigned int nr_kinds = 0, together, i;

	kinds[nr_kinds++] = &control;
	for (i = 0; heap_kinds[i]; i++)
		if (!only || !strcmp(only, heap_kinds[i]->name))
			kinds[nr_kinds++] = heap_kinds[i];
	if (each > memory) {
		fprintf(stderr, "heaps: no memory for %u timers\n", nr);
		return;
	}
	together = memory / each < nr_kinds ? memory / each : nr_kinds;
	if (together < nr_kinds)
		fprintf(stderr, "heaps: memory for %u heaps of %u at a time\n",
			together, nr);
	for (i = 0; i < nr_kinds; i += together)
		run_together(kinds + i, nr_kinds - i < together ?
			     nr_kinds - i : together, nr);
}

int main(int argc, char **argv)
{
	static uint32_t mib = UINT32_MAX, nr, nr_max = 100000000;
	static bool quick;
	static const struct option_row options[] = {
		{ "quick", .flag = &quick },
		{ "memory", "MIB", .number = &mib },
		{ "only", "HEAP", .text = &only },
		{ 0 }
	};
	int i = options_parse(argc, argv, options, "[NODES...]");
	uint64_t memory = (uint64_t)mib << 20;

	if (quick) {
		rounds = ROUNDS_QUICK;
		most_ops = 200000;
		nr_max = 1000000;
	}
	increments_init(&increments);
	if (i == argc)
		for (nr = 10; nr <= nr_max; nr *= 10)
			run(nr, memory);
	for (; i < argc; i++)
		run(options_number(options, "[NODES...]", argv[i], 1,
				   1000000000), memory);
	return 0;
}
