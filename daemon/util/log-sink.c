// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <expiry/wire.h>

#include "daemon/util/log-sink.h"
#include "daemon/util/util.h"

/* Whether stderr is the journal, and the journal's socket. */
static bool log_journal;
static int log_fd = -1;

void log_sink_init(void)
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

static const struct sockaddr_un journal_address = {
	.sun_family = AF_UNIX,
	.sun_path = "/run/systemd/journal/socket",
};

struct text {
	char bytes[1024];
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static void append(struct text *text, const char *format, ...)
{
	size_t room = sizeof(text->bytes) - text->len;
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(text->bytes + text->len, room, format, ap);
	va_end(ap);
	if (len > 0)
		text->len += min_u64(len, room - 1);
}

/* Writes an entry with fields, and waits for a slow journal. Returns whether
 * the journal took it.
 */
static bool write_fields(enum log_level level, const struct log_about *about,
			 const char *message)
{
	struct text text = { .len = 0 };
	ssize_t sent;

	append(&text, "MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=expiryd\n",
	       message, level);
	if (about->id)
		append(&text, "MESSAGE_ID=%s\n", about->id);
	if (about->queue)
		append(&text, "QUEUE=%.*s\n", EXPIRY_NAME_MAX, about->queue);
	if (about->peer)
		append(&text, "PEER_UID=%u\nPEER_PID=%d\n",
		       (unsigned int)about->uid, (int)about->pid);
	if (about->error)
		append(&text, "ERRNO=%d\n", abs(about->error));
	do {
		sent = sendto(log_fd, text.bytes, text.len, MSG_NOSIGNAL,
			      (const void *)&journal_address,
			      sizeof(journal_address));
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)text.len;
}

/* Writes a line at once, so that lines of several processes do not mix. Returns
 * whether all of it was written.
 */
static bool write_line(enum log_level level, const char *message)
{
	static bool torn;	/* the previous line is incomplete */
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct text text = { .len = 0 };
	size_t done = 0;
	ssize_t n;

	append(&text, "%s", torn ? "\n" : "");
	if (log_journal)
		append(&text, "<%d>%s\n", level, message);
	else
		append(&text, "expiryd: %s\n", message);
	while (done < text.len) {
		n = write(STDERR_FILENO, text.bytes + done, text.len - done);
		if (n > 0)
			done += n;
		else if (n < 0 && errno == EAGAIN)
			poll(&out, 1, -1);	/* others set O_NONBLOCK */
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (done)
		torn = done < text.len;
	return done == text.len;
}

bool log_sink_write(enum log_level level, const struct log_about *about,
		    const char *message)
{
	return (log_fd >= 0 && write_fields(level, about, message)) ||
	       write_line(level, message);
}
