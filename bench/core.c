// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the core alone costs: batches of records through timers_submit() and
 * timers_deliver(), without daemon, socket or system call. What bench/quick
 * measures above this is the way to the daemon and back.
 *
 * Only the calls are timed; making the records is not.
 */
#include <getopt.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "bench/mix.h"
#include "core/timers.h"

#define BATCH		512U
#define ROUNDS		5U
#define ROUND_RECORDS	(BATCH * 512U)
#define DELIVERIES	2000000U

/* ------------------------------------------------------------------------
 * An owner of pages: one mapping a run, filled in where it is touched.
 */

struct run {
	struct core_pages pages;
	unsigned char *memory;
};

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory");
	return memory;
}

static void *page_in(struct core_pages *pages, u32 index)
{
	struct run *run = (struct run *)pages;
	void ***tablep = &pages->dir[index >> CORE_DIR_SHIFT];
	void *page = run->memory + (size_t)index * CORE_PAGE_SIZE;

	if (!*tablep)
		*tablep = map(CORE_DIR_SIZE * sizeof(**tablep));
	(*tablep)[index & (CORE_DIR_SIZE - 1)] = page;
	return page;
}

static u32 run_tables(const struct run *run)
{
	return (run->pages.nr_max >> CORE_DIR_SHIFT) + 1;
}

static void run_init(struct run *run, u32 nr_max)
{
	run->pages.nr_max = nr_max;
	run->pages.page_in = page_in;
	if (!nr_max)
		return;
	run->memory = map((size_t)nr_max * CORE_PAGE_SIZE);
	/* As the embedded engine has it. */
	madvise(run->memory, (size_t)nr_max * CORE_PAGE_SIZE, MADV_HUGEPAGE);
	run->pages.dir = map(run_tables(run) * sizeof(*run->pages.dir));
}

static void run_deinit(struct run *run)
{
	u32 i;

	if (!run->memory)
		return;
	for (i = 0; i < run_tables(run); i++) {
		if (run->pages.dir[i])
			munmap(run->pages.dir[i],
			       CORE_DIR_SIZE * sizeof(**run->pages.dir));
	}
	munmap(run->pages.dir, run_tables(run) * sizeof(*run->pages.dir));
	munmap(run->memory, (size_t)run->pages.nr_max * CORE_PAGE_SIZE);
}

/* ------------------------------------------------------------------------
 * A queue full of timers, and the names of all of them
 */

/**
 * struct subject - what is measured
 * @mix: the names of its timers
 * @nr_max: room for so many
 */
struct subject {
	struct timers timers;
	struct run runs[TIMERS_PAGES_NR];
	struct mix mix;
	u32 nr_max;
};

static void subject_init(struct subject *subject, bool keyed, u32 nr)
{
	struct timers_config config = {
		.mode = keyed ? EXPIRY_MODE_KEYED : 0,
		.limit = nr + ROUND_RECORDS,
		.seed = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 },
		.layout = &bheap_subtree,
	};
	struct core_pages *pages[TIMERS_PAGES_NR];
	u32 i;

	memset(subject, 0, sizeof(*subject));
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		run_init(&subject->runs[i], timers_pages_max(&config, i));
		pages[i] = &subject->runs[i].pages;
	}
	if (timers_setup(&subject->timers, &config, pages))
		die("timers_setup() failed");
	subject->nr_max = config.limit;
	subject->mix.keyed = keyed;
	subject->mix.from_ns = 1;
	subject->mix.ids = map(sizeof(*subject->mix.ids) * subject->nr_max);
	subject->mix.random = 1;
}

static void subject_deinit(struct subject *subject)
{
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		run_deinit(&subject->runs[i]);
	munmap(subject->mix.ids, sizeof(*subject->mix.ids) * subject->nr_max);
}

/* Process one batch; the nanoseconds it took. */
static uint64_t submit(struct subject *subject, struct expiry_record *records,
		       u32 count)
{
	uint64_t start_ns = bench_now(), took_ns;

	if (timers_submit(&subject->timers, records, count, 0) != count)
		die("a batch was cut short");
	took_ns = bench_now() - start_ns;
	mix_answers(&subject->mix, records, count);
	return took_ns;
}

/* Process @nr records of one kind; nanoseconds a record. */
static double work(struct subject *subject, mix_make_t *make, u32 nr)
{
	struct expiry_record records[BATCH];
	uint64_t took_ns = 0;
	u32 i, count, done;

	for (done = 0; done < nr; done += count) {
		count = nr - done < BATCH ? nr - done : BATCH;
		for (i = 0; i < count; i++)
			make(&subject->mix, &records[i]);
		took_ns += submit(subject, records, count);
	}
	return (double)took_ns / nr;
}

