/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers in the program itself: the operations of each library. Deadlines are
 * nanoseconds from now.
 */
#ifndef BENCH_LOCAL_H
#define BENCH_LOCAL_H

#include <stdint.h>

/**
 * struct local - a library
 * @name: in reports
 * @nr_max: most timers it can have here
 * @init: make room for @nr timers, none armed
 * @arm: timer @i, which is not armed
 * @refresh: an armed one; likewise @cancel
 * @run: until local_fired() was called @nr times
 */
struct local {
	const char *name;
	uint32_t (*nr_max)(void);
	void (*init)(uint32_t nr);
	void (*arm)(uint32_t i, uint64_t in_ns);
	void (*refresh)(uint32_t i, uint64_t in_ns);
	void (*cancel)(uint32_t i);
	void (*run)(uint64_t nr);
};

extern const struct local local;	/* the one this program is linked with */
extern uint64_t local_fired;		/* how many, since the start */

#endif /* BENCH_LOCAL_H */
