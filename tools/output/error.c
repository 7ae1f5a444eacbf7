// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdarg.h>
#include <stdio.h>
#include <expiry/expiry.h>

#include "tools/output/error.h"

const char *ctl_program = "expiryctl";

static void vprint_error(const char *format, va_list args)
{
	/* Keep the order of output and errors. */
	fflush(stdout);
	fprintf(stderr, "%s: ", ctl_program);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int ctl_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprint_error(format, args);
	va_end(args);
	return EXIT_REFUSED;
}

int ctl_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprint_error(format, args);
	va_end(args);
	return EXIT_USAGE;
}

int ctl_refused(const char *what, int error, unsigned int op)
{
	return ctl_error("%s: %s", what, expiry_explain(error, op));
}
