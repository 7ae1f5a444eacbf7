/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A use of a queue, which may take its lock several times. Under the lock it
 * waits for no page. It names the page that is missing, fetches it without the
 * lock, and repeats what has failed: an operation of the core that fails has
 * changed nothing.
 */
#ifndef EXPIRY_USE_H
#define EXPIRY_USE_H

#include <linux/compiler.h>

#include "memory.h"

struct expiry_queue;

/**
 * struct expiry_use - a use of a queue, on its thread's stack
 * @nowait: wait neither for the lock nor for a page
 * @patient: wait for pages under the lock
 * @tries: pages fetched since something was done
 * @left: a page that another use could not wait for; NULL = none
 * @left_index: which page of it
 * @fetch: the page to fetch, or fetched
 */
struct expiry_use {
	bool nowait;
	bool patient;
	u32 tries;
	struct expiry_page_array *left;
	u32 left_index;
	struct expiry_fetch fetch;
};

void expiry_use_begin_locked(struct expiry_queue *queue,
			     struct expiry_use *use);
void expiry_use_end_locked(struct expiry_queue *queue, struct expiry_use *use);
void expiry_use_forget_locked(struct expiry_queue *queue,
			      const struct expiry_use *use);
bool expiry_use_take_left(struct expiry_queue *queue, struct expiry_use *use);
bool expiry_use_fetch_page(struct expiry_queue *queue, struct expiry_use *use);

/**
 * expiry_use_fetch - bring in the page that was missing
 * @queue: not locked; may sleep
 * @use: that has ended, for now
 *
 * Returns whether to continue the use: the page is there, or its error is for the
 * core. False if no page is missing, if the use may not wait, or if the caller
 * was killed. Nearly always no page is: that takes no call.
 */
static inline bool expiry_use_fetch(struct expiry_queue *queue,
				    struct expiry_use *use)
{
	return unlikely(use->fetch.array) && expiry_use_fetch_page(queue, use);
}

#endif /* EXPIRY_USE_H */
