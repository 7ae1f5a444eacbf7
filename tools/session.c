// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <time.h>

#include "tools/ctl.h"
#include "tools/input/parse-time.h"
#include "tools/queue-list.h"
#include "tools/refusals.h"
#include "tools/session.h"

/* Opens a handle that reconnects, where the library supports that. */
static int open_reconnecting(struct ctl *ctl, struct expiry_options options)
{
	if (options.flags & EXPIRY_OPEN_CONSUME &&
	    !(options.flags & EXPIRY_OPEN_ACK))
		options.flags &= ~EXPIRY_OPEN_RECONNECT;
	return expiry_open(&ctl->handle, ctl->address, &options);
}

/* Attaches to a queue with another clock or mode than @options, unless the command
 * line contradicts them. Returns 0, an exit status with the reason printed, or
 * -errno.
 */
static int open_as_listed(struct ctl *ctl, struct expiry_options options)
{
	struct expiry_queue row;
	int ret;

	ret = queue_find(ctl, options.queue, &row);
	if (ret < 0)
		return ret;
	if (!ret)
		return ctl_unseen(options.queue);
	ret = ctl_contradiction(ctl, &row);
	if (ret)
		return ret;
	options.clock_id = row.stat.clock_id;
	options.flags |= row.stat.mode;
	ret = open_reconnecting(ctl, options);
	return ret == -EINVAL ? ctl_remade(options.queue) : ret;
}

int ctl_open(struct ctl *ctl, const char *name, unsigned int flags,
	     uint32_t credit)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = (flags & ~CTL_OPEN_CREATE) | ctl->mode_given |
			 (ctl->given & CTL_DURABLE ? EXPIRY_OPEN_DURABLE : 0),
		.queue = name,
		.clock_id = ctl->clock_id,
		.credit = credit,
		.timeout_ms = ctl_timeout_ms(ctl),
	};
	int ret;

	if (ctl->device) {
		options.queue = NULL;
	} else if (!name) {
		options.flags = EXPIRY_OPEN_EXISTING;
		options.clock_id = CLOCK_REALTIME;
	} else if (!(flags & CTL_OPEN_CREATE)) {
		options.flags |= EXPIRY_OPEN_EXISTING;
	}
	/* Most queues match the command line or its defaults, so one connection is
	 * enough. -EINVAL means that the queue exists and differs. Then one more
	 * connection lists the queue, and another attaches.
	 */
	ret = open_reconnecting(ctl, options);
	if (ret == -EINVAL && options.queue)
		ret = open_as_listed(ctl, options);
	return ret < 0 ? ctl_open_failed(ctl, name, options.flags, ret) : ret;
}

int ctl_deadline(const struct ctl *ctl, const struct deadline *deadline,
		 const char **why)
{
	if (deadline->kind == DEADLINE_RELATIVE)
		return EXPIRY_F_RELATIVE;
	if (deadline->kind != DEADLINE_CALENDAR ||
	    ctl_clock(ctl) == CLOCK_REALTIME)
		return 0;
	*why = ctl_clock(ctl) == CLOCK_MONOTONIC ?
	       "the queue is on clock monotonic, which knows no dates; expected +SPAN, @SECONDS or never" :
	       "the queue is on clock boottime, which knows no dates; expected +SPAN, @SECONDS or never";
	return -EINVAL;
}
