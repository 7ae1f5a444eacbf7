// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport: the device itself. Requests are carried out at once. Posted
 * requests are carried out in the handle's ring, where their replies stay.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "internal.h"

static int device_open(struct expiry *h, const char *path,
		       const struct expiry_options *options)
{
	struct expiry_config config = {
		.clock_id = options->clock_id,
		.mode = h->mode,
		.slack_ns = options->slack_ns,
		.limit = options->limit,
		/* As the daemon does for the consumers of its queues. */
		.flags = options->clock_id == CLOCK_REALTIME &&
			 options->flags & EXPIRY_OPEN_CONSUME ?
			 EXPIRY_CONFIG_CLOCK_SET : 0,
	};
	int ret;

	if ((options->queue && *options->queue) ||
	    options->flags & (EXPIRY_OPEN_EXISTING | EXPIRY_OPEN_OBSERVE) ||
	    options->restore)
		return -EOPNOTSUPP;
	h->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (h->fd < 0)
		return -errno;
	ret = ioctl(h->fd, EXPIRY_IOC_CONFIG, &config);
	if (ret && errno == EOPNOTSUPP && config.flags) {
		config.flags = 0;
		ret = ioctl(h->fd, EXPIRY_IOC_CONFIG, &config);
	}
	if (ret) {
		ret = errno == ENOTTY ? -EPROTO : -errno;
		close(h->fd);
		return ret;
	}
	h->window = options->window ?: EXPIRY_WINDOW_MAX;
	return 0;
}

static void device_close(struct expiry *h)
{
	close(h->fd);
}

/* Returns how many of @count, at most EXPIRY_BATCH_MAX, were carried out. */
static int device_batch(struct expiry *h, struct expiry_record *records,
			uint32_t count)
{
	struct expiry_batch batch = {
		.addr = (uintptr_t)records,
		.count = count < EXPIRY_BATCH_MAX ? count : EXPIRY_BATCH_MAX,
	};
	int ret;

	ret = ioctl(h->fd, EXPIRY_IOC_SUBMIT, &batch);
	return ret < 0 ? -errno : ret;
}

static int device_submit(struct expiry *h, struct expiry_record *records,
			 uint32_t count)
{
	uint32_t done = 0;
	int ret;

	while (done < count) {
		ret = device_batch(h, records + done, count - done);
		if (ret <= 0)
			return done ? (int)done : ret;
		done += ret;
	}
	return done;
}

static int device_post(struct expiry *h, const struct expiry_record *records,
		       uint32_t count)
{
	struct expiry_record *next;
	uint32_t done = 0;
	uint32_t nr;
	int ret;

	while (done < count && h->posted < h->window) {
		nr = h->window - h->posted;
		if (nr > count - done)
			nr = count - done;
		next = ring_reserve(&h->inbox, &nr);
		memcpy(next, records + done, nr * sizeof(*next));
		ret = device_batch(h, next, nr);
		if (ret <= 0)
			return done ? (int)done : ret;
		assert((uint32_t)ret <= nr);
		ring_commit(&h->inbox, ret);
		h->posted += ret;
		assert(h->posted <= h->window);
		done += ret;
	}
	return done;
}

static int device_flush(struct expiry *h)
{
	h->credit_due = 0;
	return 0;
}

static int device_take(struct expiry *h, struct expiry_record *records,
		       uint32_t max)
{
	ssize_t ret;
	uint32_t i;
	int nr;

	if (max > h->granted)
		max = h->granted;
	if (!max)
		return 0;
	do
		ret = read(h->fd, records, max * sizeof(*records));
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return errno == EAGAIN ? 0 : -errno;
	nr = ret / sizeof(*records);
	for (i = 0; i < (uint32_t)nr; i++)
		h->granted -= records[i].op == EXPIRY_OP_EXPIRED;
	return nr;
}

static uint32_t device_pending(const struct expiry *h)
{
	(void)h;
	return 0;
}

static short device_events(const struct expiry *h)
{
	return h->granted ? POLLIN : 0;
}

static int device_scan(struct expiry *h, const struct query *query)
{
	struct expiry_scan scan = {
		.addr = (uintptr_t)query->timers,
		.count = query->max < EXPIRY_BATCH_MAX ? query->max :
							 EXPIRY_BATCH_MAX,
		.cursor = *query->cursor,
	};
	int ret;

	ret = ioctl(h->fd, EXPIRY_IOC_SCAN, &scan);
	if (ret < 0)
		return -errno;
	*query->cursor = scan.cursor;
	return ret;
}

static int device_stat(struct expiry *h, const struct query *query)
{
	if (ioctl(h->fd, EXPIRY_IOC_STAT, query->stat))
		return -errno;
	if (query->server)
		memset(query->server, 0, query->server_size);
	return 0;
}

static int device_query(struct expiry *h, const struct query *query)
{
	switch (query->op) {
	case EXPIRY_OP_SCAN:
		return device_scan(h, query);
	case EXPIRY_OP_STAT:
		return device_stat(h, query);
	}
	return -EOPNOTSUPP;
}

static int device_rewind(struct expiry *h)
{
	return ioctl(h->fd, EXPIRY_IOC_REWIND) ? -errno : 0;
}

const struct transport transport_device = {
	.open = device_open,
	.close = device_close,
	.submit = device_submit,
	.post = device_post,
	.flush = device_flush,
	.take = device_take,
	.pending = device_pending,
	.events = device_events,
	.query = device_query,
	.rewind = device_rewind,
};
