// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The process's first thread is the program's first, too. The others wait for
 * their turn. A timer's signal interrupts a thread that is in a call for too
 * long, and ends the process when that does not help.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "calls.h"
#include "oracle.h"
#include "report.h"
#include "threads.h"

#define TICK_US		5000
#define HANG_TICKS	(120 * 1000000 / TICK_US)
#define STUCK		3	/* exit status */

static struct {
	pthread_t id;
	sem_t begin;
	sem_t end;
	bool busy;
} threads[THREADS];

static struct program program;
static unsigned int nr_calls;
static unsigned int ticks;	/* since the program began */
static void (*hello)(unsigned int thread);

static void calls_of(unsigned int thread)
{
	unsigned int i;

	for (i = 0; i < nr_calls; i++)
		if (call_thread(&program.calls[i], state.threads) == thread)
			call_run(&state.workers[thread], &program.calls[i]);
}

/* The last thread has not all rights of root. */
static void drop_resource(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return;
	data[CAP_SYS_RESOURCE / 32].effective &= ~(1U << CAP_SYS_RESOURCE % 32);
	syscall(SYS_capset, &header, data);
}

static void *thread_main(void *arg)
{
	unsigned int number = (uintptr_t)arg;

	if (number == THREADS - 1)
		drop_resource();
	if (hello)
		hello(number);
	for (;;) {
		while (sem_wait(&threads[number].begin))
			;
		calls_of(number);
		__atomic_store_n(&threads[number].busy, false, __ATOMIC_RELEASE);
		sem_post(&threads[number].end);
	}
	return NULL;
}

static void interrupted(int signal)
{
	(void)signal;
}

static void tick(int signal)
{
	static const char stuck[] = "# FINDING: a program does not end\n";
	unsigned int i;
	int err = errno;

	(void)signal;
	if (__atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED) > HANG_TICKS) {
		if (write(STDOUT_FILENO, stuck, sizeof(stuck) - 1) < 0)
			_exit(STUCK + 1);
		_exit(STUCK);
	}
	for (i = 1; i < THREADS; i++)
		if (__atomic_load_n(&threads[i].busy, __ATOMIC_ACQUIRE))
			pthread_kill(threads[i].id, SIGUSR1);
	errno = err;
}

void threads_start(void (*hello_fn)(unsigned int thread))
{
	/* No SA_RESTART: the signals must end calls. */
	struct sigaction action = { .sa_handler = interrupted };
	struct itimerval interval = {
		.it_interval.tv_usec = TICK_US,
		.it_value.tv_usec = TICK_US,
	};
	uintptr_t i;

	hello = hello_fn;
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGIO, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (i = 1; i < THREADS; i++) {
		sem_init(&threads[i].begin, 0, 0);
		sem_init(&threads[i].end, 0, 0);
		errno = pthread_create(&threads[i].id, NULL, thread_main, (void *)i);
		if (errno)
			die("pthread_create");
	}
	if (hello)
		hello(0);
	action.sa_handler = tick;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
}

void program_run(const void *data, size_t size)
{
	unsigned int i, nr;

	if (size > PROGRAM_MAX)
		size = PROGRAM_MAX;
	memset(&program, 0, sizeof(program));
	memcpy(&program, data, size);
	nr_calls = program_calls(size);
	nr = program.head.threads % THREADS + 1;

	__atomic_store_n(&ticks, 0, __ATOMIC_RELAXED);
	state_begin(&program.head, nr);
	for (i = 1; i < nr; i++) {
		__atomic_store_n(&threads[i].busy, true, __ATOMIC_RELEASE);
		sem_post(&threads[i].begin);
	}
	calls_of(0);
	for (i = 1; i < nr; i++)
		while (sem_wait(&threads[i].end))
			;
	state_quiesce();
	oracle_queues();
	state_end();
}
