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
#define THREADS		16

/**
 * struct fiber - a thread
 * @ring: it waits for a completion in it; NULL = it can run
 * @joined: it waits for the end of this one
 * @is_ready: what else it waits for, until @until_ns
 * @is_program: it is no thread of the daemon
 */
struct fiber {
	ucontext_t context;
	void *stack;
	void *fake;
	void *(*run)(void *data);
	void *data;
	struct io_uring *ring;
	struct fiber *joined;
	bool (*is_ready)(void *data);
	void *ready_data;
	uint64_t until_ns;
	bool is_program;
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
	       (!fiber->ring || ring_has_completion(fiber->ring)) &&
	       (!fiber->is_ready || fiber->until_ns <= sim.mono_ns ||
		fiber->is_ready(fiber->ready_data));
}

bool thread_wait(bool (*is_ready)(void *data), void *data, uint64_t until_ns)
{
	struct fiber *fiber = current;

	fiber->ready_data = data;
	fiber->until_ns = until_ns;
	fiber->is_ready = is_ready;
	thread_yield(NULL);
	fiber->is_ready = NULL;
	return is_ready(data);
}

uint64_t threads_next_ns(void)
{
	uint64_t next_ns = EXPIRY_NEVER;
	uint32_t i;

	for (i = 0; i < nr_fibers; i++)
		if (!fibers[i].has_ended && fibers[i].is_ready &&
		    fibers[i].until_ns < next_ns)
			next_ns = fibers[i].until_ns;
	return next_ns;
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
	return current && !current->is_program;
}

bool thread_is_program(void)
{
	return current && current->is_program;
}

void *thread_data(void)
{
	return current->data;
}

void thread_start_program(void *(*run)(void *data), void *data)
{
	fibers[nr_fibers].is_program = true;
	thread_start(run, data);
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

/* Its holder may be another thread that has let the world go on. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	while (pthread_mutex_trylock(mutex))
		thread_yield(NULL);
	return 0;
}

int __wrap_sem_wait(sem_t *sem)
{
	while (sem_trywait(sem) < 0)
		thread_yield(NULL);
	return 0;
}
