/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_SHRINK_H
#define EXPIRY_SHRINK_H

struct shrink_control;

int expiry_shrink_init(void);
void expiry_shrink_exit(void);

unsigned long expiry_shrink_scan(struct shrink_control *sc);

#endif /* EXPIRY_SHRINK_H */
