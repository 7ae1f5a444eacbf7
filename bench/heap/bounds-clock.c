// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Times an operation by the clock. Operations interrupted for another task do
 * not count. Those that met an interrupt, or a stop by the machine's host, look
 * like slow ones.
 */
#include <sys/resource.h>

#include "bounds.h"

#define LONG_NS		5000U

const char *const measure_units[] = { "ns", NULL };
const bool measure_all = false;

static u64 start_ns;
static long switched;

/* Returns how often this program was interrupted for another task. */
static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

void measure_open(const struct subject *subject)
{
	(void)subject;
	switched = switches();
}

void measure_close(void)
{
}

void measure_begin(void)
{
	start_ns = bench_now();
}

bool measure_end(uint32_t values[MEASURES_MAX])
{
	u64 took_ns = bench_now() - start_ns;
	long now;

	values[0] = took_ns < ~0U ? took_ns : ~0U;
	if (took_ns <= LONG_NS)
		return true;
	now = switches();
	if (now == switched)
		return true;
	switched = now;
	return false;
}
