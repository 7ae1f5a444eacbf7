/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_CLOCK_H
#define EXPIRY_CLOCK_H

#include <linux/types.h>

struct expiry_queue;

bool expiry_clock_valid(u32 clock_id);
u32 expiry_clock_all(void);
const char *expiry_clock_name(clockid_t clock_id);
u64 expiry_clock_now(const struct expiry_queue *queue);
void expiry_clock_start(struct expiry_queue *queue);
void expiry_clock_check_locked(struct expiry_queue *queue);
bool expiry_clock_wakes(const struct expiry_queue *queue);

#endif /* EXPIRY_CLOCK_H */
