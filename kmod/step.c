// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steps of CLOCK_REALTIME wake the readers that asked for it.
 *
 * The only note of a step that modules may have is the notifier by which KVM
 * keeps its guests' clocks. It is called at each tick, with the timekeeper's
 * lock held: registered only while a queue asks, and it starts an irq_work. That
 * starts a work item, which wakes the readers of the queues that see the step.
 */
#include <linux/errno.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pvclock_gtod.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "fire.h"
#include "queue_state.h"
#include "registry.h"
#include "step.h"

#ifdef EXPIRY_HAVE_GTOD_NOTIFIER

static DEFINE_MUTEX(step_lock);		/* @step_users */
static unsigned int step_users;

/* A queue that is freed is no longer in the list. */
static void step_work_fn(struct work_struct *work)
{
	struct expiry_queue *queue;

	mutex_lock(&expiry_registry_lock);
	list_for_each_entry(queue, &expiry_registry_queues, registered)
		if (expiry_queue_is_configured(queue) &&
		    expiry_clock_wakes(queue))
			expiry_fire_wake(queue);
	mutex_unlock(&expiry_registry_lock);
}

static DECLARE_WORK(step_work, step_work_fn);

static void step_irq_fn(struct irq_work *irq_work)
{
	schedule_work(&step_work);
}

static DEFINE_IRQ_WORK(step_irq, step_irq_fn);

static int step_notify(struct notifier_block *nb, unsigned long was_set,
		       void *data)
{
	if (was_set)
		irq_work_queue(&step_irq);
	return NOTIFY_OK;
}

static struct notifier_block step_notifier = {
	.notifier_call = step_notify,
};

/**
 * expiry_step_supported - check whether this kernel reports steps to modules
 */
bool expiry_step_supported(void)
{
	return true;
}

/**
 * expiry_step_get - report steps for one more queue. May sleep.
 *
 * Returns 0 or -EOPNOTSUPP.
 */
int expiry_step_get(void)
{
	int err = 0;

	mutex_lock(&step_lock);
	if (!step_users)
		err = pvclock_gtod_register_notifier(&step_notifier);
	if (!err)
		step_users++;
	mutex_unlock(&step_lock);
	return err;
}

/**
 * expiry_step_put - undo expiry_step_get(). May sleep.
 */
void expiry_step_put(void)
{
	mutex_lock(&step_lock);
	if (!--step_users) {
		pvclock_gtod_unregister_notifier(&step_notifier);
		irq_work_sync(&step_irq);
		cancel_work_sync(&step_work);
	}
	mutex_unlock(&step_lock);
}

#else

bool expiry_step_supported(void)
{
	return false;
}

int expiry_step_get(void)
{
	return -EOPNOTSUPP;
}

void expiry_step_put(void)
{
}

#endif /* EXPIRY_HAVE_GTOD_NOTIFIER */
