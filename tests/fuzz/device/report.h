/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Findings about the kernel, reported at once. Safe in any thread. */
#ifndef FUZZ_DEVICE_REPORT_H
#define FUZZ_DEVICE_REPORT_H

/* Reports a finding of a program; the same text only once. */
void finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the number of different ones. */
unsigned int findings(void);

/* Ends the fuzzer itself after an error: errno says why. */
void die(const char *what) __attribute__((noreturn));

#endif /* FUZZ_DEVICE_REPORT_H */
