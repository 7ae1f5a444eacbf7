// SPDX-License-Identifier: LGPL-2.1-or-later
/* Timers that the program yields again when its queue is empty or lost. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "clock.h"
#include "inbox.h"
#include "restore.h"

/* A server that is held up refuses with -EBUSY and does nothing. These timers
 * are sent again after pauses. After REFUSED_NS without one armed it is final.
 */
#define PAUSE_MS	10
#define PAUSE_MAX_MS	1000
#define REFUSED_NS	(5 * 1000000000ULL)

int restore_init(struct expiry *h, const struct expiry_options *options)
{
	struct restore *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->next = options->restore;
	r->arg = options->restore_arg;
	h->restore = r;
	return 0;
}

/* Makes the first @nr records of the batch those to be sent next. */
static void batch_set(struct restore *r, uint32_t nr)
{
	r->nr = nr;
	r->sent = false;
	r->answered = 0;
	r->busy = 0;
}

void restore_begin(struct expiry *h)
{
	struct restore *r = h->restore;

	assert(r->next && r->wanted);
	r->size = h->window < RESTORE_BATCH ? h->window : RESTORE_BATCH;
	batch_set(r, 0);
	r->cursor = 0;
	r->refused_ns = 0;
	r->pause_ms = 0;
}

/* Gets more timers from the program: how many, or its errno. */
static int fetch(struct restore *r)
{
	struct expiry_record *timer;
	int i, nr;

	nr = r->next(r->arg, &r->cursor, r->batch, r->size);
	if (nr < 0 || (uint32_t)nr > r->size)
		return nr < 0 ? nr : -EINVAL;
	for (i = 0; i < nr; i++) {
		timer = &r->batch[i];
		*timer = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.period_ms = timer->period_ms,
			.id = timer->id,
			.deadline_ns = timer->deadline_ns,
			.cookie = timer->cookie,
		};
	}
	batch_set(r, nr);
	return nr;
}

/* Handles a reply: 0, -EPROTO, or the refusal. */
static int take_reply(struct restore *r, const struct expiry_record *reply)
{
	const struct expiry_record *timer = &r->batch[r->answered];

	if (reply->op != EXPIRY_OP_ARM || reply->status > 0 ||
	    reply->id != timer->id)
		return -EPROTO;
	if (reply->status && reply->status != -EBUSY)
		return reply->status;
	if (reply->status)
		r->batch[r->busy++] = *timer;
	else
		r->armed++;
	r->answered++;
	return 0;
}

/* Takes the replies in the buffer, and keeps events. 0 or h->error. */
static int take_replies(struct expiry *h)
{
	struct restore *r = h->restore;
	int ret = inbox_sort(h, NULL, 0);

	while (!ret && r->answered < r->nr && stream_nr(&h->stream)) {
		ret = take_reply(r, stream_units(&h->stream));
		if (ret)
			return break_handle(h, ret);
		stream_skip(&h->stream, 1);
		ret = inbox_sort(h, NULL, 0);
	}
	return ret;
}

/* Ends a batch in which the server refused timers: 0, or -EBUSY. */
static int batch_again(struct restore *r)
{
	const uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (r->busy < r->nr || !r->refused_ns) {
		r->refused_ns = now_ns;
		r->pause_ms = PAUSE_MS;
	} else if (now_ns - r->refused_ns >= REFUSED_NS) {
		return -EBUSY;
	} else {
		r->pause_ms *= 2;
		if (r->pause_ms > PAUSE_MAX_MS)
			r->pause_ms = PAUSE_MAX_MS;
	}
	r->retry_ns = now_ns + r->pause_ms * 1000000ULL;
	batch_set(r, r->busy);
	return 0;
}

/* Handles a batch that is answered: 1 = all timers are armed, 0 = not yet, or
 * h->error.
 */
static int batch_end(struct expiry *h)
{
	struct restore *r = h->restore;
	int ret;

	if (r->busy) {
		ret = batch_again(r);
		return ret ? break_handle(h, ret) : 0;
	}
	r->refused_ns = 0;
	r->pause_ms = 0;
	ret = fetch(r);
	if (ret < 0)
		return break_handle(h, ret);
	r->wanted = ret > 0;
	return !ret;
}

uint64_t restore_pause_ns(const struct expiry *h)
{
	const struct restore *r = h->restore;
	uint64_t now_ns;

	if (r->sent || !r->pause_ms)
		return 0;
	now_ns = clock_now_ns(CLOCK_MONOTONIC);
	/* Not 0, which is to wait for an answer to what is not sent yet. */
	return now_ns < r->retry_ns ? r->retry_ns - now_ns : 1;
}

static bool is_pausing(const struct restore *r)
{
	return r->pause_ms && clock_now_ns(CLOCK_MONOTONIC) < r->retry_ns;
}

int restore_step(struct expiry *h)
{
	struct restore *r = h->restore;
	int ret;

	if (!r->nr) {
		ret = batch_end(h);
		if (ret)
			return ret;
	}
	for (;;) {
		if (!r->sent) {
			if (is_pausing(r))
				return 0;
			stream_put(&h->stream, r->batch, r->nr);
			r->sent = true;
		}
		ret = stream_flush(&h->stream);
		if (ret < 0)
			return ret;
		ret = take_replies(h);
		if (ret)
			return ret;
		if (r->answered == r->nr) {
			ret = batch_end(h);
			if (ret)
				return ret;
			continue;
		}
		ret = stream_fill(&h->stream, false);
		if (ret <= 0)
			return ret;
	}
}

int restore_run(struct expiry *h)
{
	struct stream *stream = &h->stream;
	uint64_t pause_ns;
	int ret;

	restore_begin(h);
	for (;;) {
		ret = restore_step(h);
		if (ret)
			return ret < 0 ? ret : 0;
		pause_ns = restore_pause_ns(h);
		if (pause_ns)
			poll(NULL, 0, pause_ns / 1000000 + 1);
		else
			ret = stream_wait(stream, stream_unsent(stream),
					  h->timeout_ms);
		if (ret)
			return ret;
	}
}
