// SPDX-License-Identifier: LGPL-2.1-or-later
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/waiter.h"
#include "bench/daemon/wire.h"

#define CREDIT	(1U << 20)

/* An order to a waiter, as sent through the pipe. */
struct order {
	uint64_t first_ns;
	uint64_t every_ns;
	uint32_t nr;
};

/* State of the waiting process. */
static uint64_t *samples;
static uint32_t nr_samples;

static void note(const struct expiry_record *record, uint64_t now_ns)
{
	if (nr_samples < WAITER_SAMPLES)
		samples[nr_samples++] = now_ns - record->deadline_ns;
}

static void wait_for_queue(struct consumer *consumer, const struct order *order)
{
	while (nr_samples < order->nr)
		consumer_take(consumer, note);
}

uint64_t waiter_late(int fd, uint64_t due_ns)
{
	struct itimerspec when = {
		.it_value.tv_sec = due_ns / NSEC_PER_SEC,
		.it_value.tv_nsec = due_ns % NSEC_PER_SEC,
	};
	uint64_t ticks;

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) < 0 ||
	    read(fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		die("timerfd: %m");
	return bench_now() - due_ns;
}

/* A deadline that passed before its wait began is late by all of that, as where
 * several expirations arrive together.
 */
static void wait_for_timerfd(int fd, const struct order *order)
{
	uint32_t i;

	for (i = 0; i < order->nr; i++)
		samples[nr_samples++] = waiter_late(fd, order->first_ns +
						    i * order->every_ns);
}

/* Waits at @path; NULL = for a timerfd. Never returns. */
static void serve(const char *path, const char *name, int order_fd, int done_fd)
{
	struct consumer consumer;
	struct order order;
	int fd = -1;

	if (path) {
		consumer_attach(&consumer, path, name, CREDIT);
		consumer.any_order = true;
	} else {
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	}
	if (write(done_fd, "", 1) != 1)
		die("pipe: %m");
	while (read(order_fd, &order, sizeof(order)) == sizeof(order)) {
		nr_samples = 0;
		if (path)
			wait_for_queue(&consumer, &order);
		else
			wait_for_timerfd(fd, &order);
		if (write(done_fd, "", 1) != 1)
			die("pipe: %m");
	}
	_exit(0);
}

static void waiter_start(struct waiter *waiter, const char *path, const char *name)
{
	size_t size = WAITER_SAMPLES * sizeof(*waiter->late_ns);
	int order[2], done[2];
	pid_t child;

	*waiter = (struct waiter) { 0 };
	waiter->late_ns = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (waiter->late_ns == MAP_FAILED || pipe(order) < 0 || pipe(done) < 0)
		die("waiter: %m");
	child = fork();
	if (child < 0)
		die("fork: %m");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(order[1]);
		close(done[0]);
		samples = waiter->late_ns;
		serve(path, name, order[0], done[1]);
	}
	close(order[0]);
	close(done[1]);
	waiter->order = order[1];
	waiter->done = done[0];
	/* Wait until it is ready. */
	waiter_end(waiter);
}

void waiter_queue(struct waiter *waiter, const char *path, const char *name)
{
	waiter_start(waiter, path, name);
}

void waiter_timerfd(struct waiter *waiter)
{
	waiter_start(waiter, NULL, NULL);
}

void waiter_begin(struct waiter *waiter, uint64_t first_ns, uint64_t every_ns,
		 uint32_t nr)
{
	struct order order = {
		.first_ns = first_ns,
		.every_ns = every_ns,
		.nr = nr < WAITER_SAMPLES ? nr : WAITER_SAMPLES,
	};

	waiter->nr = order.nr;
	if (write(waiter->order, &order, sizeof(order)) != sizeof(order))
		die("pipe: %m");
}

void waiter_end(struct waiter *waiter)
{
	char byte;

	if (read(waiter->done, &byte, 1) != 1)
		die("a waiter ended");
}
