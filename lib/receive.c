// SPDX-License-Identifier: LGPL-2.1-or-later
/* Receiving records, and the credit for expirations. */
#include <assert.h>
#include <errno.h>

#include "acks.h"
#include "clock.h"
#include "inbox.h"

static void grant(struct expiry *h, uint32_t nr)
{
	h->granted += nr;
	assert(credit_is_bounded(h));
	h->credit_due += nr;
}

void credit_top_up(struct expiry *h)
{
	uint32_t open = h->granted + h->held;

	if (h->consume && !h->manual && open <= h->credit / 2)
		grant(h, h->credit - open);
}

EXPORT int expiry_credit(struct expiry *h, uint32_t nr)
{
	if (h->error)
		return h->error;
	if (!h->manual)
		return -EINVAL;
	if (nr > h->credit - h->granted - h->held)
		return -ENOBUFS;
	grant(h, nr);
	(void)h->transport->flush(h);
	return h->error;
}

EXPORT int expiry_next(struct expiry *h, struct expiry_record *records,
		       uint32_t max)
{
	uint32_t nr = 0;
	int ret;

	if (!max)
		return -EINVAL;
	if (max > INT32_MAX)
		max = INT32_MAX;
	/* Repeat: a reconnect meanwhile may have put events into the ring, and the fd
	 * does not report these.
	 */
	do {
		ret = 0;
		nr += inbox_take(h, records + nr, max - nr);
		if (nr < max && !h->error)
			ret = h->transport->take(h, records + nr, max - nr);
		if (ret > 0)
			nr += ret;
		if (!h->error) {
			credit_top_up(h);
			(void)h->transport->flush(h);
		}
	} while (nr < max && !h->error && expiry_pending(h));
	assert(nr <= max);
	if (h->acks)
		acks_complete(h, records, nr);
	if (nr)
		return nr;
	return ret < 0 ? ret : h->error;
}

/* Returns the milliseconds until @end_ns, rounded up: a wait never ends early.
 */
static int ms_until(uint64_t end_ns)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	return now < end_ns ? (end_ns - now + 999999) / 1000000 : 0;
}

EXPORT int expiry_receive(struct expiry *h, struct expiry_record *records,
			  uint32_t max, int timeout_ms)
{
	uint64_t end_ns = 0;
	int ret;

	if (!h->consume && !h->observe)
		return -EINVAL;
	if (h->posted)
		return -EBUSY;
	ret = expiry_next(h, records, max);
	if (ret || !timeout_ms)
		return ret;

	if (timeout_ms > 0)
		end_ns = clock_now_ns(CLOCK_MONOTONIC) + timeout_ms * 1000000ULL;
	do {
		ret = expiry_wait(h, timeout_ms);
		if (ret < 0)
			return ret;
		ret = expiry_next(h, records, max);
		if (timeout_ms > 0)
			timeout_ms = ms_until(end_ns);
	} while (!ret && timeout_ms);
	return ret;
}
