/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What this kernel does well is found out by trying, once, at the start.
 */
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

#endif /* DAEMON_PROBE_H */
