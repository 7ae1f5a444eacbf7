// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opening and closing a handle, and its properties. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "clock.h"
#include "internal.h"
#include "link.h"
#include "restore.h"

#define OPEN_ALL (EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK | \
		  EXPIRY_OPEN_KEYED | EXPIRY_OPEN_MANUAL | \
		  EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_RECONNECT | \
		  EXPIRY_OPEN_EXISTING | EXPIRY_OPEN_OBSERVE)

/* Flags that a handle without a queue cannot have. */
#define OPEN_QUEUE (EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK | \
		    EXPIRY_OPEN_KEYED | EXPIRY_OPEN_MANUAL | \
		    EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_OBSERVE)

/* Flags of each handle that makes a durable queue. */
#define OPEN_DURABLE (EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_ACK | EXPIRY_OPEN_KEYED)

/* The first version of struct expiry_options; it never gets smaller. */
#define OPTIONS_SIZE_MIN	48

_Static_assert(sizeof(struct expiry_options) >= OPTIONS_SIZE_MIN, "options");
_Static_assert(EXPIRY_OPEN_CONSUME == EXPIRY_HELLO_CONSUME, "flags are HELLO's");
_Static_assert(EXPIRY_OPEN_EXISTING == EXPIRY_HELLO_EXISTING,
	       "flags are HELLO's");
_Static_assert(EXPIRY_OPEN_OBSERVE == EXPIRY_HELLO_OBSERVE, "flags are HELLO's");
_Static_assert(EXPIRY_OPEN_DURABLE == EXPIRY_HELLO_DURABLE, "flags are HELLO's");
_Static_assert(EXPIRY_OPEN_ACK == EXPIRY_MODE_ACK, "flags are modes");
_Static_assert(EXPIRY_OPEN_KEYED == EXPIRY_MODE_KEYED, "flags are modes");

/* Copies the caller's options into the size this library knows. */
static int options_copy(struct expiry_options *to,
			const struct expiry_options *from)
{
	const unsigned char *bytes = (const void *)from;
	uint32_t i;

	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	if (from->size < OPTIONS_SIZE_MIN)
		return -EINVAL;
	for (i = sizeof(*to); i < from->size; i++) {
		if (bytes[i])
			return -E2BIG;
	}
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	return len <= EXPIRY_NAME_MAX &&
	       len == strspn(name, EXPIRY_NAME_CHARACTERS);
}

static bool is_named(const struct expiry_options *options)
{
	return options->queue && *options->queue;
}

static int options_check(const struct expiry_options *options)
{
	if (options->flags & ~OPEN_ALL)
		return -EINVAL;
	if ((options->flags & EXPIRY_OPEN_MANUAL) &&
	    !(options->flags & EXPIRY_OPEN_CONSUME))
		return -EINVAL;
	if ((options->flags & EXPIRY_OPEN_DURABLE) &&
	    ((options->flags & OPEN_DURABLE) != OPEN_DURABLE ||
	     !is_named(options)))
		return -EINVAL;
	if ((options->flags & EXPIRY_OPEN_OBSERVE) &&
	    (options->flags & EXPIRY_OPEN_CONSUME || !is_named(options)))
		return -EINVAL;
	if (options->clock_id != CLOCK_REALTIME &&
	    options->clock_id != CLOCK_MONOTONIC &&
	    options->clock_id != CLOCK_BOOTTIME)
		return -EINVAL;
	if (options->credit > EXPIRY_CREDIT_MAX ||
	    options->window > EXPIRY_WINDOW_MAX ||
	    options->timeout_ms > INT32_MAX)
		return -EINVAL;
	if (options->queue && !name_ok(options->queue))
		return -EINVAL;
	if (options->flags & EXPIRY_OPEN_EXISTING &&
	    options->flags & OPEN_QUEUE && !is_named(options))
		return -EINVAL;
	/* Reconnecting needs a queue that outlives a broken connection. */
	if (options->restore &&
	    (!(options->flags & EXPIRY_OPEN_KEYED) ||
	     options->flags & (EXPIRY_OPEN_EXISTING | EXPIRY_OPEN_OBSERVE)))
		return -EINVAL;
	if (options->flags & EXPIRY_OPEN_RECONNECT) {
		if (!is_named(options))
			return -EINVAL;
		if ((options->flags & EXPIRY_OPEN_CONSUME) &&
		    !(options->flags & EXPIRY_OPEN_ACK))
			return -EINVAL;
	}
	return 0;
}

