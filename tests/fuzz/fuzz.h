/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fuzz target: a function that processes one file's bytes, and ends the
 * process with abort() at a fault.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* cmocka's assertions are the checks; there is no cmocka test to end here. */
static inline void fuzz_abort_on_failure(void)
{
	static int done;

	if (!done)
		done = !setenv("CMOCKA_TEST_ABORT", "1", 1);
}

#endif /* TESTS_FUZZ_FUZZ_H */
