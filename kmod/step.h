/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_STEP_H
#define EXPIRY_STEP_H

#include <linux/types.h>

bool expiry_step_supported(void);
int expiry_step_get(void);
void expiry_step_put(void);

#endif /* EXPIRY_STEP_H */
