/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line, checked.
 */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <expiry/expiry.h>

/* Options that a command accepts besides the global ones. */
#define CTL_ID		0x01
#define CTL_PERIOD	0x02
#define CTL_NEW		0x04
#define CTL_LATER	0x08
#define CTL_COUNT	0x10
#define CTL_LIMIT	0x20
#define CTL_IDS		0x40
#define CTL_IN		0x1000
#define CTL_AT		0x2000
#define CTL_CREATE	0x8000
#define CTL_NAMES	0x10000
#define CTL_DURABLE	0x20000

/**
 * struct ctl - a call of expiryctl or expiry-exporter
 * @address: "unix:PATH" or "device:PATH"
 * @path: the path in @address
 * @device: @address is a device
 * @queue: the queue's name, NULL if none was given
 * @clock_id: clock, as given
 * @clock_given: --clock was given
 * @mode_given: EXPIRY_MODE_* that were given
 * @json: one JSON object a line
 * @colour: output is a terminal that accepts colours
 * @given: CTL_* that were given
 * @id: value of --id, 0 if not given
 * @period_ms: likewise of --period
 * @count: likewise of --count
 * @limit: likewise of --limit
 * @in: value of --in, NULL if not given
 * @at: likewise of --at
 * @timeout_ms: longest silence of the daemon; 0: a minute
 * @handle: set by ctl_open()
 *
 * A queue with another clock than a given one, or without a given mode, is refused. So
 * is one that is not durable, with CTL_DURABLE.
 */
struct ctl {
	char *address;
	const char *path;
	bool device;
	const char *queue;
	uint32_t clock_id;
	bool clock_given;
	uint32_t mode_given;
	bool json;
	bool colour;
	unsigned int given;
	uint64_t id;
	uint32_t period_ms;
	uint64_t count;
	uint64_t limit;
	const char *in;
	const char *at;
	uint32_t timeout_ms;
	struct expiry *handle;
};

#define CTL_QUEUE_DEFAULT	"default"

/* Returns the queue's name as given, or CTL_QUEUE_DEFAULT. */
const char *ctl_queue(const struct ctl *ctl);

/* Returns the longest silence of the daemon before a request fails. */
uint32_t ctl_timeout_ms(const struct ctl *ctl);

/* Return what the queue of ctl->handle is. */
bool ctl_is_keyed(const struct ctl *ctl);
bool ctl_is_ack(const struct ctl *ctl);
uint32_t ctl_clock(const struct ctl *ctl);
bool ctl_is_durable(const struct ctl *ctl);

/* Returns the milliseconds between flushes of a durable queue; 0: each request waits
 * for one.
 */
uint32_t ctl_commit_ms(const struct ctl *ctl);

#endif /* TOOLS_CTL_H */
