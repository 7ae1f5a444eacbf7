// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl arm: arm one timer.
 */
#include <time.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/input/arguments.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-time.h"
#include "tools/output/error.h"
#include "tools/output/print.h"
#include "tools/output/time-text.h"
#include "tools/refusals.h"
#include "tools/session.h"

/* Refuses what the command line alone shows to be wrong: opening makes the queue.
 * Returns 0 or EXIT_USAGE.
 */
static int check_usage(const struct ctl *ctl, const char *when,
		       const struct deadline *deadline)
{
	if (ctl->mode_given & EXPIRY_MODE_KEYED && !ctl->id)
		return ctl_usage("arm: a keyed or durable queue wants ids of your own; give the timer's --id");
	if (deadline->kind == DEADLINE_CALENDAR && ctl->clock_given &&
	    ctl->clock_id != CLOCK_REALTIME)
		return ctl_usage("%s: clock %s knows no dates; expected +SPAN, @SECONDS or never",
				 when, clock_name(ctl->clock_id));
	return 0;
}

static int run_arm(struct ctl *ctl, char **args)
{
	struct expiry_record timer = {
		.op = EXPIRY_OP_ARM,
		.period_ms = ctl->period_ms,
		.id = ctl->id,
	};
	struct deadline deadline;
	uint64_t cookie = 0;
	const char *why;
	int ret;

	ret = ctl_parse_deadline(args[0], &deadline);
	if (ret)
		return ret;
	if (args[1] && parse_number(args[1], &cookie)) {
		ret = ctl_check_quoted(args[0], args[1]);
		return ret ? ret :
		       ctl_usage("%s: expected a cookie: a number from 0 to 2^64-1",
				 args[1]);
	}
	timer.deadline_ns = deadline.ns;
	timer.cookie = cookie;

	ret = check_usage(ctl, args[0], &deadline);
	if (!ret)
		ret = ctl_open(ctl, ctl_queue(ctl), CTL_OPEN_CREATE, 0);
	if (ret)
		return ret;
	if (ctl_is_keyed(ctl) && !timer.id)
		return ctl_usage("queue %s is keyed: give the timer's --id",
				 ctl_queue(ctl));
	if (!ctl_is_keyed(ctl) && ctl->given & (CTL_NEW | CTL_LATER))
		return ctl_error("queue %s is plain: each arm makes a new timer; leave --%s out, or use --keyed --queue NAME",
				 ctl_queue(ctl),
				 ctl->given & CTL_NEW ? "new" : "later");
	ret = ctl_deadline(ctl, &deadline, &why);
	if (ret < 0)
		return ctl_usage("%s: %s", args[0], why);
	timer.flags = ret;
	if (ctl->given & CTL_NEW)
		timer.flags |= EXPIRY_F_NEW;
	if (ctl->given & CTL_LATER)
		timer.flags |= EXPIRY_F_LATER;

	ret = expiry_submit(ctl->handle, &timer, 1);
	if (ret < 0 || timer.status)
		return ctl_request_refused(ctl, NULL,
					   ret < 0 ? ret : timer.status,
					   EXPIRY_OP_ARM);
	print_timer_head(ctl);
	print_timer(ctl, &timer, expiry_now(ctl->handle), "");
	return 0;
}

const struct command cmd_arm = {
	.name = "arm",
	.args = "DEADLINE [COOKIE]",
	.summary = "arm a timer",
	.examples =
		"  expiryctl arm +5s 42\n"
		"  expiryctl arm 2027-01-31T12:00:00Z 7 --queue certificates\n"
		"  expiryctl arm 18:30 7\n"
		"  expiryctl arm 'tomorrow 09:00' 7\n"
		"  expiryctl arm +1h 7 --id 1001 --queue leases\n"
		"  expiryctl arm +30d 7 --id 1001 --queue trials --durable\n"
		"  expiryctl arm +1s --period 500ms --clock monotonic --queue ticks\n",
	.min = 1,
	.max = 2,
	.options = CTL_ID | CTL_PERIOD | CTL_NEW | CTL_LATER | CTL_DURABLE,
	.run = run_arm,
};
