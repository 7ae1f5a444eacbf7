// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl stats: what a queue did, and how late its deliveries were.
 */
#include <inttypes.h>

#include "ctl.h"

#define BAR	40	/* characters of the longest bar */

static const struct {
	const char *name;
	const char *what;
	size_t offset;
} counters[] = {
#define COUNTER(member, text) \
	{ #member, text, offsetof(struct expiry_stat, member) }
	COUNTER(armed, "timers armed"),
	COUNTER(unacked, "delivered, not acknowledged"),
	COUNTER(limit, "most timers"),
	COUNTER(arms, "arm requests"),
	COUNTER(refreshes, "refresh requests"),
	COUNTER(cancels, "cancel requests"),
	COUNTER(acks, "acknowledgements"),
	COUNTER(delivered, "expirations delivered"),
	COUNTER(redelivered, "of them again"),
	COUNTER(refused, "requests refused"),
	COUNTER(refused_limit, "of them for the limit"),
	COUNTER(clock_sets, "steps of the clock"),
	COUNTER(nodes, "heap nodes, live and stale"),
	COUNTER(pages_heap, "pages of the heap"),
	COUNTER(pages_slots, "pages of the timers"),
	COUNTER(pages_index, "pages of the index"),
	COUNTER(pages_resident, "of these pages in memory"),
#undef COUNTER
};

static uint64_t counter(const struct expiry_stat *stat, size_t i)
{
	return *(const uint64_t *)((const char *)stat + counters[i].offset);
}

/* The lateness that @share of all deliveries stayed below; 0 if there are none.
 * Its bucket's upper end, or the maximum where that is less.
 */
static uint64_t lateness_below(const struct expiry_stat *stat, uint64_t total,
			       double share)
{
	uint64_t end, seen = 0;
	int i;

	for (i = 0; total && i < EXPIRY_LATENESS_BUCKETS - 1; i++) {
		seen += stat->lateness[i];
		if (seen >= total * share) {
			end = 1ULL << i;
			return end < stat->lateness_max_ns ?
			       end : stat->lateness_max_ns;
		}
	}
	return total ? stat->lateness_max_ns : 0;
}

static uint64_t lateness_total(const struct expiry_stat *stat)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		total += stat->lateness[i];
	return total;
}

static void print_histogram(const struct ctl *ctl,
			    const struct expiry_stat *stat)
{
	uint64_t total = lateness_total(stat), most = 0, nr;
	char p50[TIME_TEXT], p99[TIME_TEXT], max[TIME_TEXT];
	int first = -1, last = -1, i, bar;

	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++) {
		if (!stat->lateness[i])
			continue;
		if (first < 0)
			first = i;
		last = i;
		if (stat->lateness[i] > most)
			most = stat->lateness[i];
	}
	if (first < 0) {
		puts("lateness: nothing was delivered yet");
		return;
	}
	printf("%slateness%s: half below %s, 99 %% below %s, the worst %s\n",
	       bold(ctl), plain(ctl),
	       span_text(p50, lateness_below(stat, total, 0.50)),
	       span_text(p99, lateness_below(stat, total, 0.99)),
	       span_text(max, stat->lateness_max_ns));
	for (i = first; i <= last; i++) {
		nr = stat->lateness[i];
		/* What is there shows, however little of the whole it is. */
		bar = nr ? 1 + (int)((BAR - 1) * ((double)nr / most)) : 0;
		if (i == EXPIRY_LATENESS_BUCKETS - 1)
			printf("  %-10s", "more");
		else
			printf("  < %-8s", span_text(max, 1ULL << i));
		printf(" %12" PRIu64 " %5.1f%% ", nr, 100.0 * nr / total);
		while (bar--)
			putchar('#');
		putchar('\n');
	}
}

static void print_json(const struct expiry_stat *stat)
{
	uint64_t total = lateness_total(stat);
	size_t i;

	printf("{\"clock\": \"%s\", \"keyed\": %s, \"ack\": %s",
	       clock_name(stat->clock_id),
	       stat->mode & EXPIRY_MODE_KEYED ? "true" : "false",
	       stat->mode & EXPIRY_MODE_ACK ? "true" : "false");
	for (i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		printf(", \"%s\": %" PRIu64, counters[i].name,
		       counter(stat, i));
	printf(", \"lateness_p50_ns\": %" PRIu64
	       ", \"lateness_p99_ns\": %" PRIu64
	       ", \"lateness_max_ns\": %" PRIu64 ", \"lateness\": [",
	       lateness_below(stat, total, 0.50),
	       lateness_below(stat, total, 0.99),
	       (uint64_t)stat->lateness_max_ns);
	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		printf("%s%" PRIu64, i ? ", " : "", (uint64_t)stat->lateness[i]);
	puts("]}");
}

static int run_stats(struct ctl *ctl, char **args)
{
	struct expiry_stat stat;
	size_t i;
	int ret;

	(void)args;
	if (ctl->device && ctl->queue)
		return ctl_usage("stats: a device's queues have no names; leave --queue out");
	ret = ctl_open(ctl, ctl_queue(ctl), 0, 0);
	if (ret)
		return ret;
	ret = expiry_stat(ctl->handle, &stat, NULL, 0);
	if (ret)
		return ctl_refused(ctl_queue(ctl), ret, EXPIRY_OP_STAT);
	if (ctl->json) {
		print_json(&stat);
		return 0;
	}
	for (i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		printf("%14" PRIu64 "  %s\n", counter(&stat, i),
		       counters[i].what);
	print_histogram(ctl, &stat);
	return 0;
}

const struct command cmd_stats = {
	.name = "stats",
	.args = "",
	.summary = "a queue's counters, and how late its deliveries were",
	.examples =
		"  expiryctl stats --queue leases\n"
		"  expiryctl stats --json | jq .lateness_p99_ns\n",
	.device = true,
	.run = run_stats,
};
