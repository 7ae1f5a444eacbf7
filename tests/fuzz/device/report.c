// SPDX-License-Identifier: LGPL-2.1-or-later
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define FINDINGS_MAX	64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char told[FINDINGS_MAX][128];
static unsigned int nr_told;

void finding(const char *format, ...)
{
	char text[sizeof(told[0])];
	unsigned int i;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	pthread_mutex_lock(&lock);
	for (i = 0; i < nr_told && strcmp(told[i], text); i++)
		;
	if (i == nr_told && nr_told < FINDINGS_MAX) {
		strcpy(told[nr_told++], text);
		printf("# FINDING: %s\n", text);
		fflush(stdout);
	}
	pthread_mutex_unlock(&lock);
}

unsigned int findings(void)
{
	unsigned int nr;

	pthread_mutex_lock(&lock);
	nr = nr_told;
	pthread_mutex_unlock(&lock);
	return nr;
}

void die(const char *what)
{
	perror(what);
	exit(2);
}
