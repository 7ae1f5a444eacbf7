/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Probes of this kernel, once, at the start. */
#ifndef DAEMON_PROBE_H
#define DAEMON_PROBE_H

#include <stdbool.h>

#include "daemon/buffer.h"
#include "daemon/loop.h"

/**
 * probe_multishot - whether multishot receive can be relied upon
 *
 * From 6.17 on, where Unix sockets tell how much they hold, Linux takes a
 * socket that holds nothing more for one that has nothing more to say: when the
 * peer's last bytes and its end come together, the end is never reported. Must
 * be called before anything else is in the loop.
 */
bool probe_multishot(struct loop *loop, struct buffers *buffers);

/**
 * probe_quiet - whether a send that does not wait may keep quiet when all of it
 * went well, and says so when the socket took a part or nothing
 *
 * Must be called before anything is submitted that may complete meanwhile.
 */
bool probe_quiet(struct loop *loop);

#endif /* DAEMON_PROBE_H */
