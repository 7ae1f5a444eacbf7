/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Alarms: the embedded queues' deadlines on one clock.
 *
 * The ring has one timeout a clock, for the earliest deadline of all waiting
 * queues. It is set and moved by the turn's one submission. A small binary heap
 * suffices: there are few queues beside timers, and a queue moves at most once
 * a turn.
 */
#ifndef DAEMON_ALARM_H
#define DAEMON_ALARM_H

#include <stdint.h>

#include "daemon/loop/loop.h"

/**
 * struct alarm - one deadline
 * @deadline_ns: when, on the clock of its alarms
 * @position: in the heap from 1, 0 = not set
 */
struct alarm {
	uint64_t deadline_ns;
	uint32_t position;
};

/**
 * struct alarms - all alarms on one clock
 * @loop: whose ring has the timeout
 * @clock_id: the clock (const)
 * @ring: called for each due alarm, which is then unset
 * @heap: [1] to [@nr], the earliest first
 * @nr_max: room in @heap
 * @op: the timeout's; @move: the request's that moves it
 * @armed_ns: the timeout's time, 0 = not set
 * @time: the same, for the kernel at the submission
 *
 * @ring is called among the completions of a turn or at its end. It should only
 * record the event.
 */
struct alarms {
	struct loop *loop;
	uint32_t clock_id;
	void (*ring)(struct alarm *alarm);
	struct alarm **heap;
	uint32_t nr;
	uint32_t nr_max;
	struct loop_op op;
	struct loop_op move;
	uint64_t armed_ns;
	struct __kernel_timespec time;
};

void alarms_init(struct alarms *alarms, struct loop *loop, uint32_t clock_id,
		 void (*ring)(struct alarm *alarm));
void alarms_deinit(struct alarms *alarms);

/* Makes room for @nr alarms, so that alarm_set() cannot fail. -ENOMEM. */
int alarms_reserve(struct alarms *alarms, uint32_t nr);

/* Sets an alarm, or moves it. */
void alarm_set(struct alarms *alarms, struct alarm *alarm,
	       uint64_t deadline_ns);

/* Unsets an alarm, if it is set. */
void alarm_unset(struct alarms *alarms, struct alarm *alarm);

/* Ends a turn: rings due alarms, and sets the timeout for the earliest of the
 * others.
 */
void alarms_turn(struct alarms *alarms);

#endif /* DAEMON_ALARM_H */
