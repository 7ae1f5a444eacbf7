/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which start of the machine this is. */
#ifndef DAEMON_BOOT_ID_H
#define DAEMON_BOOT_ID_H

#include <stdint.h>

#define BOOT_ID_FILE	"/proc/sys/kernel/random/boot_id"

/* Reads the machine's boot id; zeros where it is unknown. */
void boot_id_read(uint8_t boot_id[16]);

#endif /* DAEMON_BOOT_ID_H */
