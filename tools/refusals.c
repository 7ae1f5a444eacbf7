// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages for refusals: one cause each, and its remedy. Where the daemon's errno is
 * ambiguous, QUEUES gives the queue's clock, mode, owner and consumer.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "tools/access.h"
#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/time-text.h"
#include "tools/process.h"
#include "tools/queue-list.h"
#include "tools/refusals.h"

#define NAME_TEXT	80	/* bytes for a process */

/* Writes a process's id, and its own name if it is known. */
static const char *process_text(char *text, uint32_t pid)
{
	char name[PROCESS_TEXT];

	if (process_name(name, pid))
		snprintf(text, NAME_TEXT, "process %" PRIu32 " (%.32s)", pid,
			 name);
	else
		snprintf(text, NAME_TEXT, "process %" PRIu32, pid);
	return text;
}

/* Returns whether the daemon refuses any connection with this error, not only one to
 * this queue.
 */
static bool daemon_answers(const struct ctl *ctl, int error)
{
	struct expiry_queue row;

	return queue_find(ctl, "", &row) == error;
}

/* Returns whether the daemon has room for no further queue. */
static bool queues_are_full(const struct ctl *ctl)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = ctl_timeout_ms(ctl),
	};
	struct expiry *handle = NULL;
	int ret;

	ret = expiry_open(&handle, ctl->address, &options);
	expiry_close(handle);
	return ret == -ENOSPC;
}

/* Returns whether the queue has room, so that the journal is what is full. */
static bool is_journal_full(const struct ctl *ctl, const char *name)
{
	struct expiry_queue row;

	return ctl_is_durable(ctl) && queue_find(ctl, name, &row) == 1 &&
	       row.stat.armed + row.stat.unacked < row.stat.limit;
}

/* Returns whether the queue does not exist, so that the refusal is about making it. */
static bool is_absent(const struct ctl *ctl, const char *name)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_EXISTING,
		.queue = name,
		.timeout_ms = ctl_timeout_ms(ctl),
	};
	struct expiry *handle = NULL;
	int ret;

	ret = expiry_open(&handle, ctl->address, &options);
	expiry_close(handle);
	return ret == -ENOENT;
}

/* Reports the queue's consumer. Returns 0 if the daemon has no room for a connection
 * instead.
 */
static int consumer_refused(const struct ctl *ctl, const char *name)
{
	struct expiry_queue row;
	char process[NAME_TEXT];
	int ret = queue_find(ctl, name, &row);

	if (ret == -EBUSY)
		return 0;
	if (ret == 1 && row.daemon.consumer_pid)
		return ctl_error("queue %s has a consumer already: %s; a queue has one at a time: end that one first",
				 name, process_text(process, row.daemon.consumer_pid));
	return ctl_error("queue %s has a consumer already; a queue has one at a time: end that one first",
			 name);
}

/* Returns the command that starts the daemon for this socket. */
static const char *starter(const struct ctl *ctl)
{
	static const char own[] = "/" EXPIRY_SOCKET_USER;
	size_t len = strlen(ctl->path);

	/* A daemon that this user starts makes its socket at this path. */
	if (geteuid() && len >= sizeof(own) &&
	    !strcmp(ctl->path + len - strlen(own), own))
		return "expiryd &";
	return "systemctl start expiryd";
}

static int no_daemon(const struct ctl *ctl)
{
	if (ctl->device)
		return ctl_error("%s: there is no such device; load the module with: modprobe expiry",
				 ctl->path);
	return ctl_error("%s: no daemon answers; start it with: %s, or name its socket with --socket",
			 ctl->path, starter(ctl));
}

/* Reports a refused HELLO with a queue's name. Returns 0 if the queue is not the cause. */
static int hello_failed(const struct ctl *ctl, const char *name,
			unsigned int flags, int error)
{
	const bool create = !(flags & EXPIRY_OPEN_EXISTING);

	switch (-error) {
	case ENOENT:
		return ctl_error("no queue %s; arm, load and watch --create make it",
				 name);
	case EACCES:
		if (create && is_absent(ctl, name))
			return ctl_error("no queue %s, and the setting undeclared in expiryd.conf does not let you make it; ask the administrator for queues.d/%s.conf",
					 name, name);
		return access_queue_refused(ctl, name,
				     flags & EXPIRY_OPEN_CONSUME ?
				     ACCESS_CONSUME : ACCESS_LOOK);
	case EBUSY:
		if (flags & EXPIRY_OPEN_OBSERVE && !daemon_answers(ctl, error))
			return ctl_error("queue %s has as many observers as it may; end one, or raise observers_per_queue in expiryd.conf",
					 name);
		return flags & EXPIRY_OPEN_CONSUME ?
		       consumer_refused(ctl, name) : 0;
	case EDQUOT:
		if (create && !daemon_answers(ctl, error))
			return ctl_error("queue %s: you have as many queues as one user may; drop one, or raise queues_per_user in expiryd.conf",
					 name);
		break;
	case EOPNOTSUPP:
		if (flags & EXPIRY_OPEN_DURABLE)
			return ctl_error("queue %s: the daemon has no journal, which a durable queue needs; set journal in expiryd.conf and restart it, or leave --durable out",
					 name);
		break;
	case ENOSPC:
		if (flags & EXPIRY_OPEN_DURABLE && !queues_are_full(ctl))
			return ctl_error("queue %s: the daemon's journal is full; free space on its disk, or raise journal_size in expiryd.conf",
					 name);
		return ctl_error("queue %s: the daemon has as many queues as it may; drop one, or raise queues in expiryd.conf",
				 name);
	}
	return 0;
}

