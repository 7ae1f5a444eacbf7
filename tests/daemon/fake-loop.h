/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A loop that only has the time, for unit tests of what sets timeouts in one. */
#ifndef TESTS_FAKE_LOOP_H
#define TESTS_FAKE_LOOP_H

#include <stdint.h>

/* The time on each clock; the test's to move. */
extern uint64_t fake_now_ns;

#endif /* TESTS_FAKE_LOOP_H */
