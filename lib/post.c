// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Non-blocking calls: sending, and what to poll for.
 */
#include <errno.h>
#include <poll.h>

#include "internal.h"

EXPORT int expiry_post(struct expiry *h, const struct expiry_record *records,
		       uint32_t count)
{
	if (h->error)
		return h->error;
	if (count > INT32_MAX || !request_ok(records, count))
		return -EINVAL;
	return h->transport->post(h, records, count);
}

EXPORT int expiry_flush(struct expiry *h)
{
	if (h->error)
		return h->error;
	return h->transport->flush(h);
}

EXPORT short expiry_events(const struct expiry *h)
{
	return h->transport->events(h);
}

EXPORT uint32_t expiry_pending(const struct expiry *h)
{
	return ring_nr(&h->inbox) + h->transport->pending(h);
}

EXPORT int expiry_wait(struct expiry *h, int timeout_ms)
{
	struct pollfd pfd = { .fd = h->fd };
	int ret;

	if (expiry_pending(h) || h->error)
		return 1;
	ret = h->transport->flush(h);
	if (h->error)
		return 1;
	if (!ret && h->post_short) {
		/* There is room again; no event reports that. */
		h->post_short = false;
		return 1;
	}
	pfd.events = h->transport->events(h);
	ret = poll(&pfd, 1, timeout_ms);
	return ret < 0 ? -errno : ret;
}
