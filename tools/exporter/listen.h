/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Listening sockets: systemd's, or at an address.
 */
#ifndef TOOLS_LISTEN_H
#define TOOLS_LISTEN_H

#include <stddef.h>

/* Takes the sockets that systemd passed, at most @max. Returns their number, or an
 * -errno.
 */
int listen_inherited(int *fds, size_t max);

/* Listens at a numeric @address: 127.0.0.1:9464 or [::1]:9464. Returns a socket that
 * does not block, -EINVAL for another format, or another -errno.
 */
int listen_at(const char *address);

/* Prints the address of a socket of listen_at(). Port 0 has become any free port. */
void listen_print(int fd);

#endif /* TOOLS_LISTEN_H */
