// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl metrics: the daemon, and with --queue one of its queues, as
 * OpenMetrics text, for Prometheus and what reads the same. Times are in
 * seconds, as is the custom there.
 */
#include <inttypes.h>
#include <string.h>

#include "ctl.h"

/* What one number is. */
struct metric {
	const char *name;
	const char *what;
	size_t offset;
	bool counter;
};

static const struct metric server_metrics[] = {
#define METRIC(name, member, counter, text) \
	{ name, text, offsetof(struct expiry_server_stat, member), counter }
	METRIC("queues", queues, false, "Queues there are."),
	METRIC("connections", connections, false, "Connections that are open."),
	METRIC("requests", records, true, "Requests answered."),
	METRIC("expirations", expirations, true, "Expirations sent."),
	METRIC("refused_connections", refused_connections, true,
	       "Connections refused for a limit."),
	METRIC("refused_queues", refused_queues, true,
	       "Queues refused for a limit."),
	METRIC("refused_timers", refused_timers, true,
	       "Timers refused for a limit."),
	METRIC("refused_busy", refused_busy, true,
	       "Requests refused for having waited too long."),
	METRIC("refused_credit", refused_credit, true,
	       "Times that credit was cut to its limit."),
	METRIC("closed_protocol", closed_protocol, true,
	       "Connections ended for breaking the protocol."),
	METRIC("closed_backlog", closed_backlog, true,
	       "Connections ended for what they did not read."),
	METRIC("backlog_bytes", backlog, false,
	       "Memory of what clients do not read."),
#undef METRIC
};

static const struct metric queue_metrics[] = {
#define METRIC(name, member, counter, text) \
	{ name, text, offsetof(struct expiry_stat, member), counter }
	METRIC("queue_armed", armed, false, "Timers armed."),
	METRIC("queue_unacked", unacked, false,
	       "Timers delivered and not acknowledged."),
	METRIC("queue_limit", limit, false, "Most timers."),
	METRIC("queue_nodes", nodes, false, "Heap nodes, live and stale."),
	METRIC("queue_arms", arms, true, "Timers armed so far."),
	METRIC("queue_refreshes", refreshes, true, "Timers refreshed so far."),
	METRIC("queue_cancels", cancels, true, "Timers cancelled so far."),
	METRIC("queue_acks", acks, true, "Expirations acknowledged so far."),
	METRIC("queue_delivered", delivered, true,
	       "Expirations delivered so far."),
	METRIC("queue_redelivered", redelivered, true,
	       "Of these delivered again."),
	METRIC("queue_refused", refused, true, "Requests refused so far."),
#undef METRIC
};

static void print_head(const char *name, const char *type, const char *what)
{
	printf("# TYPE expiry_%s %s\n# HELP expiry_%s %s\n", name, type, name,
	       what);
}

/* @label: of the queue, with its braces, or "". */
static void print_metrics(const struct metric *metrics, size_t nr,
			  const void *stat, const char *label)
{
	uint64_t value;
	size_t i;

	for (i = 0; i < nr; i++) {
		memcpy(&value, (const char *)stat + metrics[i].offset,
		       sizeof(value));
		print_head(metrics[i].name,
			   metrics[i].counter ? "counter" : "gauge",
			   metrics[i].what);
		printf("expiry_%s%s%s %" PRIu64 "\n", metrics[i].name,
		       metrics[i].counter ? "_total" : "", label, value);
	}
}

/* Buckets by powers of two of a @unit; what is above the last one but one is
 * only counted. @label: of the queue, to stand before another one.
 */
static void print_histogram(const char *name, const char *what,
			    const void *counts, int nr, double unit,
			    const char *label)
{
	uint64_t count, sum = 0;
	int i;

	print_head(name, "histogram", what);
	for (i = 0; i < nr; i++) {
		memcpy(&count, (const uint64_t *)counts + i, sizeof(count));
		sum += count;
		if (i == nr - 1)
			break;
		/* Below 2^i, and whole: at most one less. */
		printf("expiry_%s_bucket{%sle=\"%.12g\"} %" PRIu64 "\n", name,
		       label, ((1ULL << i) - 1) * unit, sum);
	}
	printf("expiry_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, label,
	       sum);
	if (*label)
		printf("expiry_%s_count{%.*s} %" PRIu64 "\n", name,
		       (int)strlen(label) - 1, label, sum);
	else
		printf("expiry_%s_count %" PRIu64 "\n", name, sum);
}

#define NANOSECOND	1e-9

static void print_server(const struct expiry_server_stat *server)
{
	print_metrics(server_metrics,
		      sizeof(server_metrics) / sizeof(*server_metrics), server,
		      "");
	print_head("uptime_seconds", "gauge", "Since the daemon started.");
	printf("expiry_uptime_seconds %.3f\n", server->uptime_ns * NANOSECOND);
	print_histogram("turn_seconds", "Turns of the loop, waiting left out.",
			server->turn_ns, EXPIRY_SERVER_BUCKETS, NANOSECOND, "");
	print_histogram("batch_requests", "Requests processed in one piece.",
			server->batch, EXPIRY_SERVER_BUCKETS, 1, "");
	print_histogram("request_seconds",
			"From having requests to handing their answers to the kernel.",
			server->request_ns, EXPIRY_SERVER_BUCKETS, NANOSECOND,
			"");
}

static void print_queue(const char *name, const struct expiry_stat *stat,
			const struct expiry_server_stat *server)
{
	char label[EXPIRY_NAME_MAX + 32];
	uint64_t overdue = 0;

	/* Nothing that would have to be escaped is allowed in a name. */
	snprintf(label, sizeof(label), "{queue=\"%s\"}", name);
	print_metrics(queue_metrics,
		      sizeof(queue_metrics) / sizeof(*queue_metrics), stat,
		      label);
	print_head("queue_consumers", "gauge", "1 if there is a consumer.");
	printf("expiry_queue_consumers%s %" PRIu32 "\n", label,
	       (uint32_t)server->consumers);
	print_head("queue_credit", "gauge",
		   "Expirations the consumer may still be sent.");
	printf("expiry_queue_credit%s %" PRIu32 "\n", label,
	       (uint32_t)server->credit);
	if (stat->next_ns < stat->now_ns)
		overdue = stat->now_ns - stat->next_ns;
	print_head("queue_overdue_seconds", "gauge",
		   "For how long the oldest timer that is due has been waiting.");
	printf("expiry_queue_overdue_seconds%s %.9f\n", label,
	       overdue * NANOSECOND);
	snprintf(label, sizeof(label), "queue=\"%s\",", name);
	print_histogram("queue_lateness_seconds",
			"How late expirations were delivered.", stat->lateness,
			EXPIRY_LATENESS_BUCKETS, NANOSECOND, label);
}

static int run_metrics(struct ctl *ctl, char **args)
{
	struct expiry_server_stat server;
	struct expiry_stat stat;
	int ret;

	(void)args;
	ret = ctl_open(ctl, ctl->queue, 0, 0);
	if (ret)
		return ret;
	ret = expiry_stat(ctl->handle, &stat, &server, sizeof(server));
	if (ret)
		return ctl_refused(ctl->path, ret, EXPIRY_OP_STAT);
	print_server(&server);
	if (ctl->queue)
		print_queue(ctl->queue, &stat, &server);
	puts("# EOF");
	return 0;
}

const struct command cmd_metrics = {
	.name = "metrics",
	.args = "",
	.summary = "the daemon, and with --queue one of its queues, for Prometheus",
	.examples =
		"  expiryctl metrics\n"
		"  expiryctl metrics --queue leases >leases.prom\n",
	.run = run_metrics,
};
