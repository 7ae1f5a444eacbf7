// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kept programs of the fuzzer (tests/fuzz/seeds/device), each run once,
 * without the fuzzer: past findings must not return. FUZZ_SEEDS is their file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fuzz/device/report.h"
#include "../fuzz/device/state.h"
#include "../fuzz/device/threads.h"
#include "../fuzz/seeds.h"

#define SKIPPED	4

static bool live_through(const struct seed *seed)
{
	unsigned int before = findings();

	/* Print it before, so that a crash shows its program. */
	printf("# %s\n", seed->name);
	fflush(stdout);
	program_run(seed->data, seed->size);
	return findings() == before;
}

int main(void)
{
	const char *settime = getenv("EXPIRY_TEST_SETTIME");
	FILE *file = fopen(FUZZ_SEEDS, "r");
	unsigned int i, nr, failed = 0;
	struct seed seed;
	bool passed;

	printf("TAP version 13\n");
	if (getenv("EXPIRY_DEVICE"))
		options.device = getenv("EXPIRY_DEVICE");
	if (!file || access(options.device, R_OK | W_OK)) {
		printf("1..0 # SKIP %s\n", file ? options.device : "no seeds");
		return SKIPPED;
	}
	options.settime = settime && !strcmp(settime, "1");
	state_init();
	threads_start(NULL);
	nr = seeds_count(file);
	printf("1..%u\n", nr);
	for (i = 0; i < nr; i++) {
		passed = seeds_next(file, &seed) && live_through(&seed);
		printf("%sok %u %s\n", passed ? "" : "not ", i + 1, seed.name);
		failed += !passed;
	}
	fclose(file);
	return failed ? 1 : 0;
}
