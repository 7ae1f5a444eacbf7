// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One request per argument.
 */
#include "tools/commands/each-id.h"
#include "tools/ctl.h"
#include "tools/input/parse-line.h"
#include "tools/output/error.h"
#include "tools/output/print.h"
#include "tools/refusals.h"
#include "tools/session.h"

int each_id(struct ctl *ctl, uint8_t op, char **args)
{
	int status = 0, ret;
	uint64_t id;
	char **arg;

	/* Check all arguments before the first request. */
	for (arg = args; *arg; arg++) {
		if (parse_number(*arg, &id))
			return ctl_usage("%s: expected an id: a number from 1 to 2^64-1",
					 *arg);
	}
	ret = ctl_open(ctl, ctl_queue(ctl), 0, 0);
	if (ret)
		return ret;
	print_timer_head(ctl);
	for (arg = args; *arg; arg++) {
		struct expiry_record timer = { .op = op };

		parse_number(*arg, &id);
		timer.id = id;
		ret = expiry_submit(ctl->handle, &timer, 1);
		if (ret < 0)
			return ctl_request_refused(ctl, *arg, ret, op);
		if (timer.status)
			status = ctl_request_refused(ctl, *arg, timer.status,
						     op);
		else
			print_timer(ctl, &timer, expiry_now(ctl->handle), "");
	}
	return status;
}
