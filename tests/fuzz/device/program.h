/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The format of a program file: a head with the queues and the number of
 * threads, then calls of eight bytes each. Those threads make them one after
 * the other. All bytes are valid, and most calls are nearly right: they take
 * their arguments from small tables of good values and few bad ones.
 */
#ifndef FUZZ_DEVICE_PROGRAM_H
#define FUZZ_DEVICE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#define QUEUES		4
#define THREADS		3
#define CALLS_MAX	48

/**
 * struct queue_head - a queue before the first call
 * @setup: bits: 0-1 clock, 2 acknowledging, 3 keyed, 4 another layout,
 *	5 may block, 6 not configured, 7 not even open
 * @limit: one of limit_of(); bit 4: the other layout is radix pages, not subtrees
 * @fill: timers armed beforehand, one of count_of()
 */
struct queue_head {
	uint8_t setup;
	uint8_t limit;
	uint8_t fill;
};

#define SETUP_CLOCK	0x03
#define SETUP_ACK	0x04
#define SETUP_KEYED	0x08
#define SETUP_LAYOUT	0x10
#define SETUP_BLOCKS	0x20
#define SETUP_RAW	0x40
#define SETUP_CLOSED	0x80

#define LIMIT_RADIX	0x10

/**
 * struct program_head - the first bytes
 * @threads: % THREADS + 1
 * @params: of the module, one of params_set(); 0 = as they are
 * @queues: what each begins as
 */
struct program_head {
	uint8_t threads;
	uint8_t params;
	struct queue_head queues[QUEUES];
};

/**
 * struct call - one call
 * @kind: % CALL_KINDS
 * @where: bits: 0-1 thread, 2-3 queue, 4-7 the call's own
 * @place: where in memory, see place_of()
 * @count: how many or how much, see count_of() and size_of()
 * @what: the call's own
 * @when: a deadline, see deadline_of()
 * @more: the call's own; of a batch, bits: 0 deadlines differ, 1 LATER, 2 NEW,
 *	3 periodic, 4 ids one after the other, 5-7 from where on
 * @seed: of what is drawn by chance
 */
struct call {
	uint8_t kind;
	uint8_t where;
	uint8_t place;
	uint8_t count;
	uint8_t what;
	uint8_t when;
	uint8_t more;
	uint8_t seed;
};

struct program {
	struct program_head head;
	struct call calls[CALLS_MAX];
};

#define PROGRAM_MIN	(sizeof(struct program_head) + sizeof(struct call))
#define PROGRAM_MAX	sizeof(struct program)

_Static_assert(sizeof(struct call) == 8, "a call is eight bytes");
_Static_assert(PROGRAM_MAX == 14 + 8 * CALLS_MAX, "no padding");

static inline unsigned int call_thread(const struct call *call,
				       unsigned int threads)
{
	return (call->where & 3) % threads;
}

static inline unsigned int call_queue(const struct call *call)
{
	return call->where >> 2 & 3;
}

/* The bits of @where that are the call's own. */
static inline unsigned int call_how(const struct call *call)
{
	return call->where >> 4;
}

/* Returns how many whole calls @size bytes of a program have. */
static inline unsigned int program_calls(size_t size)
{
	if (size < sizeof(struct program_head))
		return 0;
	if (size > PROGRAM_MAX)
		size = PROGRAM_MAX;
	return (size - sizeof(struct program_head)) / sizeof(struct call);
}

#endif /* FUZZ_DEVICE_PROGRAM_H */
