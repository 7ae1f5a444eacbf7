// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The worst single operations on a queue, and its memory, in the course of a
 * queue's life:
 *
 *	fill	timers are armed
 *	hold	the first is delivered and another armed, some are refreshed and
 *		cancelled: their number stays the same
 *	mix	refreshes to later and earlier, cancellations, in batches
 *	storm	every timer is refreshed twice, to a random deadline
 *	drain	everything is due
 *	cancel	99 of 100 timers are cancelled
 *
 * One JSON object for each operation, work and unit, and for each time that the
 * pages were counted.
 */
#include "bench/options.h"
#include "bounds.h"

#define SINGLES		1000000U
#define STORM_MAX	10000000U
#define DRAIN_MAX	10000000U	/* drained completely, if plain; keyed a tenth */
#define DRAIN_SOME	2000000U
#define PAIRS_LIVE	100000U
#define PAIRS_FEW	1000000U
#define PAIRS_MANY	100000000U

static u32 singles = SINGLES;
static u32 pairs_many = PAIRS_MANY;
static const char *only;

/* ------------------------------------------------------------------------
 * Reporting
 */

static void report_begin(const struct bounds *bounds, u32 nr, const char *work)
{
	printf("{\"bench\":\"bounds\",\"subject\":\"%s\",\"queue\":\"%s\","
	       "\"timers\":%u,\"work\":\"%s\"", bounds->subject.layout->name,
	       bounds->subject.keyed ? "keyed" : "plain", nr, work);
}

static void progress(const struct bounds *bounds, u32 nr, const char *work)
{
	static u64 start_ns;

	if (!start_ns)
		start_ns = bench_now();
	fprintf(stderr, "%5llu s  %9u timers  %-7s %s  %s\n",
		(unsigned long long)(bench_now() - start_ns) / NSEC_PER_SEC,
		nr, bounds->subject.layout->name,
		bounds->subject.keyed ? "keyed" : "plain", work);
}

/* Reports all operations since the last report. */
static void report_seen(struct bounds *bounds, u32 nr, const char *work)
{
	const struct tally *tally;
	u32 op, i;

	for (op = 0; op < OP_NR; op++) {
		for (i = 0; measure_units[i]; i++) {
			tally = &bounds->seen[op][i];
			if (!tally->nr)
				continue;
			report_begin(bounds, nr, work);
			printf(",\"op\":\"%s\",\"unit\":\"%s\",\"count\":%llu,"
			       "\"p50\":%u,\"p99\":%u,\"p9999\":%u,"
			       "\"max\":%u}\n", op_names[op], measure_units[i],
			       (unsigned long long)tally->nr,
			       tally_at(tally, 0.5), tally_at(tally, 0.99),
			       tally_at(tally, 0.9999), tally->max);
		}
	}
	memset(bounds->seen, 0, sizeof(bounds->seen));
	fflush(stdout);
}

/* Pages in use. */
struct memory {
	u64 heap;
	u64 slots;
	u64 index;
	u32 live;
};

static struct memory memory_of(const struct bounds *bounds)
{
	return (struct memory) {
		.heap = subject_heap_bytes(&bounds->subject),
		.slots = subject_slots_bytes(&bounds->subject),
		.index = subject_index_bytes(&bounds->subject),
		.live = bounds->nr,
	};
}

static double bytes_each(const struct memory *memory)
{
	u64 bytes = memory->heap + memory->slots + memory->index;

	return memory->live ? (double)bytes / memory->live : 0;
}

/* Keeps the greatest cost a timer. */
static void memory_most(const struct bounds *bounds, struct memory *most)
{
	struct memory now = memory_of(bounds);

	if (bytes_each(&now) > bytes_each(most))
		*most = now;
}

static void report_memory_after(const struct bounds *bounds, u32 nr, u32 pairs,
				const char *state, struct memory memory)
{
	report_begin(bounds, nr, "memory");
	if (pairs)
		printf(",\"pairs\":%u", pairs);
	printf(",\"state\":\"%s\",\"live\":%u,\"bytes\":%.2f,"
	       "\"heap_pages\":%llu,\"slots_pages\":%llu,"
	       "\"index_pages\":%llu}\n", state, memory.live,
	       bytes_each(&memory), memory.heap / CORE_PAGE_SIZE,
	       memory.slots / CORE_PAGE_SIZE, memory.index / CORE_PAGE_SIZE);
	fflush(stdout);
}

