// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A fuzz target without a fuzzer: replays the given files or, without any, all
 * its seeds. Prints TAP.
 *
 *	replay-TARGET [FILE...]
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

#define SIZE_MAX_READ	65536

static void replay(const char *path, unsigned int number)
{
	static uint8_t data[SIZE_MAX_READ];
	FILE *file = fopen(path, "rb");
	uint8_t *exact;
	size_t size;

	if (!file) {
		printf("not ok %u %s\n", number, path);
		exit(1);
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	/* ASan detects reading a byte behind the last one. */
	exact = malloc(size ? size : 1);
	if (!exact)
		abort();
	memcpy(exact, data, size);
	/* Print it before, so that a crash shows its program. */
	printf("# %s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	printf("ok %u\n", number);
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	char path[512];
	int i, n;

	if (argc > 1) {
		printf("1..%d\n", argc - 1);
		for (i = 1; i < argc; i++)
			replay(argv[i], i);
		return 0;
	}
	n = scandir(FUZZ_SEEDS, &entries, is_file, alphasort);
	if (n <= 0) {
		printf("1..1\nnot ok 1 no seeds in %s\n", FUZZ_SEEDS);
		return 1;
	}
	printf("1..%d\n", n);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", FUZZ_SEEDS,
			 entries[i]->d_name);
		replay(path, i + 1);
		free(entries[i]);
	}
	free(entries);
	return 0;
}
