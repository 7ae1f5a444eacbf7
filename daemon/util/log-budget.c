// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/util/log-budget.h"
#include "daemon/util/util.h"

/**
 * struct bucket - tokens for lines
 * @last_s: when @tokens was last refilled, CLOCK_MONOTONIC
 * @uid: its user, LOG_NOBODY = of none
 * @is_used: a user has this bucket
 * @left_out: refused lines, not yet reported
 */
struct bucket {
	time_t last_s;
	uint32_t tokens;
	uid_t uid;
	bool is_used;
	uint64_t left_out;
};

/* The last bucket is for users beyond the table and for LOG_NOBODY. */
static struct bucket users[LOG_USERS + 1] = {
	[LOG_USERS] = { .uid = LOG_NOBODY, .tokens = LOG_USER_BURST },
};

static struct bucket all = { .tokens = LOG_ALL_BURST };

static void refill(struct bucket *bucket, time_t now_s, uint32_t burst,
		   uint32_t per_second)
{
	time_t passed = now_s - bucket->last_s;

	if (passed <= 0)
		return;
	bucket->last_s = now_s;
	if (passed > burst)
		passed = burst;
	bucket->tokens += passed * per_second;
	if (bucket->tokens > burst)
		bucket->tokens = burst;
}

static bool is_free(struct bucket *bucket, time_t now_s)
{
	if (!bucket->is_used)
		return true;
	refill(bucket, now_s, LOG_USER_BURST, LOG_USER_PER_SECOND);
	return bucket->tokens == LOG_USER_BURST && !bucket->left_out;
}

static struct bucket *bucket_of(uid_t uid, time_t now_s)
{
	struct bucket *free = NULL, *shared = &users[LOG_USERS];
	struct bucket *bucket;

	for (bucket = users; bucket < shared && uid != LOG_NOBODY; bucket++) {
		if (bucket->is_used && bucket->uid == uid)
			return bucket;
		if (!free && is_free(bucket, now_s))
			free = bucket;
	}
	if (!free)
		return shared;
	*free = (struct bucket) {
		.last_s = now_s,
		.tokens = LOG_USER_BURST,
		.uid = uid,
		.is_used = true,
	};
	return free;
}

bool log_budget_take(uid_t uid, time_t now_s)
{
	struct bucket *bucket = bucket_of(uid, now_s);

	refill(bucket, now_s, LOG_USER_BURST, LOG_USER_PER_SECOND);
	refill(&all, now_s, LOG_ALL_BURST, LOG_ALL_PER_SECOND);
	if (!bucket->tokens || !all.tokens) {
		bucket->left_out++;
		return false;
	}
	bucket->tokens--;
	all.tokens--;
	return true;
}

uint64_t log_budget_left_out(size_t *cursorp, uid_t *uidp)
{
	struct bucket *bucket;
	uint64_t left_out;

	while (*cursorp < ARRAY_SIZE(users)) {
		bucket = &users[(*cursorp)++];
		left_out = bucket->left_out;
		if (!left_out)
			continue;
		bucket->left_out = 0;
		*uidp = bucket->uid;
		return left_out;
	}
	return 0;
}
