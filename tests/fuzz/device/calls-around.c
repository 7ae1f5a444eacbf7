// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events around a queue: descriptors that come and go, waiters, memory that is
 * unmapped, processes that die, a machine whose clock and parameters change.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "calls.h"
#include "oracle.h"
#include "report.h"
#include "values.h"

#define POLL_MS_MAX	2
#define SLEEP_US_MAX	300

void call_poll(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	struct pollfd fds[QUEUES];
	unsigned int i;

	(void)worker;
	(void)queue;
	for (i = 0; i < QUEUES; i++)
		fds[i] = (struct pollfd) { .fd = queue_fd(i),
					   .events = call->what };
	fds[0].fd = fd;
	poll(fds, 1 + call_how(call) % QUEUES, call->count % POLL_MS_MAX);
}

void call_epoll(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	struct epoll_event events[QUEUES] = { {
		.events = call->what & 1 ? EPOLLIN | EPOLLET : EPOLLIN |
			(call->what & 2 ? EPOLLONESHOT : 0),
	} };

	(void)queue;
	if (worker->epoll < 0)
		worker->epoll = epoll_create1(EPOLL_CLOEXEC);
	switch (call_how(call) % 5) {
	case 0:
	case 1:
		epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, events);
		break;
	case 2:
		epoll_ctl(worker->epoll, EPOLL_CTL_MOD, fd, events);
		break;
	case 3:
		epoll_ctl(worker->epoll, EPOLL_CTL_DEL, fd, events);
		break;
	case 4:
		if (!(call->more & 7)) {
			close(worker->epoll);
			worker->epoll = -1;
		}
		break;
	}
	epoll_wait(worker->epoll, events, QUEUES, call->count % POLL_MS_MAX);
}

/* Also where one exists: the old one is closed while others may use it. */
void call_open(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	static const int flags[] = { O_RDWR, O_RDWR | O_NONBLOCK, O_RDONLY,
				     O_WRONLY | O_NONBLOCK };
	int new = queue_open(flags[call->what % ARRAY_SIZE(flags)]);

	(void)worker;
	oracle_call(RULE_OPEN, new);
	if (new < 0)
		return;
	if (fd >= 0)
		state.closes = true;
	fd = __atomic_exchange_n(&state.fd[queue], new, __ATOMIC_RELAXED);
	if (fd >= 0)
		close(fd);
}

void call_close(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	(void)worker;
	(void)call;
	state.closes = true;
	fd = __atomic_exchange_n(&state.fd[queue], -1, __ATOMIC_RELAXED);
	if (fd >= 0)
		close(fd);
}

/* A queue in the place of another: then two descriptors are one. */
void call_dup(struct worker *worker, const struct call *call,
	      unsigned int queue, int fd)
{
	unsigned int other = call->what % QUEUES;
	int new = fcntl(fd, F_DUPFD_CLOEXEC, QUEUE_FD_MIN);

	(void)worker;
	if (new < 0)
		return;
	state.closes = true;
	state.mode[other] = state.mode[queue];
	state.clock_id[other] = state.clock_id[queue];
	fd = __atomic_exchange_n(&state.fd[other], new, __ATOMIC_RELAXED);
	if (fd >= 0)
		close(fd);
}

void call_fcntl(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	struct flock lock = { .l_type = call->more % 3 };

	(void)worker;
	(void)queue;
	switch (call->what % 8) {
	case 0:
	case 1:
		fcntl(fd, F_SETFL, O_NONBLOCK);
		break;
	case 2:
		fcntl(fd, F_SETFL, 0);
		break;
	case 3:
		fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
		break;
	case 4:
		fcntl(fd, F_SETLK, &lock);
		break;
	case 5:
		fcntl(fd, F_SETOWN, getpid());
		break;
	case 6:
		lseek(fd, call->count, call->more % 6);
		break;
	case 7:
		if (fsync(fd) == 0 && !state.closes)
			finding("fsync succeeds");
		break;
	}
}

