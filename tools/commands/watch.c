// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl watch: consume a queue's expirations and print them.
 *
 * The command grants credit itself, so it receives only what it prints. On an
 * acknowledging queue it acknowledges each expiration once it is written. It also
 * reconnects after a restart of the daemon.
 */
#include <errno.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/output/print.h"
#include "tools/session.h"
#include "tools/stop.h"

#define CREDIT	256

/**
 * struct watch - a running command
 * @left: number of expirations still wanted
 * @granted: unused credit among these
 */
struct watch {
	struct ctl *ctl;
	bool ack;
	uint64_t left;
	uint64_t granted;
};

/* Acknowledges written expirations. Returns 0 or -errno. */
static int acknowledge(struct watch *w, struct expiry_record *events, int nr)
{
	int i, acks = 0, ret;

	for (i = 0; i < nr; i++) {
		if (events[i].op != EXPIRY_OP_EXPIRED)
			continue;
		events[acks++] = (struct expiry_record){
			.op = EXPIRY_OP_ACK,
			.id = events[i].id,
		};
	}
	/* Refused: another client armed or acknowledged the timer. */
	ret = expiry_submit(w->ctl->handle, events, acks);
	return ret < 0 ? ret : 0;
}

/* Prints received records. Returns their number, or -errno. */
static int take(struct watch *w)
{
	struct expiry_record events[CREDIT];
	uint64_t now_ns;
	int i, nr, ret;

	nr = expiry_next(w->ctl->handle, events, CREDIT);
	if (nr <= 0)
		return nr;
	now_ns = expiry_now(w->ctl->handle);
	for (i = 0; i < nr; i++) {
		if (events[i].op == EXPIRY_OP_CLOCK_SET) {
			print_clock_set(w->ctl, &events[i]);
			continue;
		}
		print_expired(w->ctl, &events[i], now_ns);
		w->left--;
		w->granted--;
	}
	if (fflush(stdout))
		return -errno;
	if (w->ack) {
		ret = acknowledge(w, events, nr);
		if (ret)
			return ret;
	}
	return nr;
}

static int ask(struct watch *w)
{
	uint64_t want = w->left < CREDIT ? w->left : CREDIT;
	int ret;

	if (w->granted == want || (w->granted > CREDIT / 2))
		return 0;
	ret = expiry_credit(w->ctl->handle, want - w->granted);
	if (!ret)
		w->granted = want;
	return ret;
}

static int ask_and_take(void *state)
{
	struct watch *w = state;
	int ret;

	ret = ask(w);
	return ret ? ret : take(w);
}

static int run_watch(struct ctl *ctl, char **args)
{
	struct watch w = {
		.ctl = ctl,
		.left = ctl->given & CTL_COUNT ? ctl->count : UINT64_MAX,
	};
	int ret;

	(void)args;
	ret = ctl_open(ctl, ctl_queue(ctl),
		       EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL |
		       EXPIRY_OPEN_RECONNECT |
		       (ctl->given & CTL_CREATE ? CTL_OPEN_CREATE : 0), CREDIT);
	if (ret)
		return ret;
	w.ack = ctl_is_ack(ctl);
	ret = stop_follow(ctl, &w.left, ask_and_take, &w);
	if (ret)
		return stop_status(ctl, ret);
	/* Print records that arrived meanwhile: the queue no longer has them. */
	do
		ret = take(&w);
	while (ret > 0);
	return stop_status(ctl, ret);
}

const struct command cmd_watch = {
	.name = "watch",
	.args = "",
	.summary = "print expirations as they come, until Ctrl-C",
	.examples =
		"  expiryctl watch --queue leases\n"
		"  expiryctl watch --count 1 --json\n"
		"  expiryctl watch --create --queue sessions\n",
	.options = CTL_COUNT | CTL_CREATE | CTL_DURABLE,
	.run = run_watch,
};
