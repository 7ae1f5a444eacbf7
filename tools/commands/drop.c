// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl drop: remove a queue.
 */
#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/json.h"
#include "tools/refusals.h"
#include "tools/session.h"

static int run_drop(struct ctl *ctl, char **args)
{
	struct json json;
	int ret;

	(void)args;
	if (!ctl->queue)
		return ctl_usage("drop: name the queue with --queue");
	ret = ctl_open(ctl, ctl->queue, 0, 0);
	if (ret)
		return ret;
	ret = expiry_drop(ctl->handle);
	if (ret)
		return ctl_request_refused(ctl, NULL, ret, EXPIRY_OP_DROP);
	if (ctl->json) {
		json_begin(&json);
		json_text(&json, "dropped", ctl->queue);
		json_end(&json);
	} else {
		printf("%s: removed, with its timers\n", ctl->queue);
	}
	return 0;
}

const struct command cmd_drop = {
	.name = "drop",
	.args = "",
	.summary = "remove a queue and its timers, for all clients",
	.examples = "  expiryctl drop --queue leases\n",
	.run = run_drop,
};
