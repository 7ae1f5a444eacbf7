/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports where twins differ, and how to reproduce it. */
#ifndef TESTS_CORE_TWINS_CHECK_H
#define TESTS_CORE_TWINS_CHECK_H

#include "twins.h"

#define check(twins, true_, ...) do {					\
	if (!(true_)) {							\
		print_error("seed %llu, step %u: ", (twins)->seed,	\
			    (twins)->step);				\
		print_error(__VA_ARGS__);				\
		print_error("\n");					\
		fail();							\
	}								\
} while (0)

#endif /* TESTS_CORE_TWINS_CHECK_H */
