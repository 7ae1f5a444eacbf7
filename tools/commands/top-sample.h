/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples of `expiryctl top`: counters, and rates between two of them.
 */
#ifndef TOOLS_TOP_SAMPLE_H
#define TOOLS_TOP_SAMPLE_H

#include "tools/queue-list.h"

/**
 * struct row - a queue
 * @is: latest sample
 * @requests: requests a second
 * @expirations: expirations a second
 * @overdue_ns: time since the first deadline, 0: none due
 * @lateness_ns: 99th percentile of the last second's lateness
 */
struct row {
	const struct expiry_queue *is;
	double requests;
	double expirations;
	uint64_t overdue_ns;
	uint64_t lateness_ns;
};

/* A sample of the daemon's counters. */
struct sample {
	struct expiry_server_stat server;
	struct queues queues;
};

/**
 * struct samples - the last two
 * @ctl: command line and connection
 * @names: names of requested queues, NULL-terminated; empty: all
 * @now: latest sample
 * @before: the sample before it
 * @rows: requested queues of @now
 * @nr: number of @rows
 */
struct samples {
	struct ctl *ctl;
	char **names;
	struct sample now;
	struct sample before;
	struct row *rows;
	size_t nr;
};

/* Each returns 0, or an exit status with the reason printed. */

/* Takes the next sample. */
int samples_take(struct samples *samples);
/* Checks that all requested queues exist. */
int samples_check_names(const struct samples *samples);
/* Computes the rows from both samples. */
int samples_make_rows(struct samples *samples);

void samples_free(struct samples *samples);

/* Returns the increase of a counter in a second. */
double samples_rate(uint64_t now, uint64_t before, uint64_t ns);

/* Returns the 99th percentile between two samples, or 0 without events. */
uint64_t samples_p99(const __u64 *now, const __u64 *before);

#endif /* TOOLS_TOP_SAMPLE_H */
