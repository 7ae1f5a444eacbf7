// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * poll(2): a reminder. Reads lines "SECONDS TEXT" and prints each text after its
 * seconds. Ends when the input has ended and every text is printed.
 *
 *	printf '2 tea\n1 toast\n' | ./poll
 */
#include <errno.h>
#include <expiry/expiry.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t waiting;		/* number of texts not yet printed */

static void die(const char *what, int error, unsigned int op)
{
	fprintf(stderr, "poll: %s: %s\n", what, expiry_explain(error, op));
	exit(1);
}

/* Arms a timer for one line. Its cookie is the text. */
static void arm(struct expiry *h, char *line)
{
	double seconds = strtod(line, &line);
	char *text = strdup(line + strspn(line, " "));
	uint64_t id;	/* for a CANCEL */
	int ret;

	if (!text)
		die("arm", -ENOMEM, EXPIRY_OP_ARM);
	ret = expiry_arm(h, &id, seconds * 1e9, 0, (uintptr_t)text,
			 EXPIRY_F_RELATIVE);
	if (ret)
		die("arm", ret, EXPIRY_OP_ARM);
	waiting++;
}

/* Reads available input and arms its complete lines. Returns 0 at the end. */
static int read_lines(struct expiry *h)
{
	static char buffer[4096];
	static size_t used;
	ssize_t nr = read(0, buffer + used, sizeof(buffer) - 1 - used);
	char *line = buffer, *end;

	if (nr <= 0)
		return 0;
	used += nr;
	buffer[used] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		arm(h, line);
	}
	used -= line - buffer;
	memmove(buffer, line, used);
	return 1;
}

/* Prints due texts. After a full buffer the descriptor is still readable. */
static void take(struct expiry *h)
{
	struct expiry_record due[16];
	int i, nr;

	do {
		nr = expiry_next(h, due, 16);
		for (i = 0; i < nr; i++) {
			/* The record is CLOCK_SET. */
			if (due[i].op != EXPIRY_OP_EXPIRED)
				continue;
			puts((char *)(uintptr_t)due[i].cookie);
			free((char *)(uintptr_t)due[i].cookie);
			waiting--;
		}
	} while (nr == 16);
	fflush(stdout);
	/* The daemon ended, and the anonymous queue with its connection. */
	if (nr < 0)
		die("receive", nr, EXPIRY_OP_EXPIRED);
}

int main(void)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME,
	};
	struct pollfd fds[2] = { { .fd = 0, .events = POLLIN } };
	struct expiry *h;
	int ret;

	ret = expiry_open(&h, NULL, &options);
	if (ret)
		die("open", ret, EXPIRY_OP_HELLO);
	fds[1].fd = expiry_fd(h);
	while (take(h), fds[0].fd >= 0 || waiting) {
		fds[1].events = expiry_events(h);
		if (poll(fds, 2, -1) > 0 && fds[0].revents && !read_lines(h))
			fds[0].fd = -1;		/* poll() skips it */
	}
	expiry_close(h);
	return 0;
}
