// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Handles on queues that exist, and handles without a queue.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support-queue.h"

static int open_flags(struct expiry **h, const char *name, uint32_t flags)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.queue = name,
		.clock_id = CLOCK_MONOTONIC,
	};

	*h = NULL;
	return expiry_open(h, address, &options);
}

static void drop(struct expiry *h)
{
	/* Other handles that were closed may not be gone yet. */
	while (expiry_drop(h) == -EBUSY)
		;
	expiry_close(h);
}

static void a_queue_must_exist(void **state)
{
	const uint32_t keyed = EXPIRY_OPEN_EXISTING | EXPIRY_OPEN_KEYED;
	struct expiry *h = NULL, *other = NULL;
	uint64_t id = 7, cursor = 0;
	struct expiry_record record;
	struct expiry_info info;
	struct expiry_queue row;

	(void)state;
	if (on_device()) {
		assert_int_equal(open_flags(&h, NULL, EXPIRY_OPEN_EXISTING),
				 -EOPNOTSUPP);
		return;
	}
	assert_int_equal(open_named(&h, "existing", keyed), -ENOENT);
	assert_int_equal(open_named(&h, "existing",
				    keyed | EXPIRY_OPEN_RECONNECT), -ENOENT);
	assert_null(h);
	assert_int_equal(open_named(&other, "existing", EXPIRY_OPEN_KEYED), 0);
	assert_int_equal(expiry_arm(other, &id, 0, 0, 5, 0), 0);
	assert_int_equal(open_named(&h, "existing", EXPIRY_OPEN_EXISTING),
			 -EINVAL);
	assert_int_equal(open_named(&h, "existing",
				    keyed | EXPIRY_OPEN_CONSUME), 0);
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.mode, EXPIRY_MODE_KEYED);
	assert_true(info.timers == 1);
	take_due(h, &record, 1);
	assert_true(record.id == 7 && record.cookie == 5);
	expiry_close(h);
	drop(other);

	assert_int_equal(open_named(&h, "existing", keyed), -ENOENT);
	/* None of these calls has made one. */
	assert_int_equal(open_flags(&h, NULL, EXPIRY_OPEN_EXISTING), 0);
	while (expiry_queues(h, &cursor, &row, 1) == 1 || cursor)
		assert_int_not_equal(strncmp(row.name, "existing", 8), 0);
	expiry_close(h);
}

static void is_zero(const void *data, size_t size)
{
	const unsigned char *bytes = data;

	while (size--)
		assert_int_equal(bytes[size], 0);
}

static void a_handle_without_a_queue(void **state)
{
	struct expiry_record record = { .op = EXPIRY_OP_QUERY, .id = 1 };
	struct expiry *h = NULL, *queue = NULL, *other = NULL;
	struct expiry_server_stat server, before;
	struct expiry_queue rows[8];
	struct expiry_stat stat;
	struct expiry_info info;
	uint64_t id = 1, cursor = 0;
	int found = 0, i, nr;

	(void)state;
	if (on_device())
		return;
	assert_int_equal(open_named(&queue, "looked-at", 0), 0);
	assert_int_equal(expiry_stat(queue, &stat, &before, sizeof(before)), 0);
	assert_int_equal(open_flags(&h, NULL, EXPIRY_OPEN_EXISTING), 0);
	assert_int_equal(open_flags(&other, "", EXPIRY_OPEN_EXISTING), 0);
	expiry_info(h, &info, sizeof(info));
	assert_true(!info.timers && info.window && !info.credit);

	memset(&stat, 1, sizeof(stat));
	assert_int_equal(expiry_stat(h, &stat, &server, sizeof(server)), 0);
	is_zero(&stat, sizeof(stat));
	assert_true(!server.consumers && !server.credit && !server.producers);
	assert_int_equal(server.engine, before.engine);
	assert_true(server.queues == before.queues);
	assert_true(server.connections == before.connections + 2);

	do {
		nr = expiry_queues(h, &cursor, rows, 8);
		assert_true(nr >= 0);
		for (i = 0; i < nr; i++)
			found += !strncmp(rows[i].name, "looked-at", 9);
	} while (cursor);
	assert_int_equal(found, 1);

	assert_int_equal(expiry_arm(h, &id, 1, 0, 0, 0), -ENOENT);
	assert_int_equal(expiry_query(h, 1, &record), -ENOENT);
	assert_int_equal(expiry_clear(h, &id), -ENOENT);
	assert_int_equal(expiry_scan(h, &cursor, &record, 1), -ENOENT);
	assert_int_equal(expiry_drop(h), -ENOENT);
	assert_int_equal(expiry_receive(h, &record, 1, 0), -EINVAL);
	assert_int_equal(expiry_post(h, &record, 1), 1);
	assert_int_equal(expiry_wait(h, WAIT_MS), 1);
	assert_int_equal(expiry_next(h, &record, 1), 1);
	assert_int_equal(record.status, -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	expiry_close(h);
	expiry_close(other);
	drop(queue);
}

static void what_needs_a_queue_is_refused(void **state)
{
	static const uint32_t flags[] = {
		EXPIRY_OPEN_CONSUME, EXPIRY_OPEN_ACK, EXPIRY_OPEN_KEYED,
		EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL,
		EXPIRY_OPEN_RECONNECT,
	};
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		assert_int_equal(open_flags(&h, NULL,
					    EXPIRY_OPEN_EXISTING | flags[i]),
				 -EINVAL);
		assert_int_equal(open_flags(&h, "",
					    EXPIRY_OPEN_EXISTING | flags[i]),
				 -EINVAL);
		assert_null(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_must_exist),
		cmocka_unit_test(a_handle_without_a_queue),
		cmocka_unit_test(what_needs_a_queue_is_refused),
	};

	return run_on_engines("existing", tests,
			      sizeof(tests) / sizeof(*tests));
}
