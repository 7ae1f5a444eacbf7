// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl tail: print copies of the records for a queue's consumer.
 *
 * The queue keeps its records and never waits. Copies that are not read in time
 * are dropped; a count stands in their place.
 */
#include <errno.h>
#include <inttypes.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/session.h"
#include "tools/stop.h"

#define RECORDS	256	/* received at once */

/**
 * struct tail - a running command
 * @left: number of expirations still wanted
 * @reconnects: number of reported reconnects
 */
struct tail {
	struct ctl *ctl;
	uint64_t left;
	uint32_t reconnects;
};

static void print_missed(const struct ctl *ctl,
			 const struct expiry_record *event)
{
	struct json json;

	if (!ctl->json) {
		printf("%smissed %" PRIu64 "%s\n", yellow(ctl),
		       (uint64_t)event->cookie, plain(ctl));
		return;
	}
	json_begin(&json);
	json_text(&json, "event", "missed");
	json_u64(&json, "missed", event->cookie);
	json_end(&json);
}

/* Reports reconnects: the number of records missed meanwhile is unknown. */
static void print_reconnects(struct tail *tail)
{
	const struct ctl *ctl = tail->ctl;
	struct expiry_info info;
	struct json json;

	expiry_info(ctl->handle, &info, sizeof(info));
	if (info.reconnects == tail->reconnects)
		return;
	tail->reconnects = info.reconnects;
	if (!ctl->json) {
		printf("%sconnected again: deliveries meanwhile are not shown%s\n",
		       yellow(ctl), plain(ctl));
		return;
	}
	json_begin(&json);
	json_text(&json, "event", "reconnected");
	json_end(&json);
}

static void print_event(struct tail *tail, const struct expiry_record *event,
			uint64_t now_ns)
{
	switch (event->op) {
	case EXPIRY_OP_EXPIRED:
		print_expired(tail->ctl, event, now_ns);
		tail->left--;
		break;
	case EXPIRY_OP_CLOCK_SET:
		print_clock_set(tail->ctl, event);
		break;
	case EXPIRY_OP_MISSED:
		print_missed(tail->ctl, event);
		break;
	}
}

/* Prints received records. Returns their number, or -errno. */
static int take(void *state)
{
	struct expiry_record events[RECORDS];
	struct tail *tail = state;
	uint64_t now_ns;
	int i, nr;

	nr = expiry_next(tail->ctl->handle, events, RECORDS);
	if (nr < 0)
		return nr;
	print_reconnects(tail);
	now_ns = expiry_now(tail->ctl->handle);
	for (i = 0; i < nr && tail->left; i++)
		print_event(tail, &events[i], now_ns);
	return fflush(stdout) ? -errno : nr;
}

static int run_tail(struct ctl *ctl, char **args)
{
	struct tail tail = {
		.ctl = ctl,
		.left = ctl->given & CTL_COUNT ? ctl->count : UINT64_MAX,
	};
	int ret;

	(void)args;
	ret = ctl_open(ctl, ctl_queue(ctl),
		       EXPIRY_OPEN_OBSERVE | EXPIRY_OPEN_RECONNECT, 0);
	if (ret)
		return ret;
	return stop_status(ctl, stop_follow(ctl, &tail.left, take, &tail));
}

const struct command cmd_tail = {
	.name = "tail",
	.args = "",
	.summary = "print copies of the consumer's records",
	.examples =
		"  expiryctl tail --queue leases\n"
		"  expiryctl tail --count 10 --json | jq -r .late_ns\n",
	.options = CTL_COUNT,
	.run = run_tail,
};
