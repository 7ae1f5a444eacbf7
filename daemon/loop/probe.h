/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Probes of this kernel, once, at the start. */
#ifndef DAEMON_PROBE_H
#define DAEMON_PROBE_H

#include <stdbool.h>

#include "daemon/loop/buffer.h"
#include "daemon/loop/loop.h"

/**
 * probe_multishot - whether multishot receive is reliable
 *
 * From Linux 6.17 on, Unix sockets report how much they hold. The kernel then
 * treats an empty socket as one without an end to report: when the peer's last
 * bytes and its end come together, the end is never reported. Must be called
 * before any other use of the loop.
 */
bool probe_multishot(struct loop *loop, struct buffers *buffers);

/**
 * probe_skip_success - whether a non-blocking send can skip its CQE on success
 *
 * It must still post a CQE if the socket took a part or nothing. Must be called
 * before any submission that may complete meanwhile.
 */
bool probe_skip_success(struct loop *loop);

#endif /* DAEMON_PROBE_H */