/* Deliver @nr expirations; nanoseconds each. */
static double deliver(struct subject *subject, u32 nr)
{
	struct expiry_record records[BATCH];
	uint64_t start_ns = bench_now();
	u64 last = 0;
	u32 done = 0;
	int i, ret;

	while (done < nr) {
		ret = timers_deliver(&subject->timers, records, BATCH,
				     EXPIRY_NEVER - 1, false);
		if (ret < 0)
			die("timers_deliver() failed: %d", ret);
		for (i = 0; i < ret; i++) {
			if (records[i].deadline_ns < last)
				die("out of order");
			last = records[i].deadline_ns;
		}
		done += ret;
	}
	return (double)(bench_now() - start_ns) / done;
}

/* ------------------------------------------------------------------------
 * Reporting
 */

static bool json;

static void report(const struct subject *subject, u32 nr, const char *what,
		   struct bench_figure figure)
{
	const char *queue = subject->mix.keyed ? "keyed" : "plain";

	if (json)
		printf("{\"bench\":\"core\",\"queue\":\"%s\",\"timers\":%u,"
		       "\"work\":\"%s\",\"ns\":%.1f,\"ns_min\":%.1f,"
		       "\"ns_max\":%.1f}\n",
		       queue, nr, what, figure.median, figure.min, figure.max);
	else
		printf("%-6s %9u  %-8s %7.0f ns  (%.0f to %.0f)  %6.2f M/s\n",
		       queue, nr, what, figure.median, figure.min, figure.max,
		       1000 / figure.median);
	fflush(stdout);
}

static void report_pages(const struct subject *subject, u32 nr)
{
	double bytes[TIMERS_PAGES_NR], sum = 0;
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		bytes[i] = (double)subject->runs[i].pages.nr * CORE_PAGE_SIZE /
			   subject->mix.nr;
		sum += bytes[i];
	}
	if (json)
		printf("{\"bench\":\"core\",\"queue\":\"%s\",\"timers\":%u,"
		       "\"work\":\"pages\",\"bytes\":%.1f}\n",
		       subject->mix.keyed ? "keyed" : "plain", nr, sum);
	else
		printf("%-6s %9u  pages    %7.1f bytes a timer"
		       "  (heap %.1f, slots %.1f, index %.1f)\n",
		       subject->mix.keyed ? "keyed" : "plain", nr, sum,
		       bytes[TIMERS_PAGES_HEAP], bytes[TIMERS_PAGES_SLOTS],
		       bytes[TIMERS_PAGES_INDEX_0] +
		       bytes[TIMERS_PAGES_INDEX_1]);
	fflush(stdout);
}

static void run(bool keyed, u32 nr)
{
	double refresh[ROUNDS], cancel[ROUNDS], arm[ROUNDS], mix[ROUNDS];
	struct subject subject;
	u32 i, first;
	double once;

	subject_init(&subject, keyed, nr);
	once = work(&subject, mix_arm, nr);
	report(&subject, nr, "fill", bench_median(&once, 1));
	report_pages(&subject, nr);

	/* Every kind leaves as many timers as it found. */
	for (i = 0; i < ROUNDS; i++) {
		refresh[i] = work(&subject, mix_refresh, ROUND_RECORDS);
		cancel[i] = work(&subject, mix_cancel, ROUND_RECORDS);
		arm[i] = work(&subject, mix_arm, ROUND_RECORDS);
		mix[i] = work(&subject, mix_any, ROUND_RECORDS);
		if (subject.mix.nr > nr)
			work(&subject, mix_cancel, subject.mix.nr - nr);
	}
	report(&subject, nr, "refresh", bench_median(refresh, ROUNDS));
	report(&subject, nr, "cancel", bench_median(cancel, ROUNDS));
	report(&subject, nr, "arm", bench_median(arm, ROUNDS));
	report(&subject, nr, "mix", bench_median(mix, ROUNDS));

	first = subject.mix.nr < DELIVERIES ? subject.mix.nr : DELIVERIES;
	once = deliver(&subject, first);
	report(&subject, nr, "deliver", bench_median(&once, 1));
	subject_deinit(&subject);
}

static void run_kinds(bool plain, bool keyed, u32 nr)
{
	if (plain)
		run(false, nr);
	if (keyed)
		run(true, nr);
}

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: core [--json] [--plain | --keyed] [TIMERS...]\n");
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "plain", no_argument, NULL, 'p' },
		{ "keyed", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	bool plain = true, keyed = true;
	int c, nr;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'p':
			keyed = false;
			break;
		case 'k':
			plain = false;
			break;
		default:
			usage(c == 'h' ? 0 : 2);
		}
	}
	if (optind == argc) {
		run_kinds(plain, keyed, 1000000);
		run_kinds(plain, keyed, 10000000);
	}
	for (; optind < argc; optind++) {
		nr = atoi(argv[optind]);
		if (nr < 1000 || nr > 100000000)
			usage(2);
		run_kinds(plain, keyed, nr);
	}
	return 0;
}
