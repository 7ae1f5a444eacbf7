// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sd-event(3): jobs that run at least once, even if the daemon restarts. Prints
 * each TEXT after its SECONDS and then acknowledges it. Ends after the last one, or
 * with SIGTERM.
 *
 *	./sd-event QUEUE SECONDS TEXT [SECONDS TEXT...]
 */
#include <err.h>
#include <errno.h>
#include <expiry/expiry.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#define MAX	64

static uint64_t deadlines[MAX + 1];	/* by the timer's id; 0 = done */
static uint64_t nr_jobs, nr_done;
static char **texts;			/* the text of an id is at 2 * id */
static struct expiry *h;

static int check(int ret, unsigned int op)
{
	if (ret < 0)
		errx(1, "expiryd: %s", expiry_explain(ret, op));
	return ret;
}

static void open_queue(const char *queue)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.queue = queue,
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_KEYED |
			 EXPIRY_OPEN_ACK | EXPIRY_OPEN_RECONNECT,
	};

	check(expiry_open(&h, NULL, &options), EXPIRY_OP_HELLO);
}

/* Arms the open jobs. It is idempotent: the program chooses ids and times. */
static void arm_jobs(void)
{
	for (uint64_t id = 1; id <= nr_jobs; id++)
		if (deadlines[id])
			check(expiry_arm(h, &id, deadlines[id], 0, 0, 0),
			      EXPIRY_OP_ARM);
}

/* Does a job. Without the ACK the queue's next consumer gets it again. */
static void do_job(uint64_t id)
{
	const struct expiry_record ack = { .op = EXPIRY_OP_ACK, .id = id };

	if (id <= nr_jobs && deadlines[id]) {
		puts(texts[2 * id]);
		fflush(stdout);
		deadlines[id] = 0;
		nr_done++;
	}
	if (!check(expiry_post(h, &ack, 1), EXPIRY_OP_ACK))
		errx(1, "too many requests without an answer");
}

/* Takes available records. sd-event also calls this before each wait: the
 * descriptor does not show records that are already in the handle.
 */
static int take(sd_event_source *source, void *queue)
{
	struct expiry_record records[16];
	struct expiry *old = h;
	int i, nr;

	while ((nr = expiry_next(h, records, 16))) {
		if (nr == -ESTALE) {	/* the new daemon lost the queue */
			open_queue(queue);
			arm_jobs();
			/* Open the new handle first, for a different descriptor. */
			sd_event_source_set_io_fd(source, expiry_fd(h));
			expiry_close(old);
			old = h;
			continue;
		}
		check(nr, EXPIRY_OP_EXPIRED);
		for (i = 0; i < nr; i++)
			if (records[i].op == EXPIRY_OP_EXPIRED)
				do_job(records[i].id);
	}
	if (nr_done == nr_jobs)
		sd_event_exit(sd_event_source_get_event(source), 0);
	return sd_event_source_set_io_events(source, expiry_events(h));
}

static int ready(sd_event_source *source, int fd, uint32_t events, void *queue)
{
	(void)fd;
	(void)events;
	return take(source, queue);
}

int main(int argc, char **argv)
{
	sd_event_source *source;
	sd_event *event;
	sigset_t term;

	if (argc < 4 || argc % 2 || argc > 2 * MAX)
		errx(2, "usage: sd-event QUEUE SECONDS TEXT [SECONDS TEXT...]");
	open_queue(argv[1]);
	texts = argv + 1;
	for (; 2 * nr_jobs + 3 < (uint64_t)argc; nr_jobs++)
		deadlines[nr_jobs + 1] = expiry_now(h) +
			strtod(argv[2 * nr_jobs + 2], NULL) * 1e9;
	arm_jobs();
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	if (sd_event_default(&event) < 0 ||
	    sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL) < 0 ||
	    sd_event_add_io(event, &source, expiry_fd(h), EPOLLIN, ready,
			    argv[1]) < 0 ||
	    sd_event_source_set_prepare(source, take) < 0 ||
	    sd_event_loop(event) < 0)
		errx(1, "no event loop");
	sd_event_source_unref(source);
	sd_event_unref(event);
	expiry_close(h);
	return 0;
}
