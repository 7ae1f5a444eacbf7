/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Timers in turn and their expirations, for the programs about deliveries. */
#ifndef TESTS_CORE_EXPIRED_H
#define TESTS_CORE_EXPIRED_H

#include "support.h"

static inline void expect(const struct expiry_record *record, u64 id,
			  u64 deadline_ns, u32 count, u8 flags)
{
	assert_int_equal(record->op, EXPIRY_OP_EXPIRED);
	assert_int_equal(record->status, 0);
	assert_int_equal(record->flags, flags);
	assert_int_equal(record->count, count);
	assert_true(record->id == id);
	assert_true(record->deadline_ns == deadline_ns);
}

/* Returns one delivery at @now_ns, or none, in *@record. */
static inline u32 one(struct test_queue *queue, struct expiry_record *record,
		      u64 now_ns)
{
	memset(record, 0xee, sizeof(*record));
	return test_deliver(queue, record, 1, now_ns);
}

/* Arms @n timers, due one nanosecond after the other from @from_ns on. */
static inline void arm_in_turn(struct test_queue *queue, u64 *ids, u32 n,
			       u64 from_ns)
{
	u32 i;

	for (i = 0; i < n; i++)
		ids[i] = test_arm(queue, 0, from_ns + i, i, 0).id;
}

#endif /* TESTS_CORE_EXPIRED_H */
