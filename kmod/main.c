// SPDX-License-Identifier: GPL-2.0-only
/* The module: loading and unloading. */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "debugfs.h"
#include "device.h"
#include "fire.h"
#include "memory.h"
#include "shrink.h"

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
	err = expiry_memory_mount();
	if (err)
		goto out_fire;
	err = expiry_shrink_init();
	if (err)
		goto out_mount;
	err = misc_register(&expiry_device);
	if (err)
		goto out_shrink;
	expiry_debugfs_init();
	return 0;

out_shrink:
	expiry_shrink_exit();
out_mount:
	expiry_memory_unmount();
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
	expiry_memory_unmount();
	expiry_fire_exit();
}

module_init(expiry_init);
module_exit(expiry_exit);

MODULE_DESCRIPTION("Queues of timers in pageable memory behind file descriptors");
MODULE_AUTHOR("The expiry authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(EXPIRY_VERSION);
