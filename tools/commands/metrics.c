// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl metrics: counters of the daemon and its queues, for programs that read
 * the format of Prometheus. expiry-exporter answers requests with the same text.
 */
#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/scrape.h"

static int run_metrics(struct ctl *ctl, char **args)
{
	(void)args;
	return scrape(ctl, stdout);
}

const struct command cmd_metrics = {
	.name = "metrics",
	.args = "",
	.summary = "print the daemon's and queues' metrics",
	.examples =
		"  expiryctl metrics\n"
		"  expiryctl metrics --queue leases >leases.prom\n",
	.options = CTL_LIMIT,
	.run = run_metrics,
};
