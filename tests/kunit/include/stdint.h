/* SPDX-License-Identifier: GPL-2.0-only */
/* Asked for by the tests of core/; the kernel's own headers have what is used. */
#include <linux/types.h>
