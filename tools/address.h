/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The address of the daemon or the device. Both functions replace ctl->address, which
 * is freed by the caller, and return 0, or an exit status with the reason printed.
 */
#ifndef TOOLS_ADDRESS_H
#define TOOLS_ADDRESS_H

#include "tools/ctl.h"

/* @scheme: "unix" or "device" */
int address_set(struct ctl *ctl, const char *scheme, const char *path);

/* Takes the library's default address. */
int address_set_default(struct ctl *ctl);

#endif /* TOOLS_ADDRESS_H */
