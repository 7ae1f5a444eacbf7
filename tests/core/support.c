// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments and exit of a test program. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

u64 test_seed = 1;
u64 test_rounds;
const struct bheap_layout *test_layout = &bheap_subtree;

/* cmocka's setup before a test: its initial state is the layout. */
int test_use_layout(void **state)
{
	test_layout = *state;
	return 0;
}

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
