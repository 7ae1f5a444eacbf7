// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a test program is called with, and how it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

u64 test_seed = 1;
u64 test_rounds;

void test_arguments(int argc, char **argv, u64 rounds)
{
	test_rounds = rounds;
	if (argc > 1)
		test_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		test_rounds = strtoull(argv[2], NULL, 0);
	printf("# %s %llu %llu\n", argv[0], test_seed, test_rounds);
}

int test_end(int failed)
{
	if (failed) {
		fflush(NULL);
		_exit(1);
	}
	return 0;
}
