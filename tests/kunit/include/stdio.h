/* SPDX-License-Identifier: GPL-2.0-only */
/* The tests print to the kernel's log. */
#ifndef TESTS_KUNIT_STDIO_H
#define TESTS_KUNIT_STDIO_H

#include <linux/printk.h>

#define printf(...)		pr_info(__VA_ARGS__)
#define fprintf(file, ...)	pr_err(__VA_ARGS__)
#define fflush(file)		do { } while (0)

#endif /* TESTS_KUNIT_STDIO_H */
