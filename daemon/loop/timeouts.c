// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/loop/timeouts.h"

#define TIMEOUTS_MIN	256

/* Of the heap, for the few timeouts that the daemon cannot be without. */
#define TIMEOUTS_RESERVED	16

int timeouts_init(struct timeouts *timeouts, clockid_t clock_id)
{
	*timeouts = (struct timeouts) {
		.clock_id = clock_id,
		.nr_max = TIMEOUTS_MIN,
		.heap = calloc(TIMEOUTS_MIN + 1, sizeof(*timeouts->heap)),
		.fd = timerfd_create(clock_id, TFD_CLOEXEC),
	};
	if (timeouts->fd < 0)
		return -errno;
	return timeouts->heap ? 0 : -ENOMEM;
}

void timeouts_deinit(struct timeouts *timeouts)
{
	if (timeouts->fd >= 0)
		close(timeouts->fd);
	timeouts->fd = -1;
	free(timeouts->heap);
	timeouts->heap = NULL;
}

static void timeouts_put(struct timeouts *timeouts, uint32_t position,
			 struct loop_op *op)
{
	timeouts->heap[position] = op;
	op->request.position = position;
}

/* Puts @op where it belongs, from the hole at @position on. */
static void timeouts_sift(struct timeouts *timeouts, uint32_t position,
			  struct loop_op *op)
{
	struct loop_op **heap = timeouts->heap;
	uint64_t deadline_ns = op->request.deadline_ns;
	uint32_t child;

	while (position > 1 &&
	       heap[position / 2]->request.deadline_ns > deadline_ns) {
		timeouts_put(timeouts, position, heap[position / 2]);
		position /= 2;
	}
	while ((child = 2 * position) <= timeouts->nr) {
		if (child < timeouts->nr &&
		    heap[child + 1]->request.deadline_ns <
		    heap[child]->request.deadline_ns)
			child++;
		if (heap[child]->request.deadline_ns >= deadline_ns)
			break;
		timeouts_put(timeouts, position, heap[child]);
		position = child;
	}
	timeouts_put(timeouts, position, op);
}

static int timeouts_grow(struct timeouts *timeouts)
{
	uint32_t nr_max = 2 * timeouts->nr_max;
	struct loop_op **heap = realloc(timeouts->heap,
					(nr_max + 1) * sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	timeouts->heap = heap;
	timeouts->nr_max = nr_max;
	return 0;
}

int timeouts_add(struct timeouts *timeouts, struct loop_op *op, bool many)
{
	uint32_t reserved = many ? TIMEOUTS_RESERVED : 0;

	if (timeouts->nr + reserved >= timeouts->nr_max &&
	    timeouts_grow(timeouts))
		return -ENOMEM;
	timeouts->nr++;
	timeouts_sift(timeouts, timeouts->nr, op);
	return 0;
}

void timeouts_remove(struct timeouts *timeouts, struct loop_op *op)
{
	uint32_t position = op->request.position;
	struct loop_op *last;

	if (!position)
		return;
	op->request.position = 0;
	last = timeouts->heap[timeouts->nr--];
	if (last != op)
		timeouts_sift(timeouts, position, last);
}

struct loop_op *timeouts_take(struct timeouts *timeouts, uint64_t now_ns)
{
	struct loop_op *first = timeouts->nr ? timeouts->heap[1] : NULL;

	if (!first || first->request.deadline_ns > now_ns)
		return NULL;
	timeouts_remove(timeouts, first);
	return first;
}

int timeouts_arm(struct timeouts *timeouts)
{
	uint64_t first_ns = timeouts->nr ?
			    timeouts->heap[1]->request.deadline_ns : 0;
	struct itimerspec at = {
		.it_value.tv_sec = first_ns / 1000000000,
		.it_value.tv_nsec = first_ns % 1000000000,
	};

	if (!timeouts->fired &&
	    (!first_ns ||
	     (timeouts->armed_ns && timeouts->armed_ns <= first_ns)))
		return 0;
	/* It is not readable after that until the new time has come. */
	if (timerfd_settime(timeouts->fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		return -errno;
	timeouts->armed_ns = first_ns;
	timeouts->fired = false;
	return 0;
}
