// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A hierarchical timing wheel (G. Varghese and T. Lauck, "Hashed and
 * hierarchical timing wheels", 1987): 64 slots a level, a list in each, and a
 * bit for each nonempty slot, so that empty ones are skipped. A tick is the
 * grain of the deadlines, so timers come in the same exact order as with the
 * others. A wheel of coarser ticks has fewer levels and is less exact.
 */
#include <stdlib.h>

#include "bench/bench.h"
#include "peer.h"

#define TICK_NS		2000
#define BITS		6
#define SLOTS		(1U << BITS)
#define LEVELS		(64 / BITS + 1)

/**
 * struct timer - one timer
 * @pprev: the pointer that points to it
 */
struct timer {
	struct timer *next;
	struct timer **pprev;
	uint64_t tick;
	uint64_t cookie;
	void (*expired)(uint64_t cookie);
	uint32_t period_ms;
};

/**
 * struct wheel - the wheels
 * @tick: the current one
 * @used: slots that are not empty
 *
 * A timer's level is the highest digit in which its own tick differs from
 * @tick. Its slot is its own digit there.
 */
struct wheel {
	uint64_t tick;
	uint64_t used[LEVELS];
	struct timer *slots[LEVELS * SLOTS];
	struct timer timers[];
};

/* Where the next callback writes. */
static uint32_t *next_due;

static void expired(uint64_t cookie)
{
	*next_due++ = cookie;
}

static void *init(const struct peer *peer, uint32_t nr)
{
	struct wheel *wheel = malloc(sizeof(*wheel) +
				     nr * sizeof(*wheel->timers));

	(void)peer;
	if (!wheel)
		die("no memory");
	*wheel = (struct wheel) { .tick = 0 };
	return wheel;
}

static void insert(struct wheel *wheel, struct timer *timer)
{
	uint64_t differs = timer->tick ^ wheel->tick;
	uint32_t level = differs ? (63 - __builtin_clzll(differs)) / BITS : 0;
	uint32_t slot = timer->tick >> level * BITS & (SLOTS - 1);
	struct timer **list = &wheel->slots[level * SLOTS + slot];

	timer->next = *list;
	timer->pprev = list;
	if (timer->next)
		timer->next->pprev = &timer->next;
	*list = timer;
	wheel->used[level] |= 1ULL << slot;
}

static void take_out(struct wheel *wheel, struct timer *timer)
{
	uint32_t place = timer->pprev - wheel->slots;

	*timer->pprev = timer->next;
	if (timer->next)
		timer->next->pprev = timer->pprev;
	else if (place < LEVELS * SLOTS)
		wheel->used[place / SLOTS] &= ~(1ULL << place % SLOTS);
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct wheel *wheel = self;
	struct timer *timer;
	uint32_t i;

	for (i = 0; i < count; i++) {
		timer = &wheel->timers[requests[i].timer];
		if (op == PEER_ARM) {
			timer->cookie = requests[i].timer;
			timer->expired = expired;
			timer->period_ms = 0;
		} else {
			take_out(wheel, timer);
		}
		if (op != PEER_CANCEL) {
			timer->tick = requests[i].deadline_ns / TICK_NS;
			insert(wheel, timer);
		}
	}
}

/* Takes the first slot in use, unless that is after @tick. Its timers are due
 * if it is the slot of a tick; else they move to lower levels.
 */
static bool turn(struct wheel *wheel, uint64_t tick)
{
	struct timer *timer, *next;
	uint32_t level, slot;
	uint64_t begins;

	for (level = 0; level < LEVELS && !wheel->used[level]; level++)
		;
	if (level == LEVELS)
		return false;
	slot = __builtin_ctzll(wheel->used[level]);
	begins = wheel->tick >> level * BITS & ~(uint64_t)(SLOTS - 1);
	begins = (begins | slot) << level * BITS;
	if (begins > tick)
		return false;

	wheel->tick = begins;
	wheel->used[level] &= ~(1ULL << slot);
	timer = wheel->slots[level * SLOTS + slot];
	wheel->slots[level * SLOTS + slot] = NULL;
	for (; timer; timer = next) {
		next = timer->next;
		if (level)
			insert(wheel, timer);
		else
			timer->expired(timer->cookie);
	}
	return true;
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct wheel *wheel = self;
	uint64_t tick = now_ns / TICK_NS;

	next_due = due;
	while (turn(wheel, tick))
		;
	wheel->tick = tick;
	return next_due - due;
}

const struct peer peer_wheel = {
	.name = "wheel",
	.most = PEER_ANY,
	.init = init,
	.deinit = free,
	.process = process,
	.deliver = deliver,
};
