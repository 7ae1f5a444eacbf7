// SPDX-License-Identifier: GPL-2.0-only
/*
 * One fault for each checker of the debug kernel. If one is not reported, the
 * checker does not work and its silence about expiry.ko means nothing. Loaded
 * by tests/vm/debug-check with panic_on_warn off.
 *
 * lockdep reports only once, and KASAN's report makes it unreliable; therefore
 * the order. Correct code comes first: lockdep must not report the console.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat/compat.h"

/* kmemleak treats a stale word on a stack as a reference: one leak is not
 * enough.
 */
#define LEAKS	16

static DECLARE_COMPLETION(spoken);
static struct hrtimer speaker;
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_RAW_SPINLOCK(spinlock);
static int bits = 32;
static int counter;

struct armed {
	struct hrtimer timer;
};

static enum hrtimer_restart speak(struct hrtimer *timer)
{
	pr_info("canary: in an interrupt\n");
	complete(&spoken);
	return HRTIMER_NORESTART;
}

static void speak_in_interrupt(void)
{
	compat_hrtimer_setup(&speaker, speak, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL_HARD);
	hrtimer_start(&speaker, ktime_set(0, 1000000), HRTIMER_MODE_REL_HARD);
	wait_for_completion(&spoken);
	hrtimer_cancel(&speaker);
}

static void sleep_in_atomic_context(void)
{
	raw_spin_lock(&spinlock);
	might_sleep();
	raw_spin_unlock(&spinlock);
}

static void invert_locks(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static int shift_too_far(void)
{
	return 1 << READ_ONCE(bits);
}

static enum hrtimer_restart fired(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static void free_active_timer(void)
{
	struct armed *armed = kzalloc(sizeof(*armed), GFP_KERNEL);

	if (!armed)
		return;
	compat_hrtimer_setup(&armed->timer, fired, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL);
	hrtimer_start(&armed->timer, ktime_set(1000, 0), HRTIMER_MODE_REL);
	kfree(armed);
}

/* Not inlined: init code has no symbol name afterwards. */
static noinline void leak_memory(void)
{
	int i;

	for (i = 0; i < LEAKS; i++)
		if (!kmalloc(100, GFP_KERNEL) || !alloc_page(GFP_KERNEL))
			return;
}

/* Not inlined, so that the report names it, and that no sum is kept in a register. */
static noinline void count_up(void)
{
	counter++;
}

static int count_until(void *end)
{
	while (time_before(jiffies, (unsigned long)end)) {
		count_up();
		cond_resched();
	}
	return 0;
}

/* For two seconds, on a processor each. */
static void race(void)
{
	void *end = (void *)(jiffies + 2 * HZ);
	struct task_struct *other = kthread_run(count_until, end, "canary");

	count_until(end);
	if (!IS_ERR(other))
		ssleep(1);	/* until it has ended */
}

static int use_after_free(void)
{
	int *memory = kzalloc(100, GFP_KERNEL);

	kfree(memory);
	return memory ? READ_ONCE(*memory) : 0;
}

static int __init canary_init(void)
{
	int sum;

	speak_in_interrupt();
	sleep_in_atomic_context();
	invert_locks();
	sum = shift_too_far();
	free_active_timer();
	leak_memory();
	if (IS_ENABLED(CONFIG_KCSAN))
		race();
	sum += use_after_free();
	pr_info("canary: %d\n", sum);
	return 0;
}

static void __exit canary_exit(void)
{
}

module_init(canary_init);
module_exit(canary_exit);
MODULE_DESCRIPTION("Faults for the checkers of the debug kernel");
MODULE_LICENSE("GPL");
