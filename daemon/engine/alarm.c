// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/engine/alarm.h"
#include "daemon/util/util.h"

#define ALARM_LATEST	((uint64_t)INT64_MAX)	/* latest time of the kernel's clocks */

static void alarms_fired(struct loop_op *op, int result, uint32_t flags);
static void alarms_moved(struct loop_op *op, int result, uint32_t flags);

void alarms_init(struct alarms *alarms, struct loop *loop, uint32_t clock_id,
		 void (*ring)(struct alarm *alarm))
{
	*alarms = (struct alarms) {
		.loop = loop,
		.clock_id = clock_id,
		.ring = ring,
		.op.done = alarms_fired,
		.move.done = alarms_moved,
	};
}

void alarms_deinit(struct alarms *alarms)
{
	free(alarms->heap);
	alarms->heap = NULL;
	alarms->nr_max = 0;
}

int alarms_reserve(struct alarms *alarms, uint32_t nr)
{
	uint32_t nr_max = alarms->nr_max ? alarms->nr_max : 64;
	struct alarm **heap;

	if (nr < alarms->nr_max)
		return 0;
	while (nr_max <= nr)
		nr_max *= 2;
	heap = realloc(alarms->heap, nr_max * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	alarms->heap = heap;
	alarms->nr_max = nr_max;
	return 0;
}

static void alarm_move(struct alarms *alarms, uint32_t position,
		       struct alarm *alarm)
{
	alarms->heap[position] = alarm;
	alarm->position = position;
}

static uint32_t sift_up(struct alarms *alarms, uint32_t position,
			const struct alarm *alarm)
{
	while (position > 1 &&
	       alarms->heap[position / 2]->deadline_ns > alarm->deadline_ns) {
		alarm_move(alarms, position, alarms->heap[position / 2]);
		position /= 2;
	}
	return position;
}

static uint32_t sift_down(struct alarms *alarms, uint32_t position,
			  const struct alarm *alarm)
{
	uint32_t child;

	while ((child = 2 * position) <= alarms->nr) {
		if (child < alarms->nr &&
		    alarms->heap[child + 1]->deadline_ns <
		    alarms->heap[child]->deadline_ns)
			child++;
		if (alarms->heap[child]->deadline_ns >= alarm->deadline_ns)
			break;
		alarm_move(alarms, position, alarms->heap[child]);
		position = child;
	}
	return position;
}

void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t deadline_ns)
{
	uint32_t position = alarm->position;

	if (position && alarm->deadline_ns == deadline_ns)
		return;
	alarm->deadline_ns = deadline_ns;
	if (!position)
		position = ++alarms->nr;
	assert(position <= alarms->nr && alarms->nr <= alarms->nr_max);
	position = sift_up(alarms, position, alarm);
	position = sift_down(alarms, position, alarm);
	alarm_move(alarms, position, alarm);
}

void alarm_unset(struct alarms *alarms, struct alarm *alarm)
{
	uint32_t position = alarm->position;
	struct alarm *last;

	if (!position)
		return;
	assert(position <= alarms->nr && alarms->heap[position] == alarm);
	alarm->position = 0;
	last = alarms->heap[alarms->nr--];
	if (last == alarm)
		return;
	position = sift_up(alarms, position, last);
	position = sift_down(alarms, position, last);
	alarm_move(alarms, position, last);
}

/* Rings all alarms that are due. */
static void alarms_ring(struct alarms *alarms)
{
	uint64_t now_ns = loop_now(alarms->loop, alarms->clock_id);

	while (alarms->nr && alarms->heap[1]->deadline_ns <= now_ns) {
		struct alarm *alarm = alarms->heap[1];

		alarm_unset(alarms, alarm);
		alarms->ring(alarm);
	}
}

static void alarms_fired(struct loop_op *op, int result, uint32_t flags)
{
	struct alarms *alarms = container_of(op, struct alarms, op);

	(void)flags;
	alarms->armed_ns = 0;
	if (result != -ETIME && result != -ECANCELED)
		loop_fail(alarms->loop, "timeout", result);
	alarms_ring(alarms);
}

static void alarms_moved(struct loop_op *op, int result, uint32_t flags)
{
	struct alarms *alarms = container_of(op, struct alarms, move);

	(void)flags;
	/* A timeout that fires before it is moved completes by itself. */
	if (result && result != -ENOENT && result != -EALREADY)
		loop_fail(alarms->loop, "move of a timeout", result);
}

/* Sets @alarms->time to @first_ns on the clock of timeouts. */
static void alarms_time(struct alarms *alarms, uint64_t first_ns)
{
	int64_t ahead_ns = alarms->loop->ahead_ns[loop_clock(alarms->clock_id)];
	int64_t kernel_ns;

	if (first_ns > ALARM_LATEST)
		first_ns = ALARM_LATEST;
	if (__builtin_sub_overflow((int64_t)first_ns, ahead_ns, &kernel_ns))
		kernel_ns = ALARM_LATEST;
	alarms->time = loop_timespec(kernel_ns);
}

/* Ends a turn. A timeout that is too early stays: it costs one wake-up at most.
 * Moving it would cost a request for each refresh of the first timer.
 */
void alarms_turn(struct alarms *alarms)
{
	struct io_uring_sqe *sqe;
	uint64_t first_ns;

	/* Ring due alarms, whatever the state of the timeout. */
	if (alarms->nr)
		alarms_ring(alarms);
	if (!alarms->nr)
		return;
	first_ns = alarms->heap[1]->deadline_ns;
	if (alarms->armed_ns && alarms->armed_ns <= first_ns)
		return;

	alarms_time(alarms, first_ns);
	if (alarms->armed_ns) {
		/* The timeout keeps the clock it was made with: the kernel
		 * refuses an update that names one.
		 */
		sqe = loop_sqe(alarms->loop, &alarms->move);
		io_uring_prep_timeout_update(sqe, &alarms->time,
					     (uintptr_t)&alarms->op,
					     IORING_TIMEOUT_ABS);
	} else {
		sqe = loop_sqe(alarms->loop, &alarms->op);
		io_uring_prep_timeout(sqe, &alarms->time, 0,
				      IORING_TIMEOUT_ABS |
				      loop_timeout_clock(alarms->clock_id));
	}
	alarms->armed_ns = first_ns;
}
