// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl stats: print a queue's counters and lateness, and the daemon's
 * histograms.
 */
#include <inttypes.h>
#include <stddef.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/histogram.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/output/span.h"
#include "tools/output/time-text.h"
#include "tools/refusals.h"
#include "tools/session.h"

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
	COUNTER(redelivered, "of these again"),
	COUNTER(past, "armed in the past"),
	COUNTER(held, "held without a consumer or credit"),
	COUNTER(refused, "requests refused"),
	COUNTER(refused_limit, "of these for the limit"),
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

/* The histograms of the daemon. */
static const struct {
	const char *name;
	const char *what;
	size_t offset;
	bool time;
} histograms[] = {
#define HISTOGRAM(member, text, time) \
	{ #member, text, offsetof(struct expiry_server_stat, member), time }
	HISTOGRAM(turn_ns, "turns of the daemon", true),
	HISTOGRAM(batch, "requests in one batch", false),
	HISTOGRAM(request_ns, "time of requests in the daemon", true),
	HISTOGRAM(commit_ns, "commits of the journal", true),
#undef HISTOGRAM
};

static const __u64 *histogram(const struct expiry_server_stat *server, size_t i)
{
	return (const void *)((const char *)server + histograms[i].offset);
}

/* Returns the upper bound of a percentile, or the maximum where it is lower. */
static uint64_t lateness_below(const struct expiry_stat *stat, double share)
{
	uint64_t end = histogram_below(stat->lateness, share);

	return end < stat->lateness_max_ns ? end : stat->lateness_max_ns;
}

static const char *number_text(char *text, uint64_t value)
{
	snprintf(text, TIME_TEXT, "%" PRIu64, value);
	return text;
}

static const char *below_text(char *text, const __u64 *counts, double share,
			      const char *(*value_text)(char *, uint64_t))
{
	uint64_t end = histogram_below(counts, share);

	return end == UINT64_MAX ? "an unknown bound" :
	       value_text(text, end);
}

static void print_lateness(const struct ctl *ctl,
			   const struct expiry_stat *stat)
{
	char p50[TIME_TEXT], p99[TIME_TEXT], max[TIME_TEXT];

	if (!histogram_total(stat->lateness)) {
		puts("lateness: none measured yet");
		return;
	}
	printf("%slateness%s: half below %s, 99 %% below %s, the worst %s\n",
	       bold(ctl), plain(ctl),
	       span_text(p50, lateness_below(stat, 0.50)),
	       span_text(p99, lateness_below(stat, 0.99)),
	       span_text(max, stat->lateness_max_ns));
	histogram_print(stat->lateness, span_text);
}

static void print_server(const struct ctl *ctl,
			 const struct expiry_server_stat *server)
{
	const char *(*text)(char *text, uint64_t value);
	char p50[TIME_TEXT], p99[TIME_TEXT];
	const __u64 *counts;
	size_t i;

	for (i = 0; i < sizeof(histograms) / sizeof(*histograms); i++) {
		counts = histogram(server, i);
		text = histograms[i].time ? span_text : number_text;
		printf("%s%s%s: half below %s, 99 %% below %s\n", bold(ctl),
		       histograms[i].what, plain(ctl),
		       below_text(p50, counts, 0.50, text),
		       below_text(p99, counts, 0.99, text));
		histogram_print(counts, text);
	}
}

static void print_json(const struct ctl *ctl, const struct expiry_stat *stat,
		       const struct expiry_server_stat *server)
{
	struct json json;
	size_t i;

	json_begin(&json);
	json_text(&json, "clock", clock_name(stat->clock_id));
	json_bool(&json, "keyed", stat->mode & EXPIRY_MODE_KEYED);
	json_bool(&json, "ack", stat->mode & EXPIRY_MODE_ACK);
	for (i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		json_u64(&json, counters[i].name, counter(stat, i));
	json_u64(&json, "lateness_p50_ns", lateness_below(stat, 0.50));
	json_u64(&json, "lateness_p99_ns", lateness_below(stat, 0.99));
	json_u64(&json, "lateness_max_ns", stat->lateness_max_ns);
	json_counts(&json, "lateness", stat->lateness, BUCKETS);
	for (i = 0; i < sizeof(histograms) / sizeof(*histograms) &&
	     !ctl->device; i++)
		json_counts(&json, histograms[i].name, histogram(server, i),
			    BUCKETS);
	json_end(&json);
}

static int run_stats(struct ctl *ctl, char **args)
{
	struct expiry_server_stat server;
	struct expiry_stat stat;
	size_t i;
	int ret;

	(void)args;
	if (ctl->device && ctl->queue)
		return ctl_usage("stats: a device's queues have no names; leave --queue out");
	ret = ctl_open(ctl, ctl_queue(ctl), 0, 0);
	if (ret)
		return ret;
	ret = expiry_stat(ctl->handle, &stat, &server, sizeof(server));
	if (ret)
		return ctl_request_refused(ctl, NULL, ret, EXPIRY_OP_STAT);
	if (ctl->json) {
		print_json(ctl, &stat, &server);
		return 0;
	}
	for (i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		printf("%14" PRIu64 "  %s\n", counter(&stat, i),
		       counters[i].what);
	print_lateness(ctl, &stat);
	if (!ctl->device)
		print_server(ctl, &server);
	return 0;
}

const struct command cmd_stats = {
	.name = "stats",
	.args = "",
	.summary = "show a queue's counters and lateness",
	.examples =
		"  expiryctl stats --queue leases\n"
		"  expiryctl stats --json | jq -r .lateness_p99_ns\n",
	.device = true,
	.run = run_stats,
};