/* Arms the program's timers in a queue that was empty. 0 or -errno. */
static int restore(struct expiry *h)
{
	if (!h->restore || h->timers)
		return 0;
	h->restore->wanted = true;
	return h->link ? link_restore(h) : restore_run(h);
}

EXPORT int expiry_open(struct expiry **handle, const char *address,
		       const struct expiry_options *given)
{
	char preset[EXPIRY_ADDRESS_MAX];
	struct expiry_options options;
	struct expiry *h;
	const char *path;
	int ret;

	ret = options_copy(&options, given);
	if (!ret)
		ret = options_check(&options);
	if (!ret && !address) {
		ret = expiry_default_address(preset, sizeof(preset));
		address = preset;
	}
	if (ret)
		return ret;

	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->transport = address_split(address, &path);
	if (!h->transport) {
		ret = -EINVAL;
		goto err_free;
	}
	if ((options.flags & EXPIRY_OPEN_RECONNECT) &&
	    h->transport == &transport_unix)
		h->transport = &transport_reconnect;
	h->mode = options.flags & EXPIRY_MODE_ALL;
	h->clock_id = options.clock_id;
	h->consume = options.flags & EXPIRY_OPEN_CONSUME;
	h->observe = options.flags & EXPIRY_OPEN_OBSERVE;
	h->manual = options.flags & EXPIRY_OPEN_MANUAL;
	h->timeout_ms = options.timeout_ms;
	if (h->consume || h->observe)
		h->credit = options.credit ?: EXPIRY_CREDIT_DEFAULT;

	ret = options.restore ? restore_init(h, &options) : 0;
	if (!ret)
		ret = h->transport->open(h, path, &options);
	if (ret)
		goto err_free;
	assert(h->fd >= 0 && h->window && h->window <= EXPIRY_WINDOW_MAX);
	/* One more for a CLOCK_SET, which takes no credit. */
	ret = ring_init(&h->inbox, h->window + h->credit + 1);
	if (!ret)
		ret = restore(h);
	/* The answer to STAT has the number of a durable queue. */
	if (!ret && h->link && h->durable)
		ret = link_wait(h);
	if (ret)
		goto err_close;
	credit_top_up(h);
	/* Ignore a failure: a later call reports it. */
	(void)h->transport->flush(h);
	*handle = h;
	return 0;

err_close:
	h->transport->close(h);
	ring_free(&h->inbox);
err_free:
	free(h->restore);
	free(h);
	return ret;
}

EXPORT void expiry_close(struct expiry *h)
{
	if (!h)
		return;
	h->transport->close(h);
	ring_free(&h->inbox);
	free(h->restore);
	free(h);
}

EXPORT void expiry_info(const struct expiry *h, struct expiry_info *info,
			size_t size)
{
	const struct expiry_info all = {
		.clock_id = h->clock_id,
		.mode = h->mode,
		.window = h->window,
		.credit = h->credit,
		.timers = h->timers,
		.device = h->transport == &transport_device,
		.reconnects = h->link ? link_count(h->link) : 0,
		.durable = h->durable,
		.commit_ms = h->commit_ms,
	};

	memset(info, 0, size);
	memcpy(info, &all, size < sizeof(all) ? size : sizeof(all));
}

EXPORT uint64_t expiry_now(const struct expiry *h)
{
	return clock_now_ns(h->clock_id);
}

EXPORT int expiry_fd(const struct expiry *h)
{
	return h->fd;
}

EXPORT const char *expiry_version(void)
{
	return EXPIRY_VERSION;
}
