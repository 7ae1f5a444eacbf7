/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which of two ways of a commit in the ring ends sooner.
 *
 * A write that flushes (RWF_DSYNC) wakes fewer threads than a write with a linked
 * fdatasync, and a device that can write through (FUA) gets one command instead of two.
 * But a worker of the kernel that is bound to a processor ends it. Where that processor
 * is busy the commit waits for it, up to a tick and more, and a thread of io_uring, which
 * ends the linked pair, does not. So both are tried, and the one in use is the one that
 * has been faster of late.
 */
#ifndef DAEMON_JOURNAL_COMMIT_WAY_H
#define DAEMON_JOURNAL_COMMIT_WAY_H

#include <stdbool.h>
#include <stdint.h>

/* One commit in 128 is a trial of the other way. That is below 1 %, so that trials of the
 * slower way stay beyond the p99.
 */
#define COMMIT_WAY_TRIAL	128U
/* Eight in a row that take more than twice what the last trial took are followed by a
 * trial, too. So are the first eight of all.
 */
#define COMMIT_WAY_SLOW		8U
/* The most that a trial counts for: it took half of the time, or twice as long. So a way
 * that is a little faster most of the time, and much slower at times, does not win.
 */
#define COMMIT_WAY_UNIT		16
/* The sum of what trials count for at which the way changes. */
#define COMMIT_WAY_SCORE	(4 * COMMIT_WAY_UNIT)

/**
 * struct commit_way - the way in use; all zero: a write that flushes
 * @is_linked: it is the linked pair
 * @is_trial: the commit under way takes the other one
 * @nr: commits since the last trial that ended
 * @nr_slow: slow commits in a row up to the last one, see COMMIT_WAY_SLOW
 * @score: for the other way; from -COMMIT_WAY_SCORE to below COMMIT_WAY_SCORE
 * @before_ns: what the last commit took that was no trial
 * @trial_ns: what the last trial took; 0 = there was none
 */
struct commit_way {
	bool is_linked;
	bool is_trial;
	uint32_t nr;
	uint32_t nr_slow;
	int32_t score;
	uint64_t before_ns;
	uint64_t trial_ns;
};

/* Returns whether the commit that begins is a linked pair. */
bool commit_way_is_linked(struct commit_way *way);

/* The commit that has begun last was carried out, and took so long. */
void commit_way_took(struct commit_way *way, uint64_t ns);

#endif /* DAEMON_JOURNAL_COMMIT_WAY_H */
