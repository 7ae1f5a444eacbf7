// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A fuzz target without a fuzzer: replays the given files or, without any, all
 * its seeds. Prints TAP.
 *
 *	replay-TARGET [FILE...]
 */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "seeds.h"

#define SIZE_MAX_READ	65536

static void replay(const char *name, const uint8_t *data, size_t size,
		   unsigned int number)
{
	/* ASan detects reading a byte behind the last one. */
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, data, size);
	/* Print it before, so that a crash shows its program. */
	printf("# %s\n", name);
	fflush(stdout);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	printf("ok %u\n", number);
}

static int replay_files(char **paths, int nr)
{
	static uint8_t data[SIZE_MAX_READ];
	size_t size;
	FILE *file;
	int i;

	printf("1..%d\n", nr);
	for (i = 0; i < nr; i++) {
		file = fopen(paths[i], "rb");
		if (!file) {
			printf("not ok %d %s\n", i + 1, paths[i]);
			return 1;
		}
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		replay(paths[i], data, size, i + 1);
	}
	return 0;
}

static int replay_seeds(FILE *file)
{
	static struct seed seed;
	unsigned int i, nr = seeds_count(file);

	printf("1..%u\n", nr);
	for (i = 0; i < nr; i++) {
		if (!seeds_next(file, &seed)) {
			printf("not ok %u line %u of %s is no seed\n", i + 1, i + 1,
			       FUZZ_SEEDS);
			return 1;
		}
		replay(seed.name, seed.data, seed.size, i + 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	FILE *file;
	int status;

	if (argc > 1)
		return replay_files(argv + 1, argc - 1);
	file = fopen(FUZZ_SEEDS, "r");
	if (!file) {
		printf("1..1\nnot ok 1 no seeds in %s\n", FUZZ_SEEDS);
		return 1;
	}
	status = replay_seeds(file);
	fclose(file);
	return status;
}
