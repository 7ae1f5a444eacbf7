// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl top: what the daemon and its queues are doing, once a second.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "queues.h"

#define HOME		"\033[H\033[J"	/* to the corner, and clear */
#define HEAD_LINES	3

/* What there was at one look. */
struct look {
	struct expiry_server_stat server;
	struct queues queues;
};

/**
 * struct top - what is shown
 * @ctl: with the connection
 * @names: of the queues asked for, NULL at the end; none = all
 * @now: the last look, @before the one before
 * @rows: of @now, what is shown, @nr
 */
struct top {
	struct ctl *ctl;
	char **names;
	struct look now;
	struct look before;
	struct row *rows;
	size_t nr;
};

/**
 * struct row - a queue
 * @is: as it is, @was a second ago; the same if it is new
 * @requests, @expirations: a second
 */
struct row {
	const struct expiry_queue *is;
	const struct expiry_queue *was;
	double requests;
	double expirations;
};

static double per_second(uint64_t now, uint64_t before, uint64_t ns)
{
	return ns && now >= before ? (now - before) * 1e9 / ns : 0;
}

static uint64_t requests(const struct expiry_stat *stat)
{
	return stat->arms + stat->refreshes + stat->cancels + stat->acks +
	       stat->refused;
}

/* What 99 % were below between two looks; 0: there were none. */
static uint64_t p99(const __u64 *now, const __u64 *before)
{
	__u64 counts[BUCKETS];

	histogram_since(counts, now, before);
	return histogram_below(counts, 0.99);
}

static uint64_t lateness(const struct row *row)
{
	uint64_t ns = p99(row->is->stat.lateness, row->was->stat.lateness);

	return ns == UINT64_MAX ? row->is->stat.lateness_max_ns : ns;
}

static int by_number(const void *a, const void *b)
{
	const struct expiry_queue *x = a, *y = b;

	return (x->daemon.number > y->daemon.number) -
	       (x->daemon.number < y->daemon.number);
}

/* The busiest first, then the largest, then as they were made. */
static int by_rate(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double rate_x = x->requests + x->expirations;
	double rate_y = y->requests + y->expirations;

	if (rate_x != rate_y)
		return rate_x < rate_y ? 1 : -1;
	if (x->is->stat.armed != y->is->stat.armed)
		return x->is->stat.armed < y->is->stat.armed ? 1 : -1;
	return by_number(x->is, y->is);
}

static bool wanted(const struct top *top, const struct expiry_queue *queue)
{
	char **name;

	for (name = top->names; *name; name++) {
		if (!strcmp(*name, queue->name))
			return true;
	}
	return name == top->names && queue_meant(top->ctl, queue);
}

static int look(struct top *top)
{
	struct look old = top->before;
	struct expiry_stat stat;
	int ret;

	top->before = top->now;
	top->now = old;
	ret = expiry_stat(top->ctl->handle, &stat, &top->now.server,
			  sizeof(top->now.server));
	if (ret)
		return ctl_refused(top->ctl->path, ret, EXPIRY_OP_STAT);
	/* One connection is this command's own. */
	if (top->now.server.connections)
		top->now.server.connections--;
	ret = queues_ask(top->ctl, &top->now.queues);
	if (!ret && top->now.queues.nr)
		qsort(top->now.queues.rows, top->now.queues.nr,
		      sizeof(*top->now.queues.rows), by_number);
	return ret;
}

/* What was asked for by name must be there. */
static int check_names(const struct top *top)
{
	char *asked[] = { (char *)top->ctl->queue, NULL }, **name;
	size_t i;

	for (name = *top->names ? top->names : asked; *name; name++) {
		for (i = 0; i < top->now.queues.nr; i++)
			if (!strcmp(top->now.queues.rows[i].name, *name))
				break;
		if (i == top->now.queues.nr)
			return ctl_error("%s: you have no such queue", *name);
	}
	return 0;
}

static int make_rows(struct top *top)
{
	const struct queues *now = &top->now.queues;
	const struct queues *before = &top->before.queues;
	const struct expiry_queue *is, *was;
	struct row *row;
	uint64_t ns;
	size_t i;

	free(top->rows);
	top->nr = 0;
	top->rows = calloc(now->nr + 1, sizeof(*top->rows));
	if (!top->rows)
		return ctl_error("no memory");
	for (i = 0; i < now->nr; i++) {
		is = &now->rows[i];
		if (!wanted(top, is))
			continue;
		was = before->nr ? bsearch(is, before->rows, before->nr,
					   sizeof(*is), by_number) : NULL;
		if (!was)
			was = is;
		/* By the daemon's time, not the queue's, which may be set. */
		ns = top->now.server.uptime_ns - top->before.server.uptime_ns;
		row = &top->rows[top->nr++];
		*row = (struct row) {
			.is = is,
			.was = was,
			.requests = per_second(requests(&is->stat),
					       requests(&was->stat), ns),
			.expirations = per_second(is->stat.delivered,
						  was->stat.delivered, ns),
		};
	}
	qsort(top->rows, top->nr, sizeof(*top->rows), by_rate);
	return 0;
}

