/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_DEVICE_H
#define EXPIRY_DEVICE_H

#include <linux/fs.h>

extern const struct file_operations expiry_device_fops;

#endif /* EXPIRY_DEVICE_H */
