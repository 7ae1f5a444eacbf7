// SPDX-License-Identifier: GPL-2.0-only
/* The module: its parameters, loading and unloading. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "debugfs.h"
#include "device.h"
#include "fire.h"
#include "params.h"
#include "shrink.h"

bool expiry_param_pageable = true;
module_param_named(pageable, expiry_param_pageable, bool, 0644);
MODULE_PARM_DESC(pageable,
		 "Keep timers in memory that can be paged out (queues configured from now on; default: true)");

uint expiry_param_unpin_ms = 1000;
module_param_named(unpin_ms, expiry_param_unpin_ms, uint, 0644);
MODULE_PARM_DESC(unpin_ms,
		 "Milliseconds of no use after which a queue's pages can be paged out (default: 1000)");

uint expiry_param_pin_max = 65536;
module_param_named(pin_max, expiry_param_pin_max, uint, 0644);
MODULE_PARM_DESC(pin_max,
		 "Pages of a queue in use that cannot be paged out, about (default: 65536)");

ulong expiry_param_timers_default = 16UL << 20;
module_param_named(timers_default, expiry_param_timers_default, ulong, 0644);
MODULE_PARM_DESC(timers_default,
		 "Limit of timers of a queue that asks for none (default: 16777216)");

ulong expiry_param_timers_max = 128UL << 20;
module_param_named(timers_max, expiry_param_timers_max, ulong, 0644);
MODULE_PARM_DESC(timers_max,
		 "Highest limit of timers a queue may ask for without CAP_SYS_RESOURCE (default: 134217728)");

uint expiry_param_queues_per_user = 16384;
module_param_named(queues_per_user, expiry_param_queues_per_user, uint, 0644);
MODULE_PARM_DESC(queues_per_user,
		 "Most queues of a user without CAP_SYS_RESOURCE (default: 16384)");

static struct miscdevice expiry_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "expiry",
	.fops = &expiry_device_fops,
	.mode = 0660,
};

static int __init expiry_init(void)
{
	int err;

	err = expiry_fire_init();
	if (err)
		return err;
	err = expiry_shrink_init();
	if (err)
		goto out_fire;
	err = misc_register(&expiry_device);
	if (err)
		goto out_shrink;
	expiry_debugfs_init();
	return 0;

out_shrink:
	expiry_shrink_exit();
out_fire:
	expiry_fire_exit();
	return err;
}

/* Open files hold the module, so there are no queues left. */
static void __exit expiry_exit(void)
{
	expiry_debugfs_exit();
	misc_deregister(&expiry_device);
	expiry_shrink_exit();
	expiry_fire_exit();
}

module_init(expiry_init);
module_exit(expiry_exit);

MODULE_DESCRIPTION("Queues of timers in pageable memory behind file descriptors");
MODULE_AUTHOR("The expiry authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(EXPIRY_VERSION);
