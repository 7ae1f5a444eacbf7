// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl top: what queues are doing, once a second.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"

#define QUEUES_MAX	64
#define HOME		"\033[H\033[J"	/* to the corner, and clear */

/**
 * struct top - one queue
 * @ctl: with the connection to it
 * @stat: as it is, @before as it was a second ago
 */
struct top {
	struct ctl ctl;
	const char *name;
	struct expiry_stat stat;
	struct expiry_stat before;
	struct expiry_server_stat server;
};

static uint64_t requests(const struct expiry_stat *stat)
{
	return stat->arms + stat->refreshes + stat->cancels + stat->acks +
	       stat->refused;
}

static double per_second(const struct top *top, uint64_t now, uint64_t before)
{
	uint64_t ns = top->stat.now_ns - top->before.now_ns;

	return ns && top->stat.now_ns > top->before.now_ns && now >= before ?
	       (now - before) * 1e9 / ns : 0;
}

/* For how long the first that is due has waited. */
static uint64_t overdue(const struct expiry_stat *stat)
{
	return stat->next_ns < stat->now_ns ? stat->now_ns - stat->next_ns : 0;
}

/* What 99 % of this second's deliveries were late by at most; 0: there were
 * none.
 */
static uint64_t lateness(const struct top *top)
{
	uint64_t total = 0, seen = 0;
	int i;

	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		total += top->stat.lateness[i] - top->before.lateness[i];
	for (i = 0; total && i < EXPIRY_LATENESS_BUCKETS - 1; i++) {
		seen += top->stat.lateness[i] - top->before.lateness[i];
		if (seen >= total - total / 100)
			return 1ULL << i;
	}
	return total ? top->stat.lateness_max_ns : 0;
}

static void print_row(const struct top *top)
{
	const struct expiry_stat *stat = &top->stat, *before = &top->before;
	char late[TIME_TEXT], over[TIME_TEXT];
	double asked = per_second(top, requests(stat), requests(before));
	double sent = per_second(top, stat->delivered, before->delivered);

	if (top->ctl.json) {
		printf("{\"queue\": \"%s\", \"requests_per_second\": %.1f, "
		       "\"expirations_per_second\": %.1f, \"armed\": %" PRIu64
		       ", \"unacked\": %" PRIu64 ", \"overdue_ns\": %" PRIu64
		       ", \"lateness_p99_ns\": %" PRIu64
		       ", \"consumer\": %s, \"credit\": %" PRIu32 "}\n",
		       top->name, asked, sent, (uint64_t)stat->armed,
		       (uint64_t)stat->unacked, overdue(stat), lateness(top),
		       top->server.consumers ? "true" : "false",
		       (uint32_t)top->server.credit);
		return;
	}
	printf("%-24s %10.0f %10.0f %11" PRIu64 " %9" PRIu64 " %8s %8s ",
	       top->name, asked, sent, (uint64_t)stat->armed,
	       (uint64_t)stat->unacked,
	       overdue(stat) ? span_text(over, overdue(stat)) : "-",
	       lateness(top) ? span_text(late, lateness(top)) : "-");
	if (top->server.consumers)
		printf("%8" PRIu32 "\n", (uint32_t)top->server.credit);
	else
		printf("%8s\n", "none");
}

static int look(struct top *top)
{
	int ret;

	top->before = top->stat;
	ret = expiry_stat(top->ctl.handle, &top->stat, &top->server,
			  sizeof(top->server));
	return ret ? ctl_refused(top->name, ret, EXPIRY_OP_STAT) : 0;
}

static int show(struct top *tops, int nr, uint64_t count, bool screen)
{
	static const struct timespec second = { .tv_sec = 1 };
	bool json = tops[0].ctl.json;
	int i, ret = 0;

	for (i = 0; i < nr && !ret; i++)
		ret = look(&tops[i]);
	while (!ret && count--) {
		nanosleep(&second, NULL);
		for (i = 0; i < nr && !ret; i++)
			ret = look(&tops[i]);
		if (ret)
			break;
		if (!json)
			printf("%s%s%-24s %10s %10s %11s %9s %8s %8s %8s%s\n",
			       screen ? HOME : "", bold(&tops[0].ctl), "queue",
			       "requests/s", "expired/s", "armed", "unacked",
			       "overdue", "late p99", "credit",
			       plain(&tops[0].ctl));
		for (i = 0; i < nr; i++)
			print_row(&tops[i]);
		if (fflush(stdout))
			return ctl_error("output: %s", strerror(errno));
	}
	return ret;
}

static int run_top(struct ctl *ctl, char **args)
{
	uint64_t count = ctl->given & CTL_COUNT ? ctl->count : UINT64_MAX;
	struct top *tops;
	int i, nr = 0, ret = 0;

	while (args[nr])
		nr++;
	if (nr > QUEUES_MAX)
		return ctl_usage("top: at most %d queues", QUEUES_MAX);
	tops = calloc(nr ? nr : 1, sizeof(*tops));
	if (!tops)
		return ctl_error("no memory");
	for (i = 0; i < (nr ? nr : 1) && !ret; i++) {
		tops[i].ctl = *ctl;
		tops[i].name = nr ? args[i] : ctl_queue(ctl);
		ret = ctl_open(&tops[i].ctl, tops[i].name, 0, 0);
	}
	if (!ret)
		ret = show(tops, nr ? nr : 1, count,
			   isatty(STDOUT_FILENO) && !ctl->json);
	for (i = 0; i < (nr ? nr : 1); i++)
		expiry_close(tops[i].ctl.handle);
	free(tops);
	return ret;
}

const struct command cmd_top = {
	.name = "top",
	.args = "[QUEUE...]",
	.summary = "what queues are doing, once a second",
	.examples =
		"  expiryctl top leases sessions\n"
		"  expiryctl top --queue leases --count 10 --json\n",
	.max = -1,
	.options = CTL_COUNT,
	.run = run_top,
};
