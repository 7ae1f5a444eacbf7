// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/checkpoints.h"

#define PREFIX		"checkpoint-"
#define SUFFIX		".new"
#define TIMES_MAX	1000000U
#define SILENCE_MS	60000
#define QUIET_MS	300	/* until none is behind the last one */

/* Times of the batches that were answered during checkpoints, or outside. */
struct times {
	uint64_t *ns;
	uint32_t nr;
};

static int inotify = -1;
static bool in_progress;
static uint32_t nr_ended;
static struct times times[2];

void checkpoints_watch(const char *folder)
{
	int i;

	inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (inotify < 0 ||
	    inotify_add_watch(inotify, folder, IN_CREATE | IN_MOVED_TO) < 0)
		die("inotify: %s: %m", folder);
	for (i = 0; i < 2; i++) {
		times[i].ns = calloc(TIMES_MAX, sizeof(*times[i].ns));
		if (!times[i].ns)
			die("no memory");
	}
}

static void handle(const struct inotify_event *event)
{
	if (!event->len || strncmp(event->name, PREFIX, strlen(PREFIX)))
		return;
	if (event->mask & IN_MOVED_TO) {
		nr_ended++;
		in_progress = false;
	} else if (strstr(event->name, SUFFIX)) {
		in_progress = true;
	}
}

bool checkpoints_in_progress(void)
{
	char buffer[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	ssize_t n, i;

	while ((n = read(inotify, buffer, sizeof(buffer))) > 0)
		for (i = 0; i < n; i += sizeof(*event) + event->len) {
			event = (const void *)(buffer + i);
			handle(event);
		}
	if (n < 0 && errno != EAGAIN)
		die("inotify: %m");
	return in_progress;
}

void checkpoints_await_end(void)
{
	struct pollfd poll_fd = { .fd = inotify, .events = POLLIN };
	bool is_busy = true;

	/* The next one may begin at once. */
	while (is_busy || checkpoints_in_progress()) {
		is_busy = checkpoints_in_progress();
		if (poll(&poll_fd, 1, is_busy ? SILENCE_MS : QUIET_MS) <= 0 &&
		    is_busy)
			die("a checkpoint does not end");
	}
}

void checkpoints_time(uint64_t took_ns)
{
	struct times *to = &times[checkpoints_in_progress()];

	if (to->nr < TIMES_MAX)
		to->ns[to->nr++] = took_ns;
}

static void print(const char *name, struct times *of)
{
	bench_sort_ns(of->ns, of->nr);
	printf(", \"%s\": %u", name, of->nr);
	if (of->nr)
		printf(", \"%s_p50_us\": %.1f, \"%s_p99_us\": %.1f, \"%s_max_us\": %.1f",
		       name, of->ns[of->nr / 2] / 1e3,
		       name, of->ns[of->nr - 1 - of->nr / 100] / 1e3,
		       name, of->ns[of->nr - 1] / 1e3);
}

void checkpoints_print(void)
{
	print("outside", &times[0]);
	print("during", &times[1]);
	printf(", \"checkpoints\": %u", nr_ended);
}
