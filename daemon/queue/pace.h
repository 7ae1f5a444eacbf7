/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pace of a checkpoint beside commits. They share a disk, and a commit's flush waits
 * for all that was written before. So while there are commits, a checkpoint takes about
 * twice as many rows as they have records.
 */
#ifndef DAEMON_PACE_H
#define DAEMON_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Rows of a checkpoint for each record of a commit, and for a commit at least. */
#define PACE_SHARE	2U
#define PACE_LEAST	64U

/* The disk is free when there was no commit for as long. */
#define PACE_IDLE_NS	1000000U

/**
 * struct pace - of a thread's checkpoints; all 0 at first
 * @share: rows that the commits of late left to the checkpoint
 * @ended_ns: when the last commit ended, on CLOCK_MONOTONIC
 * @committing: one is in progress
 */
struct pace {
	uint64_t share;
	uint64_t ended_ns;
	bool committing;
};

/* Begins a checkpoint, which has nothing of earlier commits. */
void pace_begin(struct pace *pace);

/* Notes that a commit of @records begins. */
void pace_commit(struct pace *pace, uint64_t records);

/* Notes that it ended, well or not. */
void pace_commit_ended(struct pace *pace, uint64_t now_ns);

/* Notes that @rows were put. */
void pace_put(struct pace *pace, uint64_t rows);

/* Returns how many rows may be put, UINT64_MAX = any, if pace_wait_ns() is 0. */
uint64_t pace_rows(const struct pace *pace);

/* Returns in how many ns rows may be put: 0 = now, UINT64_MAX = not before the commit
 * in progress ends.
 */
uint64_t pace_wait_ns(const struct pace *pace, uint64_t now_ns);

#endif /* DAEMON_PACE_H */
