// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A red-black tree with a pointer to its leftmost node, like the kernel's
 * hrtimers; the tree is BSD's <sys/tree.h>.
 */
#include <stdlib.h>
#include <bsd/sys/tree.h>

#include "bench/bench.h"
#include "peer.h"

struct timer {
	RB_ENTRY(timer) node;
	uint64_t deadline_ns;
	uint64_t cookie;
	void (*expired)(uint64_t cookie);
	uint32_t period_ms;
};

RB_HEAD(tree, timer);

struct rbtree {
	struct tree tree;
	struct timer *first;
	struct timer timers[];
};

/* Never returns 0: the tree refuses an equal node. */
static int compare(const struct timer *a, const struct timer *b)
{
	if (a->deadline_ns != b->deadline_ns)
		return a->deadline_ns < b->deadline_ns ? -1 : 1;
	return (a > b) - (a < b);
}

/* RB_GENERATE_STATIC() needs a macro that glibc's headers do not define. */
RB_GENERATE_INTERNAL(tree, timer, node, compare,
		     static __attribute__((unused)))

/* Where the next callback writes. */
static uint32_t *next_due;

static void expired(uint64_t cookie)
{
	*next_due++ = cookie;
}

static void *init(const struct peer *peer, uint32_t nr)
{
	struct rbtree *rbtree = malloc(sizeof(*rbtree) +
				       nr * sizeof(*rbtree->timers));

	(void)peer;
	if (!rbtree)
		die("no memory");
	RB_INIT(&rbtree->tree);
	rbtree->first = NULL;
	return rbtree;
}

static void insert(struct rbtree *rbtree, struct timer *timer,
		   uint64_t deadline_ns)
{
	timer->deadline_ns = deadline_ns;
	RB_INSERT(tree, &rbtree->tree, timer);
	if (!rbtree->first || compare(timer, rbtree->first) < 0)
		rbtree->first = timer;
}

static void erase(struct rbtree *rbtree, struct timer *timer)
{
	if (timer == rbtree->first)
		rbtree->first = RB_NEXT(tree, &rbtree->tree, timer);
	RB_REMOVE(tree, &rbtree->tree, timer);
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct rbtree *rbtree = self;
	struct timer *timer;
	uint32_t i;

	for (i = 0; i < count; i++) {
		timer = &rbtree->timers[requests[i].timer];
		if (op == PEER_ARM) {
			timer->cookie = requests[i].timer;
			timer->expired = expired;
			timer->period_ms = 0;
		} else {
			erase(rbtree, timer);
		}
		if (op != PEER_CANCEL)
			insert(rbtree, timer, requests[i].deadline_ns);
	}
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct rbtree *rbtree = self;
	struct timer *timer;

	next_due = due;
	while (rbtree->first && rbtree->first->deadline_ns <= now_ns) {
		timer = rbtree->first;
		erase(rbtree, timer);
		timer->expired(timer->cookie);
	}
	return next_due - due;
}

const struct peer peer_rbtree = {
	.name = "rbtree",
	.most = PEER_HUGE,
	.init = init,
	.deinit = free,
	.process = process,
	.deliver = deliver,
};
