// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl refresh: move a timer's deadline.
 */
#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/input/arguments.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-time.h"
#include "tools/output/error.h"
#include "tools/output/print.h"
#include "tools/refusals.h"
#include "tools/session.h"

static int run_refresh(struct ctl *ctl, char **args)
{
	struct expiry_record timer = { .op = EXPIRY_OP_REFRESH };
	struct deadline deadline;
	const char *why;
	uint64_t id;
	int ret;

	if (parse_number(args[0], &id))
		return ctl_usage("%s: expected an id: a number from 1 to 2^64-1",
				 args[0]);
	ret = ctl_parse_deadline(args[1], &deadline);
	if (ret)
		return ret;
	timer.id = id;
	timer.deadline_ns = deadline.ns;

	ret = ctl_open(ctl, ctl_queue(ctl), 0, 0);
	if (ret)
		return ret;
	ret = ctl_deadline(ctl, &deadline, &why);
	if (ret < 0)
		return ctl_usage("%s: %s", args[1], why);
	timer.flags = ret;
	if (ctl->given & CTL_LATER)
		timer.flags |= EXPIRY_F_LATER;

	ret = expiry_submit(ctl->handle, &timer, 1);
	if (ret < 0 || timer.status)
		return ctl_request_refused(ctl, args[0],
					   ret < 0 ? ret : timer.status,
					   EXPIRY_OP_REFRESH);
	print_timer_head(ctl);
	print_timer(ctl, &timer, expiry_now(ctl->handle), "");
	return 0;
}

const struct command cmd_refresh = {
	.name = "refresh",
	.args = "ID DEADLINE",
	.summary = "move a timer's deadline, earlier or later",
	.examples =
		"  expiryctl refresh 4294967297 +10m\n"
		"  expiryctl refresh 1001 +1h --later --queue leases\n",
	.min = 2,
	.max = 2,
	.options = CTL_LATER,
	.run = run_refresh,
};
