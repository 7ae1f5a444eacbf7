/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_TIMENS_H
#define EXPIRY_TIMENS_H

#include <linux/types.h>

struct expiry_record;

s64 expiry_timens_offset(clockid_t clock_id);
u64 expiry_timens_to_host(u64 ns, s64 offset_ns);
u64 expiry_timens_from_host(u64 ns, s64 offset_ns);
void expiry_timens_enter(struct expiry_record *records, u32 count,
			 u64 *asked_ns, s64 offset_ns);
void expiry_timens_leave(struct expiry_record *records, u32 count,
			 const u64 *asked_ns, s64 offset_ns);

#endif /* EXPIRY_TIMENS_H */
