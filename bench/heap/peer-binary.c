// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The usual home-made binary heap: an array of {deadline, timer}
 * (bench/sift.h), each timer with its position, so that it can be moved and
 * removed.
 */
#include <stdlib.h>

#include "bench/bench.h"
#include "peer.h"

/**
 * struct timer - a timer, with the fields of a slot of expiry
 * @place: in the heap
 */
struct timer {
	uint64_t deadline_ns;
	uint64_t cookie;
	void (*expired)(uint64_t cookie);
	uint32_t period_ms;
	uint32_t place;
};

struct entry {
	uint64_t deadline;
	struct timer *timer;
};

/**
 * struct binary - the heap
 * @heap: from element 1
 */
struct binary {
	struct entry *heap;
	uint32_t nr;
	struct timer timers[];
};

#define SIFT_HEAP	struct binary
#define SIFT_NODE	struct entry

#include "bench/sift.h"

static inline void sift_moved(struct binary *binary, uint32_t pos,
			      const struct entry *entry)
{
	(void)binary;
	entry->timer->place = pos;
}

/* Where the next callback writes. */
static uint32_t *next_due;

static void expired(uint64_t cookie)
{
	*next_due++ = cookie;
}

static void *init(const struct peer *peer, uint32_t nr)
{
	struct binary *binary = malloc(sizeof(*binary) +
				       nr * sizeof(*binary->timers));

	(void)peer;
	if (!binary)
		die("no memory");
	binary->nr = 0;
	binary->heap = malloc((nr + 1ULL) * sizeof(*binary->heap));
	if (!binary->heap)
		die("no memory");
	return binary;
}

static void deinit(void *self)
{
	struct binary *binary = self;

	free(binary->heap);
	free(binary);
}

/* Puts @entry at @place, or at its position from there. */
static void move(struct binary *binary, uint32_t place, struct entry entry)
{
	if (place > 1 && binary->heap[place / 2].deadline > entry.deadline)
		sift_up(binary, binary->heap, place, &entry, 2);
	else
		sift_down(binary, binary->heap, place, binary->nr + 1, &entry,
			  2, true);
}

static void take_out(struct binary *binary, uint32_t place)
{
	struct entry last = binary->heap[binary->nr--];

	if (place <= binary->nr)
		move(binary, place, last);
}

static void arm(struct binary *binary, struct timer *timer,
		uint64_t deadline_ns, uint64_t cookie)
{
	struct entry entry = { deadline_ns, timer };

	timer->deadline_ns = deadline_ns;
	timer->cookie = cookie;
	timer->expired = expired;
	timer->period_ms = 0;
	sift_up(binary, binary->heap, ++binary->nr, &entry, 2);
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct binary *binary = self;
	struct entry entry;
	uint32_t i;

	for (i = 0; i < count; i++) {
		entry.timer = &binary->timers[requests[i].timer];
		entry.deadline = requests[i].deadline_ns;
		switch (op) {
		case PEER_ARM:
			arm(binary, entry.timer, entry.deadline,
			    requests[i].timer);
			break;
		case PEER_REFRESH:
			entry.timer->deadline_ns = entry.deadline;
			move(binary, entry.timer->place, entry);
			break;
		default:
			take_out(binary, entry.timer->place);
			break;
		}
	}
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct binary *binary = self;
	struct timer *timer;

	next_due = due;
	while (binary->nr && binary->heap[1].deadline <= now_ns) {
		timer = binary->heap[1].timer;
		take_out(binary, 1);
		timer->expired(timer->cookie);
	}
	return next_due - due;
}

const struct peer peer_binary = {
	.name = "binary",
	.most = PEER_HUGE,
	.init = init,
	.deinit = deinit,
	.process = process,
	.deliver = deliver,
};
