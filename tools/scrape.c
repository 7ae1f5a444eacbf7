// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/metrics.h"
#include "tools/queue-list.h"
#include "tools/scrape.h"
#include "tools/session.h"

#define LIMIT	1000	/* queues, without --limit */

int scrape(struct ctl *ctl, FILE *out)
{
	const uint64_t limit = ctl->given & CTL_LIMIT ? ctl->limit : LIMIT;
	struct expiry_server_stat server;
	struct queues queues = { 0 };
	struct expiry_stat stat;
	int ret;

	ret = ctl_open(ctl, NULL, 0, 0);
	if (ret)
		return ret;
	ret = expiry_stat(ctl->handle, &stat, &server, sizeof(server));
	if (ret)
		return ctl_refused(ctl->path, ret, EXPIRY_OP_STAT);
	ret = queues_ask(ctl, &queues);
	if (!ret) {
		queues_choose(ctl, &queues, true);
		metrics_print(out, &server, queues.rows,
			      queues.nr < limit ? queues.nr : limit);
	}
	queues_free(&queues);
	return ret;
}
