// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of the core alone: batches of records through timers_submit() and
 * timers_deliver(), without daemon, socket or system call. The difference to
 * bench/quick is the path to the daemon and back.
 *
 * Only the calls are timed; making the records is not. Batches are timed by
 * their processor time, because other load on the machine is not the core's.
 * Single calls are timed by the clock, without those that were interrupted for
 * another task. Two layouts of the heap in one run are interleaved, round by
 * round.
 */
#include <getopt.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "bench/mix.h"
#include "bench/subject.h"

#define BATCH		512U
#define ROUNDS		5U
#define ROUND_RECORDS	(BATCH * 512U)
#define DELIVERIES	2000000U
#define SINGLES		1000000U
#define LONG_NS		5000U
#define SPREAD_NS	(3600 * NSEC_PER_SEC)

/* Returns the processor time of this program. */
static uint64_t cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* ------------------------------------------------------------------------
 * A queue full of timers, and the names of all of them
 */

/**
 * struct full - the measured queue
 * @mix: the names of its timers
 * @nr_max: most timers
 */
struct full {
	struct subject subject;
	struct mix mix;
	u32 nr_max;
};

static void full_init(struct full *full, const struct bheap_layout *layout,
		      bool keyed, u32 nr)
{
	memset(full, 0, sizeof(*full));
	full->nr_max = nr + ROUND_RECORDS;
	subject_init(&full->subject, layout, keyed, full->nr_max);
	full->mix.keyed = keyed;
	full->mix.from_ns = 1;
	full->mix.ids = bench_map(sizeof(*full->mix.ids) * full->nr_max);
	full->mix.random = 1;
}

static void full_deinit(struct full *full)
{
	subject_deinit(&full->subject);
	bench_unmap(full->mix.ids, sizeof(*full->mix.ids) * full->nr_max);
}

/* Processes one batch; returns the nanoseconds it took. */
static uint64_t submit(struct full *full, struct expiry_record *records,
		       u32 count)
{
	uint64_t start_ns = cpu_now(), took_ns;

	if (timers_submit(&full->subject.timers, records, count, 0) != count)
		die("a batch was cut short");
	took_ns = cpu_now() - start_ns;
	mix_answers(&full->mix, records, count);
	return took_ns;
}

/* Processes @nr records of one kind; returns nanoseconds a record. */
static double work(struct full *full, mix_make_t *make, u32 nr)
{
	struct expiry_record records[BATCH];
	uint64_t took_ns = 0;
	u32 i, count, done;

	for (done = 0; done < nr; done += count) {
		count = nr - done < BATCH ? nr - done : BATCH;
		for (i = 0; i < count; i++)
			make(&full->mix, &records[i]);
		took_ns += submit(full, records, count);
	}
	return (double)took_ns / nr;
}

