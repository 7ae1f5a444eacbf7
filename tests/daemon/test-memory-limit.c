// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory that the daemon assumes, on machines made up of a few files, and
 * its plans for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/util/config.h"
#include "daemon/util/memory-limit.h"
#include "tests/fake-root.h"

#define MIB	(1ULL << 20)

static uint64_t limit(void)
{
	bool is_group;
	uint64_t bytes = memory_limit(fake_root, &is_group);

	/* No machine that this runs on has less. */
	assert_int_equal(is_group, bytes < 512 * MIB);
	return bytes;
}

static void without_groups_it_is_the_machines(void **arg)
{
	uint64_t machine = limit();

	(void)arg;
	assert_true(machine >= 512 * MIB && machine < 1ULL << 48);
	fake_root_put("/proc/self/cgroup", "0::/a/b");
	assert_int_equal(limit(), machine);
	fake_root_put("/sys/fs/cgroup/a/b/memory.max", "max");
	fake_root_put("/sys/fs/cgroup/a/memory.max", "18446744073709551615");
	assert_int_equal(limit(), machine);
	fake_root_put("/sys/fs/cgroup/a/b/memory.max", "");
	fake_root_put("/sys/fs/cgroup/a/memory.max", "garbage");
	assert_int_equal(limit(), machine);
}

static void least_of_all_groups_above(void **arg)
{
	(void)arg;
	fake_root_put("/proc/self/cgroup", "0::/a.slice/b.service");
	fake_root_put("/sys/fs/cgroup/a.slice/b.service/memory.max", "300000000");
	assert_int_equal(limit(), 300000000);
	fake_root_put("/sys/fs/cgroup/a.slice/memory.max", "200000000");
	assert_int_equal(limit(), 200000000);
	fake_root_put("/sys/fs/cgroup/memory.max", "100000000");
	assert_int_equal(limit(), 100000000);
	fake_root_put("/sys/fs/cgroup/a.slice/b.service/memory.max", "50000000");
	assert_int_equal(limit(), 50000000);
	/* Where the group is slowed down. */
	fake_root_put("/sys/fs/cgroup/a.slice/b.service/memory.high", "40000000");
	assert_int_equal(limit(), 40000000);
	/* Another's does not matter. */
	fake_root_put("/sys/fs/cgroup/a.slice/b.service/c/memory.max", "1");
	fake_root_put("/sys/fs/cgroup/a.slice/d.service/memory.max", "1");
	assert_int_equal(limit(), 40000000);
}

static void group_at_the_top(void **arg)
{
	(void)arg;
	fake_root_put("/proc/self/cgroup", "0::/");
	fake_root_put("/sys/fs/cgroup/memory.max", "70000000");
	assert_int_equal(limit(), 70000000);
}

static void version_1_and_both(void **arg)
{
	(void)arg;
	fake_root_put("/proc/self/cgroup",
	    "4:memory:/x/y\\n3:cpu,cpuacct:/z\\n1:name=systemd:/s\\n0::/u");
	fake_root_put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "200000000");
	fake_root_put("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes",
	    "9223372036854771712");
	assert_int_equal(limit(), 200000000);
	fake_root_put("/sys/fs/cgroup/unified/u/memory.max", "150000000");
	assert_int_equal(limit(), 150000000);
	fake_root_put("/sys/fs/cgroup/memory/z/memory.limit_in_bytes", "1");
	fake_root_put("/sys/fs/cgroup/memory/s/memory.limit_in_bytes", "1");
	assert_int_equal(limit(), 150000000);
	fake_root_put("/proc/self/cgroup", "4:hugetlb,memory:/x");
	assert_int_equal(limit(), 200000000);
}

static void strange_groups_are_passed_over(void **arg)
{
	uint64_t machine = limit();

	(void)arg;
	fake_root_put("/sys/fs/memory.max", "1");
	fake_root_put("/sys/fs/cgroup/x/memory.max", "1");
	fake_root_put("/proc/self/cgroup", "0::/../x");
	assert_int_equal(limit(), machine);
	fake_root_put("/proc/self/cgroup", "0:\\n0\\n\\nnonsense\\n:::\\n::");
	assert_int_equal(limit(), machine);
	fake_root_put("/sys/fs/cgroup/memory.max", "90000000");
	fake_root_put("/proc/self/cgroup", "0:://");
	assert_int_equal(limit(), 90000000);
}

static struct memory_plan plan(uint64_t bytes, uint64_t memory,
			       uint64_t backlog, uint64_t threads)
{
	const struct config config = {
		.threads = threads,
		.buffers = 256,
		.buffer_size = 16384,
		.memory = memory,
		.backlog_memory = backlog,
	};
	struct memory_plan plan;
	char text[32];

	fake_root_put("/proc/self/cgroup", "0::/g");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	fake_root_put("/sys/fs/cgroup/g/memory.max", text);
	memory_plan_init(&plan, &config, fake_root);
	assert_int_equal(plan.limit, bytes);
	return plan;
}

static void all_of_the_plan_fits(void **arg)
{
	uint64_t bytes, threads;
	struct memory_plan some;

	(void)arg;
	for (bytes = 64 * MIB; bytes < 512 * MIB; bytes += 96 * MIB) {
		for (threads = 1; threads <= 4; threads += 3) {
			some = plan(bytes, 0, 0, threads);
			assert_true(some.timers <= bytes / 4 * 3);
			assert_true(some.timers >= bytes / 4);
			assert_true(some.timers + some.backlog +
				    threads * 6 * MIB + bytes / 16 <= bytes);
			assert_true(some.backlog >= bytes / 16);
		}
	}
	/* Explicit settings are unchanged. */
	some = plan(256 * MIB, 1ULL << 48, 1ULL << 48, 1);
	assert_int_equal(some.timers, 1ULL << 48);
	assert_int_equal(some.backlog, 1ULL << 48);
	some = plan(256 * MIB, 5 * MIB, 0, 1);
	assert_int_equal(some.timers, 5 * MIB);
	assert_int_equal(some.backlog, 32 * MIB);
	/* Too much of one leaves a little of the other. */
	some = plan(256 * MIB, 0, 1ULL << 48, 1);
	assert_int_equal(some.timers, 32 * MIB);
	some = plan(256 * MIB, 0, 100 * MIB, 1);
	assert_int_equal(some.timers, 256 * MIB - 100 * MIB - 6 * MIB -
			 16 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(without_groups_it_is_the_machines,
					  fake_root_clear),
		cmocka_unit_test_teardown(least_of_all_groups_above, fake_root_clear),
		cmocka_unit_test_teardown(group_at_the_top, fake_root_clear),
		cmocka_unit_test_teardown(version_1_and_both, fake_root_clear),
		cmocka_unit_test_teardown(strange_groups_are_passed_over,
					  fake_root_clear),
		cmocka_unit_test_teardown(all_of_the_plan_fits, fake_root_clear),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, fake_root_make, fake_root_remove);
}
