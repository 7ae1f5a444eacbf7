// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * OpenMetrics requires the samples of a family to be adjacent, queue by queue.
 * Times are in seconds by convention. The histograms have no sums, so they must not
 * have counts: the last bucket is the count.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "tools/output/histogram.h"
#include "tools/output/metrics.h"
#include "tools/output/time-text.h"

#define NANOSECOND	1e-9

enum kind {
	GAUGE,
	COUNTER,
	SWITCH,		/* a gauge of 32 bits */
	SECONDS,	/* a gauge of nanoseconds */
	AGO,		/* the time since a deadline */
	HISTOGRAM,	/* of nanoseconds */
	SIZES,		/* a histogram of whole numbers */
};

/**
 * struct family - one family of metrics
 * @name: name without "expiry_" and sample suffixes
 * @what: one sentence
 * @offset: offset of the value in its structure
 */
struct family {
	const char *name;
	const char *what;
	size_t offset;
	enum kind kind;
};

static const struct family server_families[] = {
#define FAMILY(name, member, kind, text) \
	{ name, text, offsetof(struct expiry_server_stat, member), kind }
	FAMILY("uptime_seconds", uptime_ns, SECONDS, "Since the daemon started."),
	FAMILY("queues", queues, GAUGE, "Number of queues."),
	FAMILY("timers", timers, GAUGE, "Timers in all queues."),
	FAMILY("lateness_max_seconds", lateness_max_ns, SECONDS,
	       "Largest lateness of any expiration."),
	FAMILY("connections", connections, GAUGE, "Open connections."),
	FAMILY("requests", records, COUNTER, "Requests answered."),
	FAMILY("expirations", expirations, COUNTER, "Expirations sent."),
	FAMILY("refused_connections", refused_connections, COUNTER,
	       "Connections refused for a limit."),
	FAMILY("refused_queues", refused_queues, COUNTER,
	       "Queues refused for a limit."),
	FAMILY("refused_timers", refused_timers, COUNTER,
	       "Timers refused for a limit."),
	FAMILY("refused_busy", refused_busy, COUNTER,
	       "Requests refused because they waited too long."),
	FAMILY("refused_credit", refused_credit, COUNTER,
	       "Credit requests cut to the limit."),
	FAMILY("refused_observers", refused_observers, COUNTER,
	       "Observers refused for a limit."),
	FAMILY("copies_missed", copies_missed, COUNTER,
	       "Copies that observers did not get."),
	FAMILY("refused_journal", refused_journal, COUNTER,
	       "Requests that the journal did not take."),
	FAMILY("closed_protocol", closed_protocol, COUNTER,
	       "Connections closed for a protocol error."),
	FAMILY("closed_backlog", closed_backlog, COUNTER,
	       "Connections closed for too many unread bytes."),
	FAMILY("closed_hello", closed_hello, COUNTER,
	       "Connections closed without HELLO."),
	FAMILY("backlog_bytes", backlog, GAUGE,
	       "Memory of bytes that clients have not read."),
	FAMILY("log_dropped", log_dropped, COUNTER,
	       "Lost lines of the log."),
	FAMILY("log_left_out", log_left_out, COUNTER,
	       "Lines about clients beyond a user's budget."),
	FAMILY("turn_seconds", turn_ns, HISTOGRAM,
	       "Turns of the loop, without waiting."),
	FAMILY("batch_requests", batch, SIZES,
	       "Requests processed in one batch."),
	FAMILY("request_seconds", request_ns, HISTOGRAM,
	       "Time from receiving requests to passing their replies to the kernel."),
	FAMILY("durable_queues", journal_queues, GAUGE,
	       "Number of durable queues."),
	FAMILY("durable_timers", journal_timers, GAUGE, "Timers in them."),
	FAMILY("durable_overdue", journal_overdue, GAUGE,
	       "Of these overdue when the daemon started."),
	FAMILY("journal_waiting", journal_waiting, GAUGE,
	       "Records that wait for the disk."),
	FAMILY("journal_records", journal_records, COUNTER,
	       "Records written to the journal."),
	FAMILY("journal_commits", journal_commits, COUNTER,
	       "Blocks of records written to the journal."),
	FAMILY("journal_written_bytes", journal_bytes, COUNTER,
	       "Written to the journal's files."),
	FAMILY("journal_size_bytes", journal_size, GAUGE,
	       "The journal's files."),
	FAMILY("journal_checkpoints", journal_checkpoints, COUNTER,
	       "Checkpoints of the journal."),
	FAMILY("journal_failures", journal_failures, COUNTER,
	       "Failed writes and flushes of the journal."),
	FAMILY("journal_failed", journal_failed, GAUGE,
	       "Threads whose journal takes nothing now."),
	FAMILY("commit_seconds", commit_ns, HISTOGRAM,
	       "Commits of the journal."),
#undef FAMILY
};

