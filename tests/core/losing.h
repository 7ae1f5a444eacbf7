/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue that loses most of its timers, for the programs about compaction. */
#ifndef TESTS_CORE_LOSING_H
#define TESTS_CORE_LOSING_H

#include <stdlib.h>

#include "lifecycle.h"
#include "support.h"

/* Enough for many pages: a table of four is too small to be compacted. */
#define N	(CORE_PAGE_SHIFT > 12 ? 4000U << (CORE_PAGE_SHIFT - 12) : 4000U)
#define FAR	(1000 * SECOND)

/**
 * struct subject - a queue that loses most of its timers
 * @ids: in the order in which they are cancelled
 * @cancelled: how many are gone
 * @first_moves: what its count of moves began with
 */
struct subject {
	struct test_queue queue;
	u64 *ids;
	u32 cancelled;
	u32 first_moves;
	u64 random;
};

static inline void subject_init(struct subject *subject, u32 mode)
{
	u32 i, j;
	u64 id;

	*subject = (struct subject) { .random = test_seed };
	test_queue_init(&subject->queue, mode, N, test_seed);
	subject->first_moves = subject->queue.timers.moves;
	subject->ids = test_arm_many(&subject->queue, N, FAR);
	for (i = N - 1; i > 0; i--) {
		j = test_below(&subject->random, i + 1);
		id = subject->ids[i];
		subject->ids[i] = subject->ids[j];
		subject->ids[j] = id;
	}
}

static inline void subject_free(struct subject *subject)
{
	test_queue_free(&subject->queue);
	free(subject->ids);
}

static inline struct timers *timers_of(struct subject *subject)
{
	return &subject->queue.timers;
}

static inline u32 moves_of(const struct subject *subject)
{
	return subject->queue.timers.moves - subject->first_moves;
}

static inline void cancel_one(struct subject *subject)
{
	u64 id = subject->ids[subject->cancelled++];

	assert_int_equal(test_op(&subject->queue, EXPIRY_OP_CANCEL, id).status, 0);
}

/* Cancels until only @left are there. */
static inline void cancel_to(struct subject *subject, u32 left)
{
	while (subject->cancelled < N - left)
		cancel_one(subject);
}

/* Does work that changes nothing: @count requests. */
static inline void pass(struct test_queue *queue, u32 count)
{
	static struct expiry_record batch[1024];	/* too large for the stack */
	u32 i, nr;

	for (; count; count -= nr) {
		nr = count < ARRAY_SIZE(batch) ? count : ARRAY_SIZE(batch);
		for (i = 0; i < nr; i++)
			batch[i] = (struct expiry_record) {
				.op = EXPIRY_OP_QUERY,
			};
		assert_int_equal(timers_submit(&queue->timers, batch, nr, 0),
				 nr);
	}
}

/* Cancels until moves are going on. */
static inline void cancel_until_moving(struct subject *subject)
{
	u32 moves = moves_of(subject);

	while (moves_of(subject) < moves + 20)
		cancel_one(subject);
	assert_true(slots_is_compacting(&timers_of(subject)->slots));
}

/* Marks what a scan lists, each at most once, unless @seen is NULL. */
static inline int scan_some(struct subject *subject, u8 *seen, u64 *cursor)
{
	struct expiry_record rows[7];
	int ret, i;

	ret = timers_scan(timers_of(subject), rows, ARRAY_SIZE(rows), cursor);
	for (i = 0; seen && i < ret; i++)
		assert_int_equal(seen[rows[i].cookie]++, 0);
	return ret;
}

#endif /* TESTS_CORE_LOSING_H */
