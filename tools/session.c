// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The connection of a command, and its errors in words.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "ctl.h"

/* Unless a command has reasons to wait less. */
#define TIMEOUT_MS	60000

const char *ctl_default_socket(void)
{
	const char *path = getenv("EXPIRY_SOCKET");

	return path && *path ? path : EXPIRY_SOCKET_DEFAULT;
}

const char *ctl_queue(const struct ctl *ctl)
{
	return ctl->queue ? ctl->queue : CTL_QUEUE_DEFAULT;
}

static void vprint_error(const char *format, va_list args)
{
	/* The line belongs behind what was printed before. */
	fflush(stdout);
	fputs("expiryctl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int ctl_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprint_error(format, args);
	va_end(args);
	return EXIT_REFUSED;
}

int ctl_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprint_error(format, args);
	va_end(args);
	return EXIT_USAGE;
}

int ctl_refused(const char *what, int error, unsigned int op)
{
	return ctl_error("%s: %s", what, expiry_explain(error, op));
}

int ctl_open_failed(const struct ctl *ctl, const char *name, int error)
{
	switch (-error) {
	case ENOENT:
	case ECONNREFUSED:
		if (ctl->device)
			return ctl_error("%s: there is no such device; load the module with: modprobe expiry",
					 ctl->path);
		return ctl_error("%s: no daemon answers; start it with: systemctl start expiryd, or name its socket with --socket",
				 ctl->path);
	case EACCES:
	case EBUSY:
	case EINVAL:
		if (name && !ctl->device)
			return ctl_error("%s: queue %s: %s", ctl->path, name,
					 expiry_explain(error, EXPIRY_OP_HELLO));
		break;
	}
	return ctl_refused(ctl->path, error, EXPIRY_OP_HELLO);
}

/* Connections are made anew where that can be had. */
static int open_lasting(struct ctl *ctl, struct expiry_options options)
{
	if (!(options.flags & EXPIRY_OPEN_ACK))
		options.flags &= ~EXPIRY_OPEN_RECONNECT;
	return expiry_open(&ctl->handle, ctl->address, &options);
}

/*
 * A queue that exists answers -EINVAL to another clock or mode than its own.
 * Try those that the command line does not rule out, the likeliest first; a
 * queue that is not there is made by the very first.
 */
static int open_any(struct ctl *ctl, const struct expiry_options *first)
{
	static const uint32_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME
	};
	static const uint32_t modes[] = {
		0, EXPIRY_MODE_KEYED, EXPIRY_MODE_ACK, EXPIRY_MODE_ALL
	};
	const uint32_t fixed = ctl->mode_given;
	struct expiry_options options = *first;
	size_t c, m;
	int ret;

	ret = open_lasting(ctl, options);
	if (ret != -EINVAL || !options.queue || ctl->device)
		return ret;
	for (c = 0; c < sizeof(clocks) / sizeof(*clocks); c++) {
		for (m = 0; m < sizeof(modes) / sizeof(*modes); m++) {
			options.clock_id = clocks[c];
			options.flags = (first->flags & ~EXPIRY_MODE_ALL) |
					modes[m];
			if (ctl->clock_given &&
			    options.clock_id != first->clock_id)
				continue;
			if ((modes[m] & fixed) != fixed)
				continue;
			ret = open_lasting(ctl, options);
			if (ret != -EINVAL)
				return ret;
		}
	}
	return ret;
}

int ctl_open(struct ctl *ctl, const char *name, unsigned int flags,
	     uint32_t credit)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags | ctl->mode_given,
		.queue = ctl->device ? NULL : name,
		.clock_id = ctl->clock_id,
		.credit = credit,
		.timeout_ms = ctl->timeout_ms ? ctl->timeout_ms : TIMEOUT_MS,
	};
	int ret;

	ret = open_any(ctl, &options);
	return ret ? ctl_open_failed(ctl, name, ret) : 0;
}

static struct expiry_info info_of(const struct ctl *ctl)
{
	struct expiry_info info;

	expiry_info(ctl->handle, &info, sizeof(info));
	return info;
}

bool ctl_is_keyed(const struct ctl *ctl)
{
	return info_of(ctl).mode & EXPIRY_MODE_KEYED;
}

bool ctl_is_ack(const struct ctl *ctl)
{
	return info_of(ctl).mode & EXPIRY_MODE_ACK;
}

uint32_t ctl_clock(const struct ctl *ctl)
{
	return info_of(ctl).clock_id;
}

int ctl_deadline(const struct ctl *ctl, const struct deadline *deadline,
		 const char **why)
{
	if (deadline->kind == DEADLINE_RELATIVE)
		return EXPIRY_F_RELATIVE;
	if (deadline->kind == DEADLINE_CALENDAR &&
	    ctl_clock(ctl) != CLOCK_REALTIME) {
		*why = "the queue's clock knows no dates: expected +DURATION, @SECONDS or never";
		return -EINVAL;
	}
	return 0;
}
