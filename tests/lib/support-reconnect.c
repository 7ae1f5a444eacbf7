// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connections that break, and a handle that outlives them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "support-reconnect.h"

static const char *wrong;

void script_expect(bool truth, const char *what)
{
	if (!truth && !wrong)
		wrong = what;
}

void greet_and_get(int fd, uint32_t nr)
{
	struct expiry_record record;

	greet(fd, 1000);
	while (nr && get(fd, &record, 1))
		nr--;
}

_Static_assert(sizeof(struct stat_reply) % RECORD == 0, "whole units");

bool greet_queue(int fd, uint32_t engine, uint64_t uptime_ns, uint64_t arms)
{
	struct stat_reply reply = {
		.head.op = EXPIRY_OP_STAT,
		.head.period_ms = (sizeof(reply) - RECORD) / RECORD,
		.queue.arms = arms,
		.server.engine = engine,
		.server.uptime_ns = uptime_ns,
	};
	struct expiry_record stat;

	greet(fd, 1000);
	if (!get(fd, &stat, 1))
		return false;
	script_expect(stat.op == EXPIRY_OP_STAT, "STAT does not follow HELLO");
	put_bytes(fd, &reply, sizeof(reply));
	return true;
}

bool greet_again(int fd)
{
	return greet_queue(fd, EXPIRY_ENGINE_KERNEL, 0, 1000);
}

void answer(int fd, uint64_t cookie)
{
	struct expiry_record record;

	if (!get(fd, &record, 1))
		return;
	script_expect(record.cookie == cookie, "requests are not in order");
	script_expect(record.op != EXPIRY_OP_CREDIT, "credit before requests");
	put(fd, &record, 1);
}

void echo_again(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	while (get(fd, &record, 1)) {
		if (record.op != EXPIRY_OP_CREDIT)
			put(fd, &record, 1);
	}
}

void hang_up(int fd)
{
	greet(fd, 1000);
}

struct expiry *reconnect_open(struct fake *server, fake_script *const *scripts,
			      uint32_t flags, uint32_t timeout_ms)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags | EXPIRY_OPEN_RECONNECT,
		.queue = "q",
		.clock_id = CLOCK_MONOTONIC,
		.credit = 8,
		.timeout_ms = timeout_ms,
	};
	struct expiry *h = NULL;
	int ret, tries = 0;

	do {
		if (tries)
			fake_stop(server);
		wrong = NULL;
		fake_start(server, scripts[0]);
		/* All of them, not the first alone. */
		memcpy(server->scripts, scripts, FAKE_SCRIPTS * sizeof(*scripts));
		ret = expiry_open(&h, server->address, &options);
	} while (ret == -ETIMEDOUT && ++tries < TRIES);
	assert_int_equal(ret, 0);
	return h;
}

void reconnect_end(struct fake *server, struct expiry *h)
{
	fake_end(server, h);
	if (wrong)
		fail_msg("%s", wrong);
}

uint32_t reconnect_count(const struct expiry *h)
{
	struct expiry_info info;

	expiry_info(h, &info, sizeof(info));
	return info.reconnects;
}

struct expiry_record reconnect_request(uint8_t op, uint64_t cookie)
{
	return (struct expiry_record){
		.op = op,
		.id = 1 + cookie,
		.deadline_ns = HOUR,
		.cookie = cookie,
	};
}
