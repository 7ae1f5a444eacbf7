// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "tools/commands/top-sample.h"
#include "tools/output/error.h"
#include "tools/output/histogram.h"
#include "tools/output/time-text.h"

double samples_rate(uint64_t now, uint64_t before, uint64_t ns)
{
	return ns && now >= before ? (now - before) * 1e9 / ns : 0;
}

static uint64_t requests(const struct expiry_stat *stat)
{
	return stat->arms + stat->refreshes + stat->cancels + stat->acks +
	       stat->refused;
}

uint64_t samples_p99(const __u64 *now, const __u64 *before)
{
	__u64 counts[BUCKETS];

	histogram_since(counts, now, before);
	return histogram_below(counts, 0.99);
}

static uint64_t lateness(const struct expiry_queue *is,
			 const struct expiry_queue *was)
{
	uint64_t ns = samples_p99(is->stat.lateness, was->stat.lateness);

	return ns == UINT64_MAX ? is->stat.lateness_max_ns : ns;
}

static int by_number(const void *a, const void *b)
{
	const struct expiry_queue *x = a, *y = b;

	return (x->daemon.number > y->daemon.number) -
	       (x->daemon.number < y->daemon.number);
}

static bool is_wanted(const struct samples *samples,
		      const struct expiry_queue *queue)
{
	char **name;

	for (name = samples->names; *name; name++) {
		if (!strcmp(*name, queue->name))
			return true;
	}
	return name == samples->names && queue_meant(samples->ctl, queue);
}

int samples_take(struct samples *samples)
{
	struct sample old = samples->before;
	struct expiry_stat stat;
	int ret;

	samples->before = samples->now;
	samples->now = old;
	ret = expiry_stat(samples->ctl->handle, &stat, &samples->now.server,
			  sizeof(samples->now.server));
	if (ret)
		return ctl_refused(samples->ctl->path, ret, EXPIRY_OP_STAT);
	/* Leave out this command's own connection. */
	if (samples->now.server.connections)
		samples->now.server.connections--;
	ret = queues_ask(samples->ctl, &samples->now.queues);
	if (!ret && samples->now.queues.nr)
		qsort(samples->now.queues.rows, samples->now.queues.nr,
		      sizeof(*samples->now.queues.rows), by_number);
	return ret;
}

int samples_check_names(const struct samples *samples)
{
	char *asked[] = { (char *)samples->ctl->queue, NULL }, **name;
	size_t i;

	for (name = *samples->names ? samples->names : asked; *name; name++) {
		for (i = 0; i < samples->now.queues.nr; i++)
			if (!strcmp(samples->now.queues.rows[i].name, *name))
				break;
		if (i == samples->now.queues.nr)
			return ctl_error("%s: you have no such queue", *name);
	}
	return 0;
}

int samples_make_rows(struct samples *samples)
{
	const struct queues *now = &samples->now.queues;
	const struct queues *before = &samples->before.queues;
	const struct expiry_queue *is, *was;
	struct row *row;
	uint64_t ns;
	size_t i;

	free(samples->rows);
	samples->nr = 0;
	samples->rows = calloc(now->nr + 1, sizeof(*samples->rows));
	if (!samples->rows)
		return ctl_error("no memory");
	for (i = 0; i < now->nr; i++) {
		is = &now->rows[i];
		if (!is_wanted(samples, is))
			continue;
		was = before->nr ? bsearch(is, before->rows, before->nr,
					   sizeof(*is), by_number) : NULL;
		if (!was)
			was = is;
		/* Use the daemon's time; a queue's clock may be set. */
		ns = samples->now.server.uptime_ns - samples->before.server.uptime_ns;
		row = &samples->rows[samples->nr++];
		*row = (struct row) {
			.is = is,
			.requests = samples_rate(requests(&is->stat),
					       requests(&was->stat), ns),
			.expirations = samples_rate(is->stat.delivered,
						  was->stat.delivered, ns),
			.overdue_ns = queue_overdue(&is->stat),
			.lateness_ns = lateness(is, was),
		};
	}
	return 0;
}

void samples_free(struct samples *samples)
{
	queues_free(&samples->now.queues);
	queues_free(&samples->before.queues);
	free(samples->rows);
}
