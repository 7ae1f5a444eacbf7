// SPDX-License-Identifier: LGPL-2.1-or-later
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/bench.h"
#include "counters.h"

const char *const counters_names[COUNTERS_NR] = {
	"instructions", "cache_misses", "dtlb_misses",
};

static const struct {
	uint32_t type;
	uint64_t config;
} events[COUNTERS_NR] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB |
	  PERF_COUNT_HW_CACHE_OP_READ << 8 |
	  PERF_COUNT_HW_CACHE_RESULT_MISS << 16 },
};

/* All are read together through the first. */
static int fds[COUNTERS_NR];

bool counters_open(void)
{
	struct perf_event_attr attr;
	int i;

	for (i = 0; i < COUNTERS_NR; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.size = sizeof(attr);
		attr.type = events[i].type;
		attr.config = events[i].config;
		attr.read_format = PERF_FORMAT_GROUP;
		attr.exclude_kernel = 1;
		attr.exclude_hv = 1;
		fds[i] = syscall(SYS_perf_event_open, &attr, 0, -1,
				 i ? fds[0] : -1, PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0)
			break;
	}
	if (i == COUNTERS_NR)
		return true;
	while (i--)
		close(fds[i]);
	return false;
}

void counters_read(uint64_t values[COUNTERS_NR])
{
	uint64_t group[1 + COUNTERS_NR];

	if (read(fds[0], group, sizeof(group)) != sizeof(group))
		die("the processor's counters cannot be read");
	memcpy(values, group + 1, sizeof(group) - sizeof(*group));
}
