// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Layouts of the heap where memory is short. A queue is filled, and its memory
 * cgroup limited to a share of its size. Timers expire and are armed again
 * while the rest is in compressed swap. The pages that come back from there are
 * counted.
 *
 *	pressure [--timers N] [--ops N] [--rounds N]
 *
 * In a machine of its own, as root: swap and its settings are the machine's. A
 * line of JSON for each layout, share and round; layouts are interleaved.
 */
#include "bench/bench.h"
#include "bench/options.h"
#include "bench/kernel/bheap_binary.h"
#include "bench/kernel/queue.h"
#include "tests/device/pressure.h"

#define SWAP_MIB	1024U
#define READ_AHEAD	"/proc/sys/vm/page-cluster"
#define HORIZON_NS	1000000000ULL

static const struct {
	const char *name;
	unsigned long number;
} layouts[] = {
	{ "binary", EXPIRY_LAYOUT_BINARY },
	{ "subtree", EXPIRY_LAYOUT_SUBTREE },
	{ "sorted", EXPIRY_LAYOUT_SORTED },
	{ "radix", EXPIRY_LAYOUT_RADIX },
};

#define LAYOUTS	(sizeof(layouts) / sizeof(layouts[0]))

/* Percent of the queue that fit into memory. */
static const unsigned int shares[] = { 75, 50, 25 };

#define SHARES	(sizeof(shares) / sizeof(shares[0]))

static uint32_t timers = 1000000, ops = 102400;
static uint32_t rounds = 3;

static long long vmstat(const char *name)
{
	return read_number("/proc/vmstat", name);
}

static void limit(unsigned long long bytes)
{
	if (group_limit("memory.max", bytes))
		die("memory.max: %m");
}

static void measure(unsigned int layout, unsigned int share, bool in_order,
		    unsigned int round)
{
	struct hold hold = {
		.random = 1 + round,
		.horizon_ns = HORIZON_NS,
		.in_order = in_order,
	};
	uint64_t read_ns = 0, arm_ns = 0;
	struct expiry_stat stat;
	long long in, out, before, bytes;

	if (group_write("memory.max", "max"))
		die("memory.max: %m");
	before = group_read("memory.current", "");
	hold.fd = queue_new(CLOCK_REALTIME, layouts[layout].number);
	hold_fill(&hold, timers);
	bytes = group_read("memory.current", "") - before;
	limit(before + bytes * share / 100);
	hold_run(&hold, ops / 2, &read_ns, &arm_ns);

	read_ns = 0;
	arm_ns = 0;
	in = vmstat("pswpin ");
	out = vmstat("pswpout ");
	hold_run(&hold, ops, &read_ns, &arm_ns);
	in = vmstat("pswpin ") - in;
	out = vmstat("pswpout ") - out;
	queue_stat(hold.fd, &stat);
	if (stat.armed != timers)
		die("%llu timers armed", (unsigned long long)stat.armed);
	close(hold.fd);

	printf("{\"bench\":\"pressure\",\"layout\":\"%s\",\"deadlines\":\"%s\","
	       "\"timers\":%u,\"share\":%u,\"round\":%u,\"ops\":%u,"
	       "\"queue_kib\":%lld,\"resident_kib\":%llu,\"heap_kib\":%llu,"
	       "\"in\":%.4f,\"out\":%.4f,\"ns\":%.1f,\"read_ns\":%.1f,"
	       "\"arm_ns\":%.1f}\n",
	       layouts[layout].name, in_order ? "in order" : "random", timers,
	       share, round, ops, bytes >> 10,
	       (unsigned long long)stat.pages_resident * pressure_page() >> 10,
	       (unsigned long long)stat.pages_heap * pressure_page() >> 10,
	       (double)in / ops, (double)out / ops,
	       (double)(read_ns + arm_ns) / ops, (double)read_ns / ops,
	       (double)arm_ns / ops);
	fflush(stdout);
}

static void measure_all(void)
{
	unsigned int round, share, layout, in_order;

	for (round = 0; round < rounds; round++)
		for (in_order = 0; in_order < 2; in_order++)
			for (share = 0; share < SHARES; share++)
				for (layout = 0; layout < LAYOUTS; layout++)
					measure(layout, shares[share],
						in_order, round);
}

int main(int argc, char **argv)
{
	static const struct option_row options[] = {
		{ "timers", "N", .number = &timers },
		{ "ops", "N", .number = &ops },
		{ "rounds", "N", .number = &rounds },
		{ 0 }
	};
	const char *why;

	options_parse(argc, argv, options, "");
	why = group_make();
	if (!why)
		why = swap_begin(SWAP_MIB);
	if (why)
		die("%s", why);
	/* Count only the requested pages. */
	if (write_text(READ_AHEAD, "0"))
		die(READ_AHEAD ": %m");
	if (group_enter())
		die("cannot enter the control group");
	report_machine("pressure");
	measure_all();
	if (group_read("memory.events", "oom_kill "))
		die("somebody was killed for memory");
	group_leave();
	swap_end();
	group_remove();
	return 0;
}