static const struct family queue_families[] = {
#define FAMILY(name, member, kind, text) \
	{ "queue_" name, text, offsetof(struct expiry_queue, member), kind }
	FAMILY("armed", stat.armed, GAUGE, "Timers armed."),
	FAMILY("unacked", stat.unacked, GAUGE,
	       "Timers delivered and not acknowledged."),
	FAMILY("limit", stat.limit, GAUGE, "Most timers."),
	FAMILY("nodes", stat.nodes, GAUGE, "Heap nodes, live and stale."),
	FAMILY("arms", stat.arms, COUNTER, "Timers armed so far."),
	FAMILY("refreshes", stat.refreshes, COUNTER, "Timers refreshed so far."),
	FAMILY("cancels", stat.cancels, COUNTER, "Timers cancelled so far."),
	FAMILY("acks", stat.acks, COUNTER, "Expirations acknowledged so far."),
	FAMILY("delivered", stat.delivered, COUNTER,
	       "Expirations delivered so far."),
	FAMILY("redelivered", stat.redelivered, COUNTER,
	       "Of these delivered again."),
	FAMILY("delivered_past", stat.past, COUNTER,
	       "Of these armed for a time that had passed."),
	FAMILY("delivered_held", stat.held, COUNTER,
	       "Of these held without a consumer or credit."),
	FAMILY("refused", stat.refused, COUNTER, "Requests refused so far."),
	FAMILY("connections", daemon.connections, SWITCH,
	       "Connections attached."),
	FAMILY("observers", daemon.observers, SWITCH,
	       "Connections that observe."),
	FAMILY("consumers", daemon.consumers, SWITCH,
	       "1 if there is a consumer."),
	FAMILY("credit", daemon.credit, SWITCH,
	       "Expirations that the consumer may still receive."),
	FAMILY("overdue_seconds", stat, AGO,
	       "Time since the first deadline, if it has passed."),
	FAMILY("lateness_seconds", stat.lateness, HISTOGRAM,
	       "Lateness of the other deliveries."),
#undef FAMILY
};

static void print_head(FILE *out, const struct family *family)
{
	const char *type = "gauge";

	if (family->kind == COUNTER)
		type = "counter";
	else if (family->kind == HISTOGRAM || family->kind == SIZES)
		type = "histogram";
	fprintf(out, "# TYPE expiry_%s %s\n", family->name, type);
	if (family->kind == SECONDS || family->kind == AGO ||
	    family->kind == HISTOGRAM)
		fprintf(out, "# UNIT expiry_%s seconds\n", family->name);
	fprintf(out, "# HELP expiry_%s %s\n", family->name, family->what);
}

/* Prints a bucket's inclusive bound: integers below 2^i are at most 2^i - 1.
 * OpenMetrics has whole bounds as floats: 1.0.
 */
static void print_bound(FILE *out, int i, double unit)
{
	char bound[32];

	snprintf(bound, sizeof(bound), "%.12g", ((1ULL << i) - 1) * unit);
	fprintf(out, "%s%s", bound, strpbrk(bound, ".e") ? "" : ".0");
}

static void print_buckets(FILE *out, const struct family *family,
			  const __u64 *counts, const char *queue)
{
	double unit = family->kind == HISTOGRAM ? NANOSECOND : 1;
	uint64_t sum = 0;
	int i;

	for (i = 0; i < BUCKETS; i++) {
		sum += counts[i];
		fprintf(out, "expiry_%s_bucket{", family->name);
		if (queue)
			fprintf(out, "queue=\"%s\",", queue);
		fputs("le=\"", out);
		if (i < BUCKETS - 1)
			print_bound(out, i, unit);
		else
			fputs("+Inf", out);
		fprintf(out, "\"} %" PRIu64 "\n", sum);
	}
}

/* Prints a sample. @of: the structure with the value. @queue: the queue's name, NULL
 * for the daemon. Names contain no characters that need escapes.
 */
static void print_sample(FILE *out, const struct family *family,
			 const void *of, const char *queue)
{
	const void *value = (const char *)of + family->offset;

	if (family->kind == HISTOGRAM || family->kind == SIZES) {
		print_buckets(out, family, value, queue);
		return;
	}
	fprintf(out, "expiry_%s%s", family->name,
		family->kind == COUNTER ? "_total" : "");
	if (queue)
		fprintf(out, "{queue=\"%s\"}", queue);
	if (family->kind == SWITCH)
		fprintf(out, " %" PRIu32 "\n", *(const __u32 *)value);
	else if (family->kind == SECONDS)
		fprintf(out, " %.9f\n", *(const __u64 *)value * NANOSECOND);
	else if (family->kind == AGO)
		fprintf(out, " %.9f\n", queue_overdue(value) * NANOSECOND);
	else
		fprintf(out, " %" PRIu64 "\n",
			(uint64_t)*(const __u64 *)value);
}

void metrics_print(FILE *out, const struct expiry_server_stat *server,
		   const struct expiry_queue *queues, size_t nr)
{
	const size_t of_server = sizeof(server_families) /
				 sizeof(*server_families);
	const size_t of_queue = sizeof(queue_families) /
				sizeof(*queue_families);
	size_t i, q;

	for (i = 0; i < of_server; i++) {
		print_head(out, &server_families[i]);
		print_sample(out, &server_families[i], server, NULL);
	}
	for (i = 0; i < of_queue && nr; i++) {
		print_head(out, &queue_families[i]);
		for (q = 0; q < nr; q++)
			print_sample(out, &queue_families[i], &queues[q],
				     queues[q].name);
	}
	fputs("# EOF\n", out);
}
