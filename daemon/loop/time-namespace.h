/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time namespaces (time_namespaces(7)): clock_gettime() shows a clock that is
 * ahead of the host's by an offset. But io_uring takes absolute timeouts on the
 * host's clock.
 */
#ifndef DAEMON_TIME_NAMESPACE_H
#define DAEMON_TIME_NAMESPACE_H

#include "daemon/loop/loop.h"

/* Measures how far each clock is ahead of that of the loop's timeouts. Sets
 * @loop->ahead_ns and @loop->has_offsets. Must be called before any other use
 * of the loop. Returns 0, or -errno after a line in the log: timeouts are
 * unreliable.
 */
int time_namespace_probe(struct loop *loop);

#endif /* DAEMON_TIME_NAMESPACE_H */
