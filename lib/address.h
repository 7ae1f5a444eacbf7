/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Addresses of daemons and devices.
 */
#ifndef LIB_ADDRESS_H
#define LIB_ADDRESS_H

#include "internal.h"

/* Returns the transport that @address names, and where in it the path begins, or
 * NULL: it is malformed.
 */
const struct transport *address_split(const char *address, const char **path);

#endif /* LIB_ADDRESS_H */
