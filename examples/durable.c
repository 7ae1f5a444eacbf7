// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A durable queue: trials that end though the program, the daemon and the machine
 * do not live that long.
 *
 *	./durable arm ID SECONDS	begins a trial; it is then on the disk
 *	./durable [COUNT]		prints trials that have ended, COUNT of them
 *
 * The daemon needs a journal: expiryd --journal DIR.
 */
#include <err.h>
#include <errno.h>
#include <expiry/expiry.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(int ret, unsigned int op)
{
	if (ret < 0)
		errx(1, "expiryd: %s", expiry_explain(ret, op));
	return ret;
}

static struct expiry *open_queue(uint32_t more)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.queue = "trials",
		/* With RECONNECT a restart of the daemon is a pause. */
		.flags = EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_KEYED |
			 EXPIRY_OPEN_ACK | EXPIRY_OPEN_RECONNECT | more,
	};
	struct expiry *h;

	check(expiry_open(&h, NULL, &options), EXPIRY_OP_HELLO);
	return h;
}

static void arm(uint64_t id, uint64_t seconds)
{
	struct expiry *h = open_queue(0);

	/* Once more with the same id moves the end of the trial. */
	check(expiry_arm(h, &id, seconds * 1000000000, 0, 0, EXPIRY_F_RELATIVE),
	      EXPIRY_OP_ARM);
	expiry_close(h);
}

/* Deals with a trial that has ended. It may do so twice: the ACK may not have
 * reached the disk.
 */
static void end_trial(const struct expiry_record *due)
{
	printf("trial %" PRIu64 " has ended%s%s\n", (uint64_t)due->id,
	       due->flags & EXPIRY_F_LATE ? ", while there was no daemon" : "",
	       due->flags & EXPIRY_F_REDELIVERED ? ", perhaps told before" : "");
	fflush(stdout);
}

static void receive(uint64_t count)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record due;
	int ret;

	while (count--) {
		check(expiry_receive(h, &due, 1, -1), EXPIRY_OP_EXPIRED);
		if (due.op != EXPIRY_OP_EXPIRED) {	/* the clock was set */
			count++;
			continue;
		}
		end_trial(&due);
		/* Without the ACK it comes again. After a restart of the daemon
		 * an ACK may find nothing.
		 */
		ret = expiry_ack(h, due.id);
		if (ret != -ENOENT)
			check(ret, EXPIRY_OP_ACK);
	}
	expiry_close(h);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "arm"))
		arm(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	else if (argc <= 2)
		receive(argc == 2 ? strtoull(argv[1], NULL, 10) : UINT64_MAX);
	else
		errx(2, "usage: durable [COUNT] | durable arm ID SECONDS");
	return 0;
}
