/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CRC-32C (Castagnoli), the checksum of iSCSI, ext4 and Btrfs; RFC 3720. */
#ifndef DAEMON_CRC32C_H
#define DAEMON_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of @len bytes after those that gave @crc; 0 = none. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif /* DAEMON_CRC32C_H */
