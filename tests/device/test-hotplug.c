// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processors go and come while timers are set on them, of queues of one memory cgroup
 * and of two.
 *
 * Takes processor 1 away, so EXPIRY_TEST_HOTPLUG must allow it; skipped without, and
 * where there is no such processor.
 */
#define _GNU_SOURCE
#include "device.h"
#include "files.h"
#include "pressure.h"

#include <sched.h>
#include <sys/mman.h>

#define CPU_1	"/sys/devices/system/cpu/cpu1/online"

enum { QUEUES = 2 };

FIXTURE(hotplug) {
	bool on;
	int fds[QUEUES];
};

FIXTURE_VARIANT(hotplug) {
	bool two_groups;
};

FIXTURE_VARIANT_ADD(hotplug, one_group) {
	.two_groups = false,
};

FIXTURE_VARIANT_ADD(hotplug, two_groups) {
	.two_groups = true,
};

FIXTURE_SETUP(hotplug)
{
	static const clockid_t clocks[QUEUES] = {
		CLOCK_MONOTONIC, CLOCK_REALTIME,
	};
	const char *why;
	int i;

	if (!getenv("EXPIRY_TEST_HOTPLUG"))
		SKIP(return, "EXPIRY_TEST_HOTPLUG does not allow it");
	if (read_number(CPU_1, "") != 1 || access(CPU_1, W_OK))
		SKIP(return, CPU_1 ": %s", strerror(errno));
	why = variant->two_groups ? group_make() : NULL;
	if (why)
		SKIP(return, "%s", why);
	self->on = true;
	for (i = 0; i < QUEUES; i++) {
		if (i && variant->two_groups)
			ASSERT_EQ(0, group_enter());
		self->fds[i] = queue_new_flags(clocks[i], EXPIRY_MODE_KEYED,
					       O_NONBLOCK);
		ASSERT_LE(0, self->fds[i]);
	}
}

FIXTURE_TEARDOWN(hotplug)
{
	int i;

	if (!self->on)
		return;
	write_text(CPU_1, "1");
	for (i = 0; i < QUEUES; i++)
		close(self->fds[i]);
	if (variant->two_groups) {
		group_leave();
		group_remove();
	}
}

static int move_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* A queue's timer is set on the processor of the last call. */
TEST_F(hotplug, timers_of_a_processor_that_goes_expire)
{
	enum { ROUNDS = 8 };
	struct expiry_record record;
	int i, round;

	if (!self->on)
		return;	/* skipped */
	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(0, move_to(1));
		for (i = 0; i < QUEUES; i++) {
			record = arm_in(100 * NSEC_PER_MSEC, round);
			record.id = 1;
			ASSERT_EQ(0, request(self->fds[i], &record));
		}
		ASSERT_EQ(0, move_to(0));
		ASSERT_EQ(0, write_text(CPU_1, "0"));
		for (i = 0; i < QUEUES; i++) {
			ASSERT_EQ(1, receive_wait(self->fds[i], &record, 1));
			EXPECT_EQ(round, record.cookie);
			EXPECT_LE(record.deadline_ns,
				  clock_ns(i ? CLOCK_REALTIME : CLOCK_MONOTONIC));
		}
		ASSERT_EQ(0, write_text(CPU_1, "1"));
	}
}

/* Takes the processor away and back until the parent has written to @stop. */
static int toggle(const int *stop)
{
	int rounds = 0;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED) || rounds < 2) {
		if (write_text(CPU_1, "0") || write_text(CPU_1, "1"))
			return 1;
		rounds++;
	}
	return 0;
}

/* Work items, pages and timers, from whichever processor there is. */
TEST_F(hotplug, queues_are_used_while_a_processor_goes_and_comes)
{
	enum { TIMERS = 2000, ROUNDS = 30 };
	static struct expiry_record records[TIMERS];
	int i, j, nr, got, round, ret = 0;
	int *stop;
	pid_t pid;

	if (!self->on)
		return;	/* skipped */
	stop = mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, stop);
	pid = fork();
	if (!pid)
		_exit(toggle(stop));
	for (round = 0; round < ROUNDS && ret >= 0; round++) {
		i = round % QUEUES;
		for (j = 0; j < TIMERS; j++) {
			records[j] = arm_in(j % 7 * NSEC_PER_MSEC, j);
			records[j].id = j + 1;
		}
		nr = 0;
		ret = submit(self->fds[i], records, TIMERS);
		EXPECT_EQ(TIMERS, ret);
		for (got = 0; got < TIMERS && ret >= 0; got += nr) {
			ret = receive_wait(self->fds[i], records, TIMERS);
			nr = ret > 0 ? ret : 0;
		}
		EXPECT_EQ(TIMERS, got);
		EXPECT_EQ(0, queue_armed(self->fds[i]));
	}
	__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
	EXPECT_EQ(0, child_status(pid));
	munmap(stop, sizeof(*stop));
}

TEST_HARNESS_MAIN