static void report_memory(const struct bounds *bounds, u32 nr,
			  const char *state, struct memory memory)
{
	report_memory_after(bounds, nr, 0, state, memory);
}

/* ------------------------------------------------------------------------
 * A queue's life
 */

/* Does @op @nr times: @singles of them alone, the others in batches. Returns
 * when no timer is left for it.
 */
static void spread(struct bounds *bounds, enum op op, u32 nr,
		   struct memory *most)
{
	u32 between = measure_all ? 0 : nr / singles, count;

	if (between > BATCH)
		between = BATCH;
	while (nr && (op == OP_ARM || bounds->nr)) {
		bounds_do(bounds, op, true);
		nr--;
		count = between < nr ? between : nr;
		if (count && (op == OP_ARM || bounds->nr >= count)) {
			bounds_batch(bounds, op, count);
			nr -= count;
		}
		if (most)
			memory_most(bounds, most);
	}
}

static void fill(struct bounds *bounds, u32 nr)
{
	struct memory growing = { 0 };

	spread(bounds, OP_ARM, nr / 2 - bounds->nr, NULL);
	spread(bounds, OP_ARM, nr - bounds->nr, &growing);
	report_seen(bounds, nr, "fill");
	report_memory(bounds, nr, "armed", memory_of(bounds));
	report_memory(bounds, nr, "while filled, second half", growing);
}

static void hold(struct bounds *bounds, u32 nr)
{
	u32 i, before;

	for (i = 0; i < singles; i++) {
		before = bounds->nr;
		bounds_do(bounds, OP_NOTHING, true);
		while (bounds->nr == before)
			bounds_do(bounds, OP_DELIVER, true);
		bounds_do(bounds, OP_SETTLE, true);
		bounds_do(bounds, OP_ARM, true);
		bounds_do(bounds, OP_LATER, true);
		bounds_do(bounds, OP_EARLIER, true);
		bounds_do(bounds, OP_CANCEL, true);
		bounds_do(bounds, OP_ARM, true);
	}
	report_seen(bounds, nr, "hold");
}

static void mix(struct bounds *bounds, u32 nr)
{
	struct memory most = { 0 };
	u32 left = nr;

	for (; left >= 4 * BATCH; left -= 4 * BATCH) {
		bounds_batch(bounds, OP_LATER, BATCH);
		bounds_batch(bounds, OP_EARLIER, BATCH);
		bounds_pairs(bounds, 2 * BATCH / 2);
		bounds_pairs(bounds, 2 * BATCH / 2);
		memory_most(bounds, &most);
	}
	report_memory(bounds, nr, "refreshed and cancelled", memory_of(bounds));
	report_memory(bounds, nr, "meanwhile at most", most);
}

static void storm(struct bounds *bounds, u32 nr)
{
	struct memory most = { 0 };
	u32 left = nr;

	for (; left >= BATCH; left -= BATCH) {
		bounds_batch(bounds, OP_EARLIER, BATCH);
		bounds_batch(bounds, OP_LATER, BATCH);
		memory_most(bounds, &most);
	}
	report_memory(bounds, nr, "after a storm of refreshes",
		      memory_of(bounds));
	report_memory(bounds, nr, "in the storm at most", most);
}

static void drain(struct bounds *bounds, u32 nr)
{
	if (nr > (bounds->subject.keyed ? DRAIN_MAX / 10 : DRAIN_MAX)) {
		spread(bounds, OP_DELIVER, DRAIN_SOME, NULL);
		report_seen(bounds, nr, "drain");
		return;
	}
	spread(bounds, OP_DELIVER, bounds->nr, NULL);
	report_seen(bounds, nr, "drain");
	report_memory(bounds, nr, "drained", memory_of(bounds));
	while (bounds->nr < nr)
		bounds_batch(bounds, OP_ARM, nr - bounds->nr < BATCH ?
			     nr - bounds->nr : BATCH);
}