/* Delivers @nr expirations; returns nanoseconds each. */
static double deliver(struct full *full, u32 nr)
{
	struct expiry_record records[BATCH];
	uint64_t start_ns = cpu_now();
	u64 last = 0;
	u32 done = 0;
	int i, ret;

	while (done < nr) {
		ret = timers_deliver(&full->subject.timers, records, BATCH,
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
	return (double)(cpu_now() - start_ns) / done;
}

/* Takes the first @count and arms as many, for some time in the hour after. The
 * queue stays as full, and time advances. @now times each.
 */
static void hold(struct full *full, u32 count, uint64_t (*now)(void),
		 uint64_t *deliver_ns, uint64_t *arm_ns)
{
	struct expiry_record records[BATCH];
	uint64_t start_ns = now();
	u64 last;
	u32 i;

	if (timers_deliver(&full->subject.timers, records, count,
			   EXPIRY_NEVER - 1, false) != (int)count)
		die("too few deliveries");
	*deliver_ns = now() - start_ns;
	last = records[count - 1].deadline_ns;
	for (i = 0; i < count; i++)
		records[i] = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.id = full->mix.keyed ? records[i].id : 0,
			.deadline_ns = last + bench_below(&full->mix.random,
							  SPREAD_NS),
		};
	start_ns = now();
	if (timers_submit(&full->subject.timers, records, count, 0) != count ||
	    records[0].status)
		die("a batch was cut short");
	*arm_ns = now() - start_ns;
}

/* ------------------------------------------------------------------------
 * Reporting
 */

static bool json;

/* Prints the beginning of every line. */
static void report_begin(const struct full *full, u32 nr, const char *what)
{
	const char *queue = full->mix.keyed ? "keyed" : "plain";

	if (json)
		printf("{\"bench\":\"core\",\"layout\":\"%s\","
		       "\"queue\":\"%s\",\"timers\":%u,\"work\":\"%s\"",
		       full->subject.layout->name, queue, nr, what);
	else
		printf("%-7s %-5s %9u  %-7s ", full->subject.layout->name,
		       queue, nr, what);
}

static void report(const struct full *full, u32 nr, const char *what,
		   struct bench_figure figure)
{
	report_begin(full, nr, what);
	if (json)
		printf(",\"ns\":%.1f,\"ns_min\":%.1f,\"ns_max\":%.1f}\n",
		       figure.median, figure.min, figure.max);
	else
		printf("%7.0f ns  (%.0f to %.0f)  %6.2f M/s\n",
		       figure.median, figure.min, figure.max,
		       1000 / figure.median);
	fflush(stdout);
}

static int compare_ns(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Reports single calls, the clock included. Sorts @ns. */
static void report_worst(const struct full *full, u32 nr, const char *what,
			 uint32_t *ns)
{
	uint32_t p50, p99, p9999, max;

	qsort(ns, SINGLES, sizeof(*ns), compare_ns);
	p50 = ns[SINGLES / 2];
	p99 = ns[SINGLES - SINGLES / 100];
	p9999 = ns[SINGLES - SINGLES / 10000];
	max = ns[SINGLES - 1];
	report_begin(full, nr, what);
	if (json)
		printf(",\"p50\":%u,\"p99\":%u,\"p9999\":%u,\"max\":%u}\n",
		       p50, p99, p9999, max);
	else
		printf("%7u ns  p99 %u  p99.99 %u  max %u, one a call\n", p50,
		       p99, p9999, max);
	fflush(stdout);
}

static void report_pages(const struct full *full, u32 nr)
{
	const struct subject *subject = &full->subject;
	double each = 1.0 / full->mix.nr;

	report_begin(full, nr, "pages");
	if (json)
		printf(",\"bytes\":%.1f}\n", subject_bytes(subject) * each);
	else
		printf("%7.1f bytes a timer  (heap %.1f, slots %.1f, "
		       "index %.1f)\n", subject_bytes(subject) * each,
		       subject_heap_bytes(subject) * each,
		       subject_slots_bytes(subject) * each,
		       subject_index_bytes(subject) * each);
	fflush(stdout);
}

/* ------------------------------------------------------------------------
 * The run
 */

static const struct bheap_layout *layouts[2];
static u32 nr_layouts;

enum phase { REFRESH, CANCEL, ARM, MIX, HOLD, NR_PHASES };

static const char *const phase_names[NR_PHASES] = {
	"refresh", "cancel", "arm", "mix", "hold",
};

/* Runs requests; every kind leaves the number of timers unchanged. */
static void requests(struct full *full, double ns[][ROUNDS], u32 i, u32 nr)
{
	u32 count = nr / 2 < ROUND_RECORDS ? nr / 2 : ROUND_RECORDS;

	ns[REFRESH][i] = work(full, mix_refresh, count);
	ns[CANCEL][i] = work(full, mix_cancel, count);
	ns[ARM][i] = work(full, mix_arm, count);
	ns[MIX][i] = work(full, mix_any, count);
	if (full->mix.nr > nr)
		work(full, mix_cancel, full->mix.nr - nr);
}

static void holds(struct full *full, double ns[][ROUNDS], u32 i)
{
	uint64_t took_ns = 0, deliver_ns, arm_ns;
	u32 done;

	for (done = 0; done < ROUND_RECORDS; done += BATCH) {
		hold(full, BATCH, cpu_now, &deliver_ns, &arm_ns);
		took_ns += deliver_ns + arm_ns;
	}
	ns[HOLD][i] = (double)took_ns / ROUND_RECORDS;
}

/* Returns how often this program was interrupted for another task. */
static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void singles(struct full *full, u32 nr)
{
	uint64_t deliver, arm;
	long before = switches(), after;
	uint32_t *deliver_ns = bench_map(SINGLES * sizeof(*deliver_ns));
	uint32_t *arm_ns = bench_map(SINGLES * sizeof(*arm_ns));
	u32 i;

	/* Populate the memory before the clock runs. */
	memset(deliver_ns, 1, SINGLES * sizeof(*deliver_ns));
	memset(arm_ns, 1, SINGLES * sizeof(*arm_ns));
	for (i = 0; i < SINGLES; ) {
		hold(full, 1, bench_now, &deliver, &arm);
		if (deliver + arm > LONG_NS) {
			after = switches();
			if (after != before) {
				before = after;
				continue;
			}
		}
		deliver_ns[i] = deliver;
		arm_ns[i++] = arm;
	}
	report_worst(full, nr, "arm", arm_ns);
	report_worst(full, nr, "deliver", deliver_ns);
	bench_unmap(deliver_ns, SINGLES * sizeof(*deliver_ns));
	bench_unmap(arm_ns, SINGLES * sizeof(*arm_ns));
}

static void run(bool keyed, u32 nr)
{
	double ns[2][NR_PHASES][ROUNDS], once;
	struct full fulls[2];
	u32 i, l, phase;

	for (l = 0; l < nr_layouts; l++) {
		full_init(&fulls[l], layouts[l], keyed, nr);
		once = work(&fulls[l], mix_arm, nr);
		report(&fulls[l], nr, "fill", bench_median(&once, 1));
		report_pages(&fulls[l], nr);
	}
	for (i = 0; i < ROUNDS; i++)
		for (l = 0; l < nr_layouts; l++)
			requests(&fulls[l], ns[l], i, nr);
	for (i = 0; i < ROUNDS; i++)
		for (l = 0; l < nr_layouts; l++)
			holds(&fulls[l], ns[l], i);
	for (phase = 0; phase < NR_PHASES; phase++)
		for (l = 0; l < nr_layouts; l++)
			report(&fulls[l], nr, phase_names[phase],
			       bench_median(ns[l][phase], ROUNDS));
	for (l = 0; l < nr_layouts; l++)
		singles(&fulls[l], nr);
	for (l = 0; l < nr_layouts; l++) {
		once = deliver(&fulls[l], fulls[l].mix.nr < DELIVERIES ?
			       fulls[l].mix.nr : DELIVERIES);
		report(&fulls[l], nr, "deliver", bench_median(&once, 1));
		full_deinit(&fulls[l]);
	}
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
		"usage: core [--json] [--plain | --keyed]\n"
		"            [--layout subtree | sorted | both] [TIMERS...]\n");
	exit(status);
}

static bool layout_of(const char *name)
{
	bool both = !strcmp(name, "both");

	layouts[0] = subject_layout(both ? "subtree" : name);
	layouts[1] = subject_layout("sorted");
	nr_layouts = both ? 2 : 1;
	return layouts[0];
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "plain", no_argument, NULL, 'p' },
		{ "keyed", no_argument, NULL, 'k' },
		{ "layout", required_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	bool plain = true, keyed = true;
	int c, nr;

	layout_of("sorted");
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
		case 'l':
			if (!layout_of(optarg))
				usage(2);
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
