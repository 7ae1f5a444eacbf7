/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests of a client's guarantees run on the engine behind $EXPIRY_ADDRESS: a
 * daemon's socket or the device. Without it they run on a daemon of their own
 * with the engine $EXPIRY_ENGINE; if that is the kernel, then on the device
 * itself as well.
 *
 * No test waits for time to pass: only for expected events, for as long as an
 * emulated machine may need.
 */
#ifndef TESTS_LIB_SUPPORT_QUEUE_H
#define TESTS_LIB_SUPPORT_QUEUE_H

#include <expiry/expiry.h>
#include "support.h"

#define WAIT_MS		100000
#define MS		1000000ULL
#define HOUR		(3600 * 1000 * MS)

/* Where the server is; set while a group of tests runs. */
extern const char *address;

/* Fails the test where it cannot be opened. */
struct expiry *open_options(const struct expiry_options *options);

/* A queue of our own. */
struct expiry *open_queue(uint32_t flags);

/* A named queue, different in every program. */
int open_named(struct expiry **h, const char *name, uint32_t flags);

bool on_device(void);

/* Takes exactly @nr expirations, none of them early. */
void take_due(struct expiry *h, struct expiry_record *records, int nr);

/* Checks that no record has arrived and none was in transit: the query's reply
 * would have come behind it.
 */
void assert_nothing(struct expiry *h);

/* Runs the tests on a daemon, and on the device if that is the engine. Returns
 * how many failed.
 */
int run_on_engines(const char *name, const struct CMUnitTest *tests, size_t nr);

#endif /* TESTS_LIB_SUPPORT_QUEUE_H */
