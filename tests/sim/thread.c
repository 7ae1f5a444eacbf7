// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The daemon's threads as fibers: one runs at a time, until it waits for its ring
 * or for another thread.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sanitizer/common_interface_defs.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/sim/sim.h"
#include "tests/sim/wrap.h"

#define STACK_SIZE	(1UL << 20)
#define THREADS		8

/**
 * struct fiber - a thread
 * @ring: it waits for a completion in it; NULL = it can run
 * @joined: it waits for the end of this one
 */
struct fiber {
	ucontext_t context;
	void *stack;
	void *fake;
	void *(*run)(void *data);
	void *data;
	struct io_uring *ring;
	struct fiber *joined;
	bool has_ended;
};

static struct fiber fibers[THREADS];
static uint32_t nr_fibers;
static struct fiber *current;
static ucontext_t world;
static const void *world_stack;
static size_t world_size;

/* Goes from one stack to another. swapcontext(3) would do the same, but warns under
 * ASan, which learns of fibers from the calls around this one.
 */
static void go(ucontext_t *from, const ucontext_t *to)
{
	volatile bool is_back = false;

	getcontext(from);
	if (is_back)
		return;
	is_back = true;
	setcontext(to);
}

static void fiber_main(void)
{
	__sanitizer_finish_switch_fiber(NULL, &world_stack, &world_size);
	current->run(current->data);
	current->has_ended = true;
	__sanitizer_start_switch_fiber(NULL, world_stack, world_size);
	go(&current->context, &world);
}

void thread_start(void *(*run)(void *data), void *data)
{
	struct fiber *fiber = &fibers[nr_fibers++];

	fiber->run = run;
	fiber->data = data;
	fiber->stack = __real_mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&fiber->context, fiber_main, 0);
}

void thread_yield(struct io_uring *ring)
{
	struct fiber *fiber = current;

	if (!fiber)
		return;
	fiber->ring = ring;
	__sanitizer_start_switch_fiber(&fiber->fake, world_stack, world_size);
	go(&fiber->context, &world);
	__sanitizer_finish_switch_fiber(fiber->fake, &world_stack, &world_size);
}

static bool can_run(const struct fiber *fiber)
{
	return !fiber->has_ended &&
	       (!fiber->joined || fiber->joined->has_ended) &&
	       (!fiber->ring || ring_has_completion(fiber->ring));
}

bool thread_run_one(struct rng *rng)
{
	uint32_t i, first = rng_below(rng, nr_fibers);
	void *fake;

	for (i = 0; i < nr_fibers; i++) {
		struct fiber *fiber = &fibers[(first + i) % nr_fibers];

		if (!can_run(fiber))
			continue;
		current = fiber;
		__sanitizer_start_switch_fiber(&fake, fiber->stack, STACK_SIZE);
		go(&world, &fiber->context);
		__sanitizer_finish_switch_fiber(fake, NULL, NULL);
		current = NULL;
		return true;
	}
	return false;
}

bool threads_ended(void)
{
	uint32_t i;

	for (i = 0; i < nr_fibers; i++)
		if (!fibers[i].has_ended)
			return false;
	return true;
}

bool thread_is_daemon(void)
{
	return current;
}

/* ----------------------------------------------------------- the C library's */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *data), void *data)
{
	(void)attr;
	*thread = nr_fibers;
	thread_start(run, data);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	(void)result;
	current->joined = &fibers[thread];
	thread_yield(NULL);
	return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
	return 0;
}

int __wrap_sem_wait(sem_t *sem)
{
	while (sem_trywait(sem) < 0)
		thread_yield(NULL);
	return 0;
}
