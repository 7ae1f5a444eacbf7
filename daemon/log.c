// SPDX-License-Identifier: LGPL-2.1-or-later
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <expiry/wire.h>

#include "daemon/log.h"

/* Lines that clients cause: so many at once, then so many a second. */
#define LOG_BURST	20
#define LOG_PER_SECOND	2

#define LOG_LINE	512

_Atomic enum log_level log_max = LOG_LEVEL_INFO;

/* Whether stderr is the journal, and the socket by which it takes fields. */
static bool log_journal;
static int log_fd = -1;

static const struct sockaddr_un log_address = {
	.sun_family = AF_UNIX,
	.sun_path = "/run/systemd/journal/socket",
};

void log_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	log_journal = stream && !fstat(STDERR_FILENO, &st) &&
		      sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		      dev == st.st_dev && ino == st.st_ino;
	if (log_journal)
		log_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

void log_set_level(const char *name)
{
	log_max = !strcmp(name, "err") ? LOG_LEVEL_ERR :
		  !strcmp(name, "warning") ? LOG_LEVEL_WARNING :
					     LOG_LEVEL_INFO;
}

/* Take a token for a line. Returns whether there was one, and in *@suppressedp
 * how many lines there was none for.
 */
static bool log_token(unsigned long *suppressedp)
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
	*suppressedp = suppressed;
	suppressed = 0;
	return true;
}

bool log_allowed(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	unsigned long suppressed = 0;
	bool allowed;

	pthread_mutex_lock(&lock);
	allowed = log_token(&suppressed);
	pthread_mutex_unlock(&lock);
	if (suppressed)
		log_write(LOG_LEVEL_WARNING, NULL,
			  "%lu lines about clients were left out", suppressed);
	return allowed;
}

/* An entry with fields. Returns whether the journal took it: one that is behind
 * is not waited for.
 */
static bool log_entry(enum log_level level, const struct log_about *about,
		      const char *message)
{
	char text[1024];
	FILE *file = fmemopen(text, sizeof(text), "w");
	long len;

	if (!file)
		return false;
	fprintf(file, "MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=expiryd\n",
		message, level);
	if (about && about->id)
		fprintf(file, "MESSAGE_ID=%s\n", about->id);
	if (about && about->queue)
		fprintf(file, "QUEUE=%.*s\n", EXPIRY_NAME_MAX, about->queue);
	if (about && about->peer)
		fprintf(file, "PEER_UID=%u\nPEER_PID=%d\n",
			(unsigned int)about->uid, (int)about->pid);
	if (about && about->error)
		fprintf(file, "ERRNO=%d\n", abs(about->error));
	len = ftell(file);
	fclose(file);
	return sendto(log_fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const void *)&log_address, sizeof(log_address)) == len;
}

/* One write a line, so that lines of several processes do not mix. */
static void log_line(enum log_level level, const char *message)
{
	char line[LOG_LINE + 16];
	int len;

	if (log_journal)
		len = snprintf(line, sizeof(line), "<%d>%s\n", level, message);
	else
		len = snprintf(line, sizeof(line), "expiryd: %s\n", message);

	/* There is nobody to tell if this fails. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void log_write(enum log_level level, const struct log_about *about,
	       const char *format, ...)
{
	char message[LOG_LINE], *c;
	va_list ap;

	va_start(ap, format);
	vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	/* One line, whatever is in the names of files. */
	for (c = message; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (log_fd < 0 || !log_entry(level, about, message))
		log_line(level, message);
}
