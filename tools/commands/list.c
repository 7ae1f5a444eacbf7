// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl list: print the timers of a queue, unordered.
 */
#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/refusals.h"
#include "tools/session.h"

#define ROWS	512

static void print_row(const struct ctl *ctl, const struct expiry_record *row,
		      uint64_t now_ns)
{
	bool delivered = row->flags & EXPIRY_F_REDELIVERED;
	struct json json;

	if (!ctl->json) {
		print_timer(ctl, row, now_ns, delivered ? "delivered" : "");
		return;
	}
	json_begin(&json);
	json_timer(&json, ctl, row);
	json_bool(&json, "delivered", delivered);
	json_end(&json);
}

static int run_list(struct ctl *ctl, char **args)
{
	uint64_t left = ctl->given & CTL_LIMIT ? ctl->limit : UINT64_MAX;
	struct expiry_record rows[ROWS];
	uint64_t cursor = 0, now_ns;
	int i, nr, ret;

	(void)args;
	ret = ctl_open(ctl, ctl_queue(ctl), 0, 0);
	if (ret)
		return ret;
	print_timer_head(ctl);
	do {
		nr = expiry_scan(ctl->handle, &cursor, rows,
				 left < ROWS ? left : ROWS);
		if (nr < 0)
			return ctl_request_refused(ctl, NULL, nr,
						   EXPIRY_OP_SCAN);
		now_ns = expiry_now(ctl->handle);
		for (i = 0; i < nr; i++)
			print_row(ctl, &rows[i], now_ns);
		left -= nr;
	} while (cursor && left);
	return 0;
}

const struct command cmd_list = {
	.name = "list",
	.args = "",
	.summary = "list the timers of a queue, unordered",
	.examples =
		"  expiryctl list --queue leases --limit 20\n"
		"  expiryctl list --json | jq -r .id\n",
	.options = CTL_LIMIT,
	.run = run_list,
};
