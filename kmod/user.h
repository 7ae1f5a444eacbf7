/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_USER_H
#define EXPIRY_USER_H

#include <linux/uidgid.h>

int expiry_user_charge(kuid_t uid);
void expiry_user_uncharge(kuid_t uid);

#endif /* EXPIRY_USER_H */
