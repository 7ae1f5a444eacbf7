// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/loop/time-namespace.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

#define OFFSETS_FILE	"/proc/self/timens_offsets"

/* Least unknown offset that must be found. */
#define OFFSET_UNKNOWN_NS	1000000000

/* An offset below this is used as read: on a busy machine the probe would be
 * inconclusive.
 */
#define OFFSET_PROBED_NS	100000000

/* Wait for a timeout that must not fire. */
#define PROBE_WAIT_NS		20000000
#define PROBE_TRIES		10

/**
 * struct race - two timeouts; one completes first
 * @absolute: the one that is probed; @relative: the other
 * @absolute_first: the answer, once @nr_left is below 2
 */
struct race {
	struct loop_op absolute;
	struct loop_op relative;
	struct __kernel_timespec absolute_time;
	struct __kernel_timespec relative_time;
	bool absolute_first;
	uint32_t nr_left;
};

static void absolute_fired(struct loop_op *op, int result, uint32_t flags)
{
	struct race *race = container_of(op, struct race, absolute);

	(void)result;
	(void)flags;
	if (race->nr_left-- == 2)
		race->absolute_first = true;
}

static void relative_fired(struct loop_op *op, int result, uint32_t flags)
{
	struct race *race = container_of(op, struct race, relative);

	(void)result;
	(void)flags;
	race->nr_left--;
}

/* Races a timeout at @absolute_ns against one in @wait_ns from now. Returns 1
 * if the absolute one fires first, 0 if not, or a fatal -errno.
 */
static int race_run(struct loop *loop, clockid_t clock_id, int64_t absolute_ns,
		    int64_t wait_ns)
{
	struct race race = {
		.absolute.done = absolute_fired,
		.relative.done = relative_fired,
		.absolute_time = loop_timespec(absolute_ns),
		.relative_time = loop_timespec(wait_ns),
		.nr_left = 2,
	};
	bool canceled = false;
	int r;

	io_uring_prep_timeout(loop_sqe(loop, &race.absolute),
			      &race.absolute_time, 0, IORING_TIMEOUT_ABS |
			      loop_timeout_clock(clock_id));
	io_uring_prep_timeout(loop_sqe(loop, &race.relative),
			      &race.relative_time, 0, 0);
	while (race.nr_left) {
		r = loop_turn(loop, true);
		if (r < 0)
			return r;
		if (race.nr_left != 1 || canceled)
			continue;
		loop_cancel(loop, race.absolute_first ? &race.relative :
							&race.absolute);
		canceled = true;
	}
	return race.absolute_first;
}

/* Probes whether the clock is @ahead_ns ahead of that of timeouts. If not, it
 * is wrong by @offset_ns. Returns 1 if it is, 0 if not, or a fatal -errno.
 */
static int is_ahead(struct loop *loop, clockid_t clock_id, int64_t ahead_ns,
		    int64_t offset_ns)
{
	int64_t wait_ns = min_u64(offset_ns / 8, PROBE_WAIT_NS);
	int i, late, early;
	uint64_t now_ns;

	for (i = 0; i < PROBE_TRIES; i++) {
		now_ns = loop_now_exactly(clock_id);
		late = race_run(loop, clock_id, now_ns - ahead_ns, wait_ns);
		if (late < 0)
			return late;
		if (loop_now_exactly(clock_id) - now_ns > (uint64_t)offset_ns / 4)
			continue;
		if (!late)
			return 0;
		now_ns = loop_now_exactly(clock_id);
		early = race_run(loop, clock_id,
				 now_ns + offset_ns / 2 - ahead_ns, wait_ns);
		if (early < 0)
			return early;
		if (loop_now_exactly(clock_id) - now_ns > (uint64_t)offset_ns / 4)
			continue;
		return !early;
	}
	return 0;
}

/* Reads the offsets, 0 without time namespaces. Returns false if they cannot be
 * read.
 */
static bool read_offsets(int64_t offsets_ns[LOOP_CLOCKS])
{
	FILE *file = fopen(OFFSETS_FILE, "re");
	char name[16];
	long long s;
	long ns;
	int i;

	memset(offsets_ns, 0, LOOP_CLOCKS * sizeof(*offsets_ns));
	if (!file)
		return errno == ENOENT && !access("/proc/self/stat", F_OK);
	while (fscanf(file, "%15s %lld %ld", name, &s, &ns) == 3) {
		if (!strcmp(name, "monotonic"))
			i = loop_clock(CLOCK_MONOTONIC);
		else if (!strcmp(name, "boottime"))
			i = loop_clock(CLOCK_BOOTTIME);
		else
			continue;
		offsets_ns[i] = s * 1000000000LL + ns;
	}
	fclose(file);
	return true;
}

static int probe_clock(struct loop *loop, clockid_t clock_id, int64_t offset_ns,
		       bool known)
{
	int64_t *ahead_ns = &loop->ahead_ns[loop_clock(clock_id)];
	int64_t size_ns = known ? llabs(offset_ns) : OFFSET_UNKNOWN_NS;
	int r;

	/* Timers of the epoll loop are on the clocks of this namespace. */
	if (!size_ns || !loop->ops->needs_probe)
		return 0;
	if (size_ns < OFFSET_PROBED_NS) {
		*ahead_ns = offset_ns;
		return 0;
	}
	/* A kernel that converts timeouts needs no offset. */
	r = is_ahead(loop, clock_id, 0, size_ns);
	if (!r && known) {
		*ahead_ns = offset_ns;
		r = is_ahead(loop, clock_id, offset_ns, size_ns);
	}
	return r < 0 ? r : r ? 0 : -EOPNOTSUPP;
}

int time_namespace_probe(struct loop *loop)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	int64_t offsets_ns[LOOP_CLOCKS];
	bool known = read_offsets(offsets_ns);
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int64_t offset_ns = offsets_ns[loop_clock(clocks[i])];

		if (offset_ns)
			loop->has_offsets = true;
		r = probe_clock(loop, clocks[i], offset_ns, known);
		if (r < 0) {
			log_err("timeouts of io_uring are on another clock than the daemon's: %s (a time namespace; is " OFFSETS_FILE " readable?)",
				strerror(-r));
			return r;
		}
	}
	return 0;
}
