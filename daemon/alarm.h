/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Alarms: the embedded queues' deadlines on one clock.
 *
 * However many queues wait for their next deadline, the ring has one timeout a
 * clock, for the earliest of them; it is set and moved by the same submission
 * as everything else of a turn. A small binary heap, since the number of
 * queues is small beside that of timers and a queue moves at most once a turn.
 */
#ifndef DAEMON_ALARM_H
#define DAEMON_ALARM_H

#include <stdint.h>

#include "daemon/loop.h"

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
 * struct alarms - all that are set on one clock
 * @loop: whose ring has the timeout
 * @clock_id: the clock (const)
 * @ring: called among the completions of a turn or at its end for each alarm
 *	that is due, which is unset by then; it should only note that
 * @heap: [1] to [@nr], the earliest first
 * @nr_max: room in @heap
 * @op: the timeout's; @move: the request's that moves it
 * @armed_ns: what the timeout is set to, 0 = it is not
 * @time: the same, where the kernel reads it when the turn is submitted
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

/* Make room for @nr alarms, so that alarm_set() cannot fail. -ENOMEM. */
int alarms_reserve(struct alarms *alarms, uint32_t nr);

/* Set an alarm, or move it. */
void alarm_set(struct alarms *alarms, struct alarm *alarm,
	       uint64_t deadline_ns);

/* Unset an alarm; no harm if it is not set. */
void alarm_unset(struct alarms *alarms, struct alarm *alarm);

/* At the end of a turn: ring what is due, and see to it that the timeout fires
 * for the earliest of the others.
 */
void alarms_turn(struct alarms *alarms);

#endif /* DAEMON_ALARM_H */
