// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl run: execute a command when a timer expires.
 *
 * The timer is in an anonymous queue, which may end with its daemon. It is then
 * armed again with the next daemon, for the same time. So restarts of the daemon
 * do not stop the command. It runs once, since this process executes it.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/input/arguments.h"
#include "tools/input/parse-time.h"
#include "tools/output/error.h"
#include "tools/output/span.h"
#include "tools/refusals.h"

/* Pause between attempts to connect. */
#define PAUSE_MS	100
#define PAUSE_MAX_MS	2000

/* Exit status by the shells' convention. */
#define EXIT_NOT_RUN	126
#define EXIT_NOT_FOUND	127

/**
 * struct job - the command's time
 * @when: value of --in or --at
 * @deadline_ns: absolute, on the clock @clock_id
 * @met: a connection succeeded once; a daemon that ends is waited for
 * @armed: the timer was armed once; refusals that may pass are retried
 * @op: the request that failed
 */
struct job {
	struct ctl *ctl;
	const char *when;
	uint32_t clock_id;
	uint64_t deadline_ns;
	bool met;
	bool armed;
	unsigned int op;
};

/* Waits over one connection. Returns 0 when the job is due, or -errno. */
static int wait_once(struct job *job)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME,
		.clock_id = job->clock_id,
		.credit = 1,
	};
	struct ctl *ctl = job->ctl;
	struct expiry_record due;
	uint64_t id = 0;
	int ret;

	job->op = EXPIRY_OP_HELLO;
	ret = expiry_open(&ctl->handle, ctl->address, &options);
	if (ret)
		return ret;
	job->met = true;
	job->op = EXPIRY_OP_ARM;
	ret = expiry_arm(ctl->handle, &id, job->deadline_ns, 0, 0, 0);
	while (!ret) {
		job->armed = true;
		job->op = EXPIRY_OP_EXPIRED;
		ret = expiry_receive(ctl->handle, &due, 1, -1);
		if (ret == 1 && due.op == EXPIRY_OP_EXPIRED) {
			ret = 0;
			break;
		}
		/* The clock was set, or a signal interrupted the wait. */
		if (ret >= 0 || ret == -EINTR)
			ret = 0;
	}
	expiry_close(ctl->handle);
	ctl->handle = NULL;
	return ret;
}

/* Returns whether the error may pass: the daemon ended, or is starting; or it has no
 * room, perhaps because all its clients connect again at once. A timer that was never
 * armed reports the latter at once, to the user who waits for it.
 */
static bool passing(const struct job *job, int error)
{
	switch (-error) {
	case ECONNREFUSED:
	case ECONNRESET:
	case ENOENT:
	case EPIPE:
		return job->met;
	case EAGAIN:
	case EBUSY:
	case EDQUOT:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOSPC:
		return job->armed;
	}
	return false;
}

static int wait_failed(const struct job *job, int error)
{
	if (job->op == EXPIRY_OP_HELLO)
		return ctl_open_failed(job->ctl, NULL, 0, error);
	return ctl_refused(job->ctl->path, error, job->op);
}

/* Waits until the job is due, and reconnects as needed. Returns 0 or an exit
 * status.
 */
static int wait_due(struct job *job)
{
	unsigned int ms = PAUSE_MS;
	struct timespec pause;
	int ret;

	while ((ret = wait_once(job))) {
		if (!passing(job, ret))
			return wait_failed(job, ret);
		pause.tv_sec = ms / 1000;
		pause.tv_nsec = ms % 1000 * 1000000;
		nanosleep(&pause, NULL);
		ms = ms < PAUSE_MAX_MS / 2 ? 2 * ms : PAUSE_MAX_MS;
	}
	return 0;
}

/* Sets clock and deadline. A span is on CLOCK_BOOTTIME, which includes suspend
 * and is never set. A date is on CLOCK_REALTIME. Returns 0 or EXIT_USAGE.
 */
static int job_deadline(struct job *job)
{
	const bool in = job->ctl->in;
	struct deadline deadline;
	struct timespec now;
	int ret;

	ret = in ? ctl_parse_in(job->when, &deadline) :
	      ctl_parse_deadline(job->when, &deadline);
	if (ret)
		return ret;
	job->clock_id = CLOCK_REALTIME;
	job->deadline_ns = deadline.ns;
	if (deadline.kind != DEADLINE_RELATIVE)
		return 0;
	job->clock_id = CLOCK_BOOTTIME;
	clock_gettime(job->clock_id, &now);
	if (__builtin_add_overflow(deadline.ns, now.tv_sec * NSEC_PER_SEC +
				   now.tv_nsec, &job->deadline_ns) ||
	    job->deadline_ns == EXPIRY_NEVER)
		return ctl_usage("--%s %s: that is never; 2^64 nanoseconds are 584 years",
				 in ? "in" : "at", job->when);
	return 0;
}

static int run_run(struct ctl *ctl, char **args)
{
	struct job job = { .ctl = ctl, .when = ctl->in ? ctl->in : ctl->at };
	int ret;

	if (!ctl->in == !ctl->at)
		return ctl_usage("run: say when, by --in SPAN or --at TIME");
	if (ctl->queue || ctl->clock_given || ctl->mode_given)
		return ctl_usage("run: it has a queue of its own; leave --queue, --clock, --keyed and --ack out");
	ret = job_deadline(&job);
	if (!ret)
		ret = ctl_check_quoted(job.when, args[0]);
	if (!ret)
		ret = wait_due(&job);
	if (ret)
		return ret;
	execvp(args[0], args);
	ret = errno;
	ctl_error("%s: %s", args[0], strerror(ret));
	return ret == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

const struct command cmd_run = {
	.name = "run",
	.args = "-- COMMAND [ARGUMENT...]",
	.summary = "run a command at a time, even if the daemon restarts",
	.examples =
		"  expiryctl run --in 5min -- echo tea\n"
		"  expiryctl run --at 'tomorrow 09:00' -- make backup\n"
		"  expiryctl run --at 18:30 -- systemctl suspend\n",
	.min = 1,
	.max = -1,
	.options = CTL_IN | CTL_AT,
	.run = run_run,
};
