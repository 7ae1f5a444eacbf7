// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl cancel: cancel timers, and show the deadlines they had.
 */
#include "tools/commands/command.h"
#include "tools/commands/each-id.h"
#include "tools/ctl.h"

static int run_cancel(struct ctl *ctl, char **args)
{
	return each_id(ctl, EXPIRY_OP_CANCEL, args);
}

const struct command cmd_cancel = {
	.name = "cancel",
	.args = "ID...",
	.summary = "cancel timers, and show the deadlines they had",
	.examples =
		"  expiryctl cancel 4294967297\n"
		"  expiryctl cancel 1001 1002 1003 --queue leases\n",
	.min = 1,
	.max = -1,
	.run = run_cancel,
};