static void cancel(struct bounds *bounds, u32 nr)
{
	spread(bounds, OP_CANCEL, bounds->nr - nr / 100, NULL);
	report_seen(bounds, nr, "cancel 99 %");
	report_memory(bounds, nr, "99 % cancelled", memory_of(bounds));
	while (bounds->nr)
		bounds_batch(bounds, OP_DELIVER, BATCH);
	report_memory(bounds, nr, "and the rest drained", memory_of(bounds));
}

/* @memory: for the pages only. */
static const struct phase {
	const char *name;
	void (*work)(struct bounds *bounds, u32 nr);
	bool memory;
} phases[] = {
	{ "fill", fill, false },
	{ "hold", hold, false },
	{ "mix", mix, true },
	{ "storm", storm, true },
	{ "drain", drain, false },
	{ "cancel", cancel, false },
	{ NULL, NULL, false },
};

static void live(const struct bheap_layout *layout, bool keyed, u32 nr)
{
	static struct bounds bounds;
	u32 i;

	bounds_init(&bounds, layout, keyed, nr);
	for (i = 0; phases[i].name; i++) {
		if (phases[i].memory && (measure_all || nr > STORM_MAX))
			continue;
		progress(&bounds, nr, phases[i].name);
		phases[i].work(&bounds, nr);
	}
	bounds_deinit(&bounds);
}

/* Cancels and arms timers in pairs; the number stays the same. The maximum
 * counts from one report to the next.
 */
static void pairs(const struct bheap_layout *layout, bool keyed)
{
	static struct bounds bounds;
	struct memory most = { 0 };
	u32 done = 0, next = PAIRS_FEW, many = keyed ? pairs_many / 10 :
						       pairs_many;

	bounds_init(&bounds, layout, keyed, PAIRS_LIVE);
	progress(&bounds, PAIRS_LIVE, "arms and cancels");
	while (bounds.nr < PAIRS_LIVE)
		bounds_batch(&bounds, OP_ARM, PAIRS_LIVE - bounds.nr < BATCH ?
			     PAIRS_LIVE - bounds.nr : BATCH);
	while (done < many) {
		bounds_pairs(&bounds, BATCH);
		done += BATCH / 2;
		memory_most(&bounds, &most);
		if (done < next)
			continue;
		report_memory_after(&bounds, PAIRS_LIVE, next, "now",
				    memory_of(&bounds));
		report_memory_after(&bounds, PAIRS_LIVE, next, "at most", most);
		memset(&most, 0, sizeof(most));
		next = next < many ? many : ~0U;
	}
	bounds_deinit(&bounds);
}

/* ------------------------------------------------------------------------ */

static const struct bheap_layout *const layouts[] = {
	&bheap_subtree, &bheap_sorted, &bheap_radix,
};

/* Returns the most memory a timer needs, including the records kept here. */
static u64 need(bool keyed, u32 nr)
{
	return (u64)nr * (keyed ? 160 : 80);
}

static void run(u32 nr, bool keyed, u64 memory)
{
	u32 i;

	if (need(keyed, nr) > memory) {
		fprintf(stderr, "bounds: no memory for %u timers\n", nr);
		return;
	}
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (!only || !strcmp(only, layouts[i]->name))
			live(layouts[i], keyed, nr);
}

int main(int argc, char **argv)
{
	static bool quick;
	static u32 mib = UINT32_MAX;
	static const struct option_row options[] = {
		{ "quick", .flag = &quick },
		{ "memory", "MIB", .number = &mib },
		{ "layout", "NAME", .text = &only },
		{ 0 }
	};
	int arg = options_parse(argc, argv, options, "[TIMERS...]");
	u32 nr = measure_all ? 1000000 : 10000000, i, keyed;
	u64 memory = (u64)mib << 20;

	if (quick) {
		singles /= 10;
		pairs_many /= 10;
		nr /= 10;
	}
	if (measure_all)
		singles /= 4;
	if (arg < argc) {
		for (; arg < argc; arg++) {
			nr = options_number(options, "[TIMERS...]", argv[arg],
					    1000, 500000000);
			run(nr, false, memory);
			run(nr, true, memory);
		}
		return 0;
	}
	run(nr, false, memory);
	run(nr, true, memory);
	for (i = 0; i < 2 && !measure_all; i++)
		for (keyed = 0; keyed < 2; keyed++)
			pairs(layouts[i], keyed);
	if (!quick && !measure_all)
		run(100000000, false, memory);
	return 0;
}