int ctl_open_failed(const struct ctl *ctl, const char *name,
		    unsigned int flags, int error)
{
	int ret;

	/* connect() and open() return these errnos, too. */
	if (error == -ECONNREFUSED ||
	    (error == -ENOENT && access(ctl->path, F_OK)))
		return no_daemon(ctl);
	if (error == -EACCES &&
	    faccessat(AT_FDCWD, ctl->path, W_OK, AT_EACCESS))
		return access_path_refused(ctl);
	if (name && !ctl->device) {
		ret = hello_failed(ctl, name, flags, error);
		if (ret)
			return ret;
	}
	switch (-error) {
	case EBUSY:
		return ctl_error("%s: the daemon has as many connections as it allows; try again later, or raise connections in expiryd.conf",
				 ctl->path);
	case EDQUOT:
		return ctl_error("%s: you have as many connections as one user may; end some, or raise connections_per_user in expiryd.conf",
				 ctl->path);
	case EINVAL:
		/* A connection without a queue failed; it has no clock or mode. */
		if (!ctl->device)
			return ctl_error("%s: the daemon is older than this expiryctl; restart it with: systemctl restart expiryd",
					 ctl->path);
		break;
	case EOPNOTSUPP:
		if (!ctl->device)
			return ctl_error("%s: library and daemon are of different versions; restart the daemon with: systemctl restart expiryd",
					 ctl->path);
		break;
	case ENAMETOOLONG:
		return ctl_error("%s: the path is longer than the 107 bytes that a socket's may have; name a shorter one with --socket",
				 ctl->path);
	case EPROTOTYPE:
		return ctl_error("%s: that is no socket of expiryd's; name its socket with --socket",
				 ctl->path);
	}
	return ctl_refused(ctl->path, error, EXPIRY_OP_HELLO);
}

int ctl_remade(const char *name)
{
	return ctl_error("queue %s was dropped meanwhile and made anew with another clock or mode; try again",
			 name);
}

int ctl_unseen(const char *name)
{
	return ctl_error("queue %s has another clock or mode, and you may not see which; give --clock, --keyed and --ack as its owner has them",
			 name);
}

int ctl_contradiction(const struct ctl *ctl, const struct expiry_queue *row)
{
	const uint32_t lacking = ctl->mode_given & ~row->stat.mode;
	const char *name = row->name;

	if (ctl->given & CTL_DURABLE &&
	    !(row->daemon.access & EXPIRY_QUEUE_DURABLE))
		return ctl_error("queue %s is not durable; leave --durable out, or name another queue with --queue",
				 name);
	if (ctl->clock_given && ctl->clock_id != row->stat.clock_id)
		return ctl_error("queue %s is on clock %s; leave --clock out, or name another queue with --queue",
				 name, clock_name(row->stat.clock_id));
	if (lacking & EXPIRY_MODE_KEYED && ctl->given & CTL_ID)
		return ctl_error("queue %s is plain: it gives ids itself; leave --id out, or use --keyed --queue NAME",
				 name);
	if (lacking & EXPIRY_MODE_KEYED)
		return ctl_error("queue %s is plain: it gives ids itself; leave --keyed out, or name another queue with --queue",
				 name);
	if (lacking & EXPIRY_MODE_ACK)
		return ctl_error("queue %s delivers at most once; leave --ack out, or name another queue with --queue",
				 name);
	return 0;
}

/* Returns whether -ENOENT for this op is about the timer, not the queue. */
static bool is_of_timer(unsigned int op)
{
	return op == EXPIRY_OP_REFRESH || op == EXPIRY_OP_CANCEL ||
	       op == EXPIRY_OP_QUERY;
}

int ctl_request_refused(const struct ctl *ctl, const char *what, int error,
			unsigned int op)
{
	const char *name = ctl_queue(ctl);

	switch (-error) {
	case ENOENT:
		if (is_of_timer(op))
			return ctl_error("no timer %s in queue %s: it expired, was cancelled, or never was; see: expiryctl list --queue %s",
					 what, name, name);
		return ctl_error("no queue %s any more: it was dropped meanwhile",
				 name);
	case EEXIST:
		return ctl_error("queue %s: timer %" PRIu64 " is armed already; leave --new out to change it",
				 name, ctl->id);
	case EACCES:
		return access_queue_refused(ctl, name, access_right(op));
	case ENOSPC:
		if (is_journal_full(ctl, name))
			return ctl_error("queue %s: the daemon's journal is full; cancel and acknowledge timers, free space on its disk, or raise journal_size in expiryd.conf",
					 name);
		return ctl_error("queue %s is full; cancel or acknowledge timers, or raise timers_per_queue in expiryd.conf",
				 name);
	case EDQUOT:
		return ctl_error("queue %s: you have as many timers as one user may; cancel some, or raise timers_per_user in expiryd.conf",
				 name);
	case EOPNOTSUPP:
		return ctl_error("queue %s: the daemon is older than this expiryctl and does not know this request; restart it with: systemctl restart expiryd",
				 name);
	case EBUSY:
		if (op == EXPIRY_OP_DROP)
			return ctl_error("queue %s has other connections; end their programs first, see: expiryctl top %s",
					 name, name);
		return ctl_error("queue %s: the daemon is overloaded and did nothing; try again",
				 name);
	}
	if (what)
		return ctl_error("timer %s in queue %s: %s", what, name,
				 expiry_explain(error, op));
	return ctl_error("queue %s: %s", name, expiry_explain(error, op));
}
