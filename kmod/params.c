// SPDX-License-Identifier: GPL-2.0-only
/* The module's parameters. */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "params.h"

bool expiry_param_pageable = true;
module_param_named(pageable, expiry_param_pageable, bool, 0644);
MODULE_PARM_DESC(pageable,
		 "Keep timers in memory that can be paged out (queues configured from now on; default: true)");

uint expiry_param_unpin_ms = 1000;
module_param_named(unpin_ms, expiry_param_unpin_ms, uint, 0644);
MODULE_PARM_DESC(unpin_ms,
		 "Milliseconds of no use after which pages of a queue can be paged out (default: 1000)");

uint expiry_param_scan_ms = 60000;
module_param_named(scan_ms, expiry_param_scan_ms, uint, 0644);
MODULE_PARM_DESC(scan_ms,
		 "Milliseconds after which a scan or rewind that is not continued is given up in an idle queue (default: 60000)");

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
