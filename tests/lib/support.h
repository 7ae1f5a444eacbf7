/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the tests that need a real server: its address. */
#ifndef TESTS_LIB_SUPPORT_H
#define TESTS_LIB_SUPPORT_H

/* clang-format off: cmocka wants these before itself */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/**
 * server_start - find the server to test against
 *
 * $EXPIRY_ADDRESS if that is set; else a daemon of our own with the engine
 * server_engine() and $EXPIRY_THREADS threads: $EXPIRYD, or expiryd two directories above this program.
 * Returns its address, which lives until server_stop(), or NULL with the reason
 * printed as a TAP comment.
 */
const char *server_start(void);

/* $EXPIRY_ENGINE, or "embedded". */
const char *server_engine(void);

/* Ends the daemon, if it is the test's own. Returns 0, or -1 if it did not end
 * well.
 */
int server_stop(void);

#endif /* TESTS_LIB_SUPPORT_H */
