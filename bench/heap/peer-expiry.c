// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiry: the joined structure of core/, plain and keyed, on either layout of
 * the heap. Batches of records go through timers_submit(). Making them and
 * storing the names of a plain queue is the client's work, and not timed.
 */
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/subject.h"
#include "peer.h"

/**
 * struct expiry - a queue and its client
 * @ids: names of the timers on a plain queue
 * @records: of the current batch
 */
struct expiry {
	struct subject subject;
	bool keyed;
	uint32_t nr;
	uint64_t now_ns;
	uint64_t *ids;
	struct expiry_record records[PEER_BATCH];
};

/* An odd factor: every key once, and none near the last. */
static uint64_t key(uint32_t timer)
{
	return (timer + 1ULL) * 0x9e3779b97f4a7c15;
}

static void *init(const struct peer *peer, uint32_t nr)
{
	struct expiry *expiry = calloc(1, sizeof(*expiry));
	const struct bheap_layout *layout = &bheap_subtree;

	if (!expiry)
		die("no memory");
	if (peer == &peer_sorted_plain || peer == &peer_sorted_keyed)
		layout = &bheap_sorted;
	if (peer == &peer_radix_plain || peer == &peer_radix_keyed)
		layout = &bheap_radix;
	expiry->keyed = peer == &peer_sorted_keyed ||
			peer == &peer_radix_keyed ||
			peer == &peer_subtree_keyed;
	expiry->nr = nr;
	subject_init(&expiry->subject, layout, expiry->keyed, nr);
	if (!expiry->keyed)
		expiry->ids = bench_map(nr * sizeof(*expiry->ids));
	return expiry;
}

static void deinit(void *self)
{
	struct expiry *expiry = self;

	if (expiry->ids)
		bench_unmap(expiry->ids, expiry->nr * sizeof(*expiry->ids));
	subject_deinit(&expiry->subject);
	free(expiry);
}

static void prepare(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	static const uint8_t ops[PEER_OPS] = {
		[PEER_ARM] = EXPIRY_OP_ARM,
		[PEER_REFRESH] = EXPIRY_OP_REFRESH,
		[PEER_CANCEL] = EXPIRY_OP_CANCEL,
	};
	struct expiry *expiry = self;
	uint32_t i, timer;
	uint64_t id;

	for (i = 0; i < count; i++) {
		timer = requests[i].timer;
		if (expiry->keyed)
			id = key(timer);
		else
			id = op == PEER_ARM ? 0 : expiry->ids[timer];
		expiry->records[i] = (struct expiry_record) {
			.op = ops[op],
			.id = id,
			.deadline_ns = requests[i].deadline_ns,
			.cookie = timer,
		};
	}
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct expiry *expiry = self;

	(void)op;
	(void)requests;
	if (timers_submit(&expiry->subject.timers, expiry->records, count,
			  expiry->now_ns) != count)
		die("a batch was cut short");
}

static void learn(void *self, enum peer_op op,
		  const struct peer_request *requests, uint32_t count)
{
	struct expiry *expiry = self;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (expiry->records[i].status)
			die("op %u was refused: %d", expiry->records[i].op,
			    expiry->records[i].status);
		if (op == PEER_ARM && !expiry->keyed)
			expiry->ids[requests[i].timer] = expiry->records[i].id;
	}
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct expiry *expiry = self;
	struct timers *timers = &expiry->subject.timers;
	uint32_t nr = 0;
	int i, ret;

	expiry->now_ns = now_ns;
	while (timers_due(timers, now_ns)) {
		ret = timers_deliver(timers, expiry->records, PEER_BATCH,
				     now_ns, false);
		if (ret < 0)
			die("timers_deliver() failed: %d", ret);
		for (i = 0; i < ret; i++)
			due[nr++] = expiry->records[i].cookie;
	}
	return nr;
}

static uint64_t bytes(const void *self)
{
	const struct expiry *expiry = self;

	return subject_bytes(&expiry->subject);
}

static const char *version(void)
{
	return EXPIRY_VERSION;
}

#define PEER_EXPIRY(its_name, its_most)					\
	{								\
		.name = its_name,					\
		.most = its_most,					\
		.version = version,					\
		.lazy = true,						\
		.init = init,						\
		.deinit = deinit,					\
		.prepare = prepare,					\
		.process = process,					\
		.learn = learn,						\
		.deliver = deliver,					\
		.bytes = bytes,						\
	}

const struct peer peer_sorted_plain = PEER_EXPIRY("sorted-plain", PEER_ANY);
const struct peer peer_sorted_keyed = PEER_EXPIRY("sorted-keyed", PEER_ANY);
const struct peer peer_radix_plain = PEER_EXPIRY("radix-plain", PEER_ANY);
const struct peer peer_radix_keyed = PEER_EXPIRY("radix-keyed", PEER_ANY);
const struct peer peer_subtree_plain = PEER_EXPIRY("subtree-plain", PEER_ANY);
/* Keyed subtree pages differ from plain ones as keyed sorted pages do. */
const struct peer peer_subtree_keyed =
	PEER_EXPIRY("subtree-keyed", PEER_LARGE);
