// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table of calls, and making one. Each is bounded: a signal wakes a thread
 * that blocks for a while (threads.c).
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "calls.h"
#include "values.h"

#define CALL(name)	{ #name, call_ ## name }

/* One line each for the frequency in random programs. */
static const struct {
	const char *name;
	call_fn *run;
} calls[] = {
	CALL(submit), CALL(submit), CALL(submit), CALL(submit), CALL(submit),
	CALL(submit), CALL(submit), CALL(submit), CALL(submit), CALL(submit),
	CALL(read), CALL(read), CALL(read), CALL(read), CALL(read), CALL(read),
	CALL(readv), CALL(readv), CALL(pread), CALL(write),
	CALL(poll), CALL(poll), CALL(epoll), CALL(epoll),
	CALL(stat), CALL(stat), CALL(scan), CALL(scan), CALL(scan),
	CALL(rewind), CALL(rewind), CALL(config), CALL(config), CALL(layout),
	CALL(open), CALL(close), CALL(dup), CALL(other_ioctl), CALL(mmap),
	CALL(fcntl), CALL(splice), CALL(submit_raw), CALL(memory),
	CALL(memory), CALL(memory), CALL(look), CALL(machine), CALL(sleep),
	CALL(fail), CALL(fail), CALL(killed),
	CALL(uring_cmd), CALL(uring_cmd), CALL(uring_cmd), CALL(uring_read),
	CALL(uring_read), CALL(uring_read), CALL(uring_poll),
	CALL(uring_cancel), CALL(uring_enter), CALL(uring_enter),
	CALL(uring_enter), CALL(uring_close), CALL(sleep),
};

static void fail_set(unsigned int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	write_text("/proc/thread-self/fail-nth", text);
}

/*
 * No signals meanwhile: the copy of their frame to the stack could fail. So no
 * call may wait.
 */
static void run_failing(struct worker *worker, const struct call *call,
			call_fn *run, unsigned int queue, int fd)
{
	unsigned int nth = worker->fail_nth;
	sigset_t all, before;

	worker->fail_nth = 0;
	state.faults = true;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	fail_set(nth);
	run(worker, call, queue, fd);
	fail_set(0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void call_run(struct worker *worker, const struct call *call)
{
	unsigned int kind = call->kind % ARRAY_SIZE(calls);
	unsigned int queue = call_queue(call);
	int fd = queue_fd(queue);

	/* Only few calls are useful on a closed descriptor. */
	if (fd < 0 && calls[kind].run != call_open && call->seed % 16)
		return;
	if (fd < 0)
		state.closes = true;
	if (options.trace)
		printf("# thread %u, queue %u: %s\n", worker->number, queue,
		       calls[kind].name);
	/* The fuzzer's own memory must not fail. */
	if (worker->fail_nth && calls[kind].run != call_memory)
		run_failing(worker, call, calls[kind].run, queue, fd);
	else
		calls[kind].run(worker, call, queue, fd);
}