/* Out of the device into a pipe. */
void call_splice(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	int pipes[2];

	(void)worker;
	(void)queue;
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		return;
	splice(fd, NULL, pipes[1], NULL, size_of(call->count) % REGION,
	       SPLICE_F_NONBLOCK);
	close(pipes[0]);
	close(pipes[1]);
}

/* A thread's memory as mapped for the kernel, possibly in use. */
void call_memory(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	static const int protections[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_WRITE,
	};
	unsigned int region = call_how(call) & 1 ? worker->number :
		call->what % state.threads;
	uint8_t *page = state.user[region] + call->count % REGION_PAGES * PAGE;
	size_t size = PAGE * (1 + call->more % 2);

	(void)queue;
	(void)fd;
	state.memory_touched[region] = true;
	switch (call->when % 6) {
	case 0:
	case 1:
		state_unmap(page);
		break;
	case 2:
	case 3:
		mprotect(page, size, protections[call->seed % ARRAY_SIZE(protections)]);
		break;
	case 4:
		madvise(page, size, call->seed & 1 ? MADV_DONTNEED : MADV_PAGEOUT);
		break;
	case 5:
		state_remap(region);
		break;
	}
}

/* Inspects it from outside. */
void call_look(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	char path[64], text[4096];
	int look;

	(void)worker;
	(void)queue;
	if (call->what & 1)
		snprintf(path, sizeof(path), "/sys/kernel/debug/expiry/queues");
	else
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	look = open(path, O_RDONLY | O_CLOEXEC);
	if (look < 0)
		return;
	while (read(look, text, 1 + call->count * 16) > 0)
		;
	close(look);
}

void call_machine(struct worker *worker, const struct call *call,
		  unsigned int queue, int fd)
{
	(void)worker;
	(void)queue;
	(void)fd;
	if (!options.settime)
		return;
	switch (call->what % 16) {
	case 0:
		write_text("/proc/sys/vm/drop_caches", "2");
		break;
	case 1:
		if (__atomic_exchange_n(&state.time_set, true, __ATOMIC_RELAXED))
			break;
		state.offset_ns = (int64_t)((int8_t)call->more * NSEC_PER_SEC);
		clock_move(state.offset_ns);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		if (options.reclaim)
			write_text(options.reclaim, "4M");
		break;
	default:
		params_set(call->more);
	}
}

void call_sleep(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	struct timespec time = {
		.tv_nsec = call->count * (SLEEP_US_MAX * 1000 / 256),
	};

	(void)worker;
	(void)queue;
	(void)fd;
	if (call->what & 1)
		sched_yield();
	else
		nanosleep(&time, NULL);
}

/* Makes the next call fail at its nth allocation or copy. */
void call_fail(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	(void)queue;
	(void)fd;
	if (options.fail)
		worker->fail_nth = 1 + call->count % 24;
}

/* A process that uses the queue and is killed meanwhile. */
void call_killed(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	const struct timespec time = { .tv_nsec = call->more * 4000 };
	struct place place = place_of(worker->number, 0);
	struct expiry_batch batch = {
		.addr = (uintptr_t)place.user,
		.count = REGION / RECORD - 300,
	};
	int status;
	pid_t pid;

	if (call->seed & 3)
		return;
	records_fill((void *)place.mine, batch.count, queue, call);
	pid = fork();
	if (pid < 0)
		return;
	if (!pid) {
		if (call->what & 0x80)
			fcntl(fd, F_SETFL, 0);
		for (;;) {
			if (call->what & 0x80)
				read(fd, place.user, 1024);
			else
				ioctl(fd, EXPIRY_IOC_SUBMIT, &batch);
		}
	}
	nanosleep(&time, NULL);
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (call->what & 0x80)
		fcntl(fd, F_SETFL, O_NONBLOCK);
}
