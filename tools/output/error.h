/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages on the standard error.
 */
#ifndef TOOLS_ERROR_H
#define TOOLS_ERROR_H

#define EXIT_REFUSED	1
#define EXIT_USAGE	2

/* The name at the head of messages, by default expiryctl. */
extern const char *ctl_program;

/* Print a line on stderr and return EXIT_REFUSED or EXIT_USAGE. */
__attribute__((format(printf, 1, 2)))
int ctl_error(const char *format, ...);
__attribute__((format(printf, 1, 2)))
int ctl_usage(const char *format, ...);

/* Reports a refusal as "PROGRAM: WHAT: cause and remedy". Returns EXIT_REFUSED. */
int ctl_refused(const char *what, int error, unsigned int op);

#endif /* TOOLS_ERROR_H */
