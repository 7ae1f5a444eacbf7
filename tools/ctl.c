// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/ctl.h"

#define TIMEOUT_MS	60000

const char *ctl_queue(const struct ctl *ctl)
{
	return ctl->queue ? ctl->queue : CTL_QUEUE_DEFAULT;
}

uint32_t ctl_timeout_ms(const struct ctl *ctl)
{
	return ctl->timeout_ms ? ctl->timeout_ms : TIMEOUT_MS;
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

bool ctl_is_durable(const struct ctl *ctl)
{
	return info_of(ctl).durable;
}

uint32_t ctl_commit_ms(const struct ctl *ctl)
{
	return info_of(ctl).commit_ms;
}