static void print_json(const struct row *row)
{
	const struct expiry_stat *stat = &row->is->stat;
	const struct expiry_queue_stat *daemon = &row->is->daemon;
	struct json json;

	json_begin(&json);
	json_text(&json, "queue", row->is->name);
	json_u32(&json, "uid", daemon->uid);
	json_rate(&json, "requests_per_second", row->requests);
	json_rate(&json, "expirations_per_second", row->expirations);
	json_u64(&json, "armed", stat->armed);
	json_bool(&json, "due", queue_overdue(stat));
	json_u64(&json, "unacked", stat->unacked);
	json_u64(&json, "overdue_ns", queue_overdue(stat));
	json_u64(&json, "lateness_p99_ns", lateness(row));
	json_u32(&json, "connections", daemon->connections);
	json_bool(&json, "consumer", daemon->consumers);
	json_u32(&json, "consumer_pid", daemon->consumer_pid);
	json_u32(&json, "credit", daemon->credit);
	json_end(&json);
}

static void print_row(const struct row *row)
{
	const struct expiry_stat *stat = &row->is->stat;
	char late[SPAN_TEXT], over[SPAN_TEXT];

	printf("%-24s %10.0f %10.0f %11" PRIu64 " %9" PRIu64 " %8s %8s ",
	       *row->is->name ? row->is->name : "(no name)", row->requests,
	       row->expirations, (uint64_t)stat->armed,
	       (uint64_t)stat->unacked, queue_overdue(stat) ?
	       span_text(over, queue_overdue(stat)) : "-",
	       lateness(row) ? span_text(late, lateness(row)) : "-");
	if (row->is->daemon.consumers)
		printf("%8" PRIu32 " %7" PRIu32 "\n",
		       (uint32_t)row->is->daemon.credit,
		       (uint32_t)row->is->daemon.consumer_pid);
	else
		printf("%8s %7s\n", "none", "-");
}

static const char *p99_text(char *text, const __u64 *now, const __u64 *before)
{
	uint64_t ns = p99(now, before);

	return ns && ns != UINT64_MAX ? span_text(text, ns) : "-";
}

static void print_head(const struct top *top)
{
	const struct expiry_server_stat *is = &top->now.server;
	const struct expiry_server_stat *was = &top->before.server;
	uint64_t ns = is->uptime_ns - was->uptime_ns;
	char turn[SPAN_TEXT], request[SPAN_TEXT], late[SPAN_TEXT];

	printf("%" PRIu64 " timers in %" PRIu64 " queues, %" PRIu64
	       " connections; %.0f requests/s, %.0f expired/s\n",
	       (uint64_t)is->timers, (uint64_t)is->queues,
	       (uint64_t)is->connections,
	       per_second(is->records, was->records, ns),
	       per_second(is->expirations, was->expirations, ns));
	printf("99 %% of turns below %s, of requests below %s; worst lateness %s\n",
	       p99_text(turn, is->turn_ns, was->turn_ns),
	       p99_text(request, is->request_ns, was->request_ns),
	       span_text(late, is->lateness_max_ns));
	printf("%s%-24s %10s %10s %11s %9s %8s %8s %8s %7s%s\n",
	       bold(top->ctl), "queue", "requests/s", "expired/s", "armed",
	       "unacked", "overdue", "late p99", "credit", "pid",
	       plain(top->ctl));
}

/* Rows that are shown: as many as the command line says, or the window has. */
static size_t rows_shown(const struct top *top, bool screen)
{
	struct winsize window;
	size_t most = top->nr;

	if (screen && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) &&
	    window.ws_row > HEAD_LINES + 1)
		most = window.ws_row - HEAD_LINES - 1;
	if (top->ctl->given & CTL_LIMIT && top->ctl->limit < most)
		most = top->ctl->limit;
	return most < top->nr ? most : top->nr;
}

static void print(const struct top *top, bool screen)
{
	size_t i, shown = rows_shown(top, screen);

	if (screen)
		fputs(HOME, stdout);
	if (!top->ctl->json)
		print_head(top);
	for (i = 0; i < shown; i++) {
		if (top->ctl->json)
			print_json(&top->rows[i]);
		else
			print_row(&top->rows[i]);
	}
}

static int show(struct top *top, uint64_t count)
{
	static const struct timespec second = { .tv_sec = 1 };
	bool screen = isatty(STDOUT_FILENO) && !top->ctl->json;
	int ret;

	ret = look(top);
	if (!ret)
		ret = check_names(top);
	while (!ret && count--) {
		nanosleep(&second, NULL);
		ret = look(top);
		if (!ret)
			ret = make_rows(top);
		if (ret)
			break;
		print(top, screen);
		if (fflush(stdout))
			return ctl_error("output: %s", strerror(errno));
	}
	return ret;
}

static int run_top(struct ctl *ctl, char **args)
{
	uint64_t count = ctl->given & CTL_COUNT ? ctl->count : UINT64_MAX;
	struct top top = { .ctl = ctl, .names = args };
	int ret;

	ret = ctl_open(ctl, NULL, 0, 0);
	if (!ret)
		ret = show(&top, count);
	queues_free(&top.now.queues);
	queues_free(&top.before.queues);
	free(top.rows);
	return ret;
}

const struct command cmd_top = {
	.name = "top",
	.args = "[QUEUE...]",
	.summary = "what queues are doing, once a second",
	.examples =
		"  expiryctl top\n"
		"  expiryctl top leases sessions\n"
		"  expiryctl top --limit 10 --count 60 --json\n",
	.max = -1,
	.options = CTL_COUNT | CTL_LIMIT,
	.run = run_top,
};
