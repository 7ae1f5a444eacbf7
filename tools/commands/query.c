// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl query: print timers.
 */
#include "tools/commands/command.h"
#include "tools/commands/each-id.h"
#include "tools/ctl.h"

static int run_query(struct ctl *ctl, char **args)
{
	return each_id(ctl, EXPIRY_OP_QUERY, args);
}

const struct command cmd_query = {
	.name = "query",
	.args = "ID...",
	.summary = "show timers",
	.examples =
		"  expiryctl query 4294967297\n"
		"  expiryctl query 1001 1002 1003 --queue leases\n",
	.min = 1,
	.max = -1,
	.run = run_query,
};
