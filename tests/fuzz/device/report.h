/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is wrong with the kernel, told as soon as it is seen. Safe in any thread.
 */
#ifndef FUZZ_DEVICE_REPORT_H
#define FUZZ_DEVICE_REPORT_H

/* Something a program found; the same text is told once. */
void finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How many different ones there were. */
unsigned int findings(void);

/* The fuzzer itself cannot go on: errno says why. */
void die(const char *what) __attribute__((noreturn));

#endif /* FUZZ_DEVICE_REPORT_H */
