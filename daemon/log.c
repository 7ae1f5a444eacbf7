// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"

/* Lines that clients cause: so many at once, then so many a second. */
#define LOG_BURST	20
#define LOG_PER_SECOND	2

enum log_level log_max = LOG_LEVEL_INFO;

static bool log_with_level;

void log_init(void)
{
	log_with_level = getenv("JOURNAL_STREAM") != NULL;
}

bool log_allowed(void)
{
	static unsigned int tokens = LOG_BURST;
	static unsigned long suppressed;
	static time_t last;
	struct timespec now;
	time_t passed;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	passed = now.tv_sec - last;
	if (passed > 0) {
		last = now.tv_sec;
		if (passed > LOG_BURST)
			passed = LOG_BURST;
		tokens += LOG_PER_SECOND * passed;
		if (tokens > LOG_BURST)
			tokens = LOG_BURST;
	}
	if (!tokens) {
		suppressed++;
		return false;
	}
	tokens--;
	if (suppressed) {
		log_write(LOG_LEVEL_WARNING,
			  "%lu lines about clients were left out", suppressed);
		suppressed = 0;
	}
	return true;
}

/* One write a line, so that lines of several processes do not mix. */
void log_write(enum log_level level, const char *format, ...)
{
	char line[512];
	va_list ap;
	size_t len;
	int n;

	if (log_with_level)
		n = snprintf(line, sizeof(line), "<%d>", level);
	else
		n = snprintf(line, sizeof(line), "expiryd: ");
	len = n;

	va_start(ap, format);
	n = vsnprintf(line + len, sizeof(line) - len - 1, format, ap);
	va_end(ap);
	if (n > 0)
		len += n;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';

	/* There is nobody to tell if this fails. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}
