/* SPDX-License-Identifier: GPL-2.0-only */
/* Included by the tests of core/; the kernel's own headers have the rest. */
#include <linux/types.h>
