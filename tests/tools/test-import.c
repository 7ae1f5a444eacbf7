// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An import into the journals of several threads, on a disk that loses power or whose
 * user kills it, before each of its operations in turn. What is left is all of it,
 * nothing, or known as a part; another import into it succeeds.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/journal/recovery.h"
#include "tests/journal/simulated-disk.h"
#include "tools/journal/contents.h"
#include "tools/journal/import.h"

#define THREADS		3
#define TIMERS		40	/* of each queue */
#define VARIANTS	8	/* states of the disk for each loss of power */
#define PART		-1

static uint64_t random_state = 1;

__attribute__((format(printf, 2, 3)))
static int add(struct import *import, const char *format, ...)
{
	char text[400], reason[LINE_WHY];
	const char *why;
	struct line line;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	assert_int_equal(line_parse(text, len, &line, reason), 0);
	return import_add(import, &line, &why);
}

/* Imports a queue for each thread. Returns 0 or -errno. */
static int import_queues(struct sim_disk *disk)
{
	struct import import;
	unsigned int thread, i;
	int r = import_init(&import, &disk->disk);

	import.segment_min = 8192;
	import.block_max = 2048;
	for (thread = 0; !r && thread < THREADS; thread++) {
		r = add(&import,
			"{\"journal\": 1, \"thread\": %u, \"boot_id\": \"0000000000000000000000000000000%u\", \"clean\": true, \"realtime_ns\": \"9\", \"monotonic_ns\": \"9\", \"boottime_ns\": \"9\"}",
			thread, 1);
		if (!r)
			r = add(&import,
				"{\"queue\": \"q%u\", \"number\": \"%u\", \"clock\": \"realtime\", \"uid\": 0}",
				thread, 1);
		for (i = 1; !r && i <= TIMERS; i++)
			r = add(&import,
				"{\"queue\": \"q%u\", \"id\": \"%u\", \"deadline_ns\": \"5\", \"cookie\": \"3\", \"period_ms\": 0, \"delivered\": false, \"cancelled\": false}",
				thread, i);
	}
	if (!r)
		r = import_finish(&import);
	import_deinit(&import, !r);
	return r;
}

/* Returns the number of queues with all their timers, or PART. */
static int count_queues(struct sim_disk *disk)
{
	uint64_t streams[JOURNAL_THREADS / 64];
	struct contents contents;
	int r = recovery_streams(&disk->disk, streams), nr = 0;
	uint16_t thread;
	size_t i;

	if (r == -EINPROGRESS)
		return PART;
	assert_int_equal(r, 0);
	for (thread = 0; thread < THREADS; thread++) {
		if (!(streams[0] >> thread & 1))
			continue;
		assert_int_equal(contents_read(&contents, &disk->disk, thread), 0);
		for (i = 0; i < contents.nr_queues; i++)
			assert_int_equal(contents.queues[i]->nr_timers, TIMERS);
		nr += contents.nr_queues;
		contents_free(&contents);
	}
	return nr;
}

/* Checks a state of the disk, and repeats the import. Returns whether it was a part. */
static bool check_state(struct sim_disk *state, bool is_complete)
{
	int nr = count_queues(state);

	if (is_complete)
		assert_int_equal(nr, THREADS);
	else
		assert_true(nr == PART || nr == 0 || nr == THREADS);
	if (nr == THREADS)
		return false;
	if (nr == PART)
		assert_int_equal(import_remove(&state->disk), 0);
	assert_int_equal(import_queues(state), 0);
	assert_int_equal(count_queues(state), THREADS);
	return nr == PART;
}

static void killed_at_each_operation(void **unused)
{
	static struct sim_disk disk, state;
	uint32_t at, i, nr_parts = 0;
	int r = -EIO;

	(void)unused;
	sim_disk_init(&state);
	for (at = 0; r; at++) {
		sim_disk_init(&disk);
		disk.crash_at = at;
		r = import_queues(&disk);
		for (i = 0; i < VARIANTS; i++) {
			sim_disk_copy(&state, &disk);
			sim_disk_crash(&state, &random_state, !i);
			nr_parts += check_state(&state, !r);
		}
		sim_disk_deinit(&disk);
	}
	sim_disk_deinit(&state);
	/* Each thread has segments and a checkpoint of its own. */
	assert_true(at > THREADS * 10);
	assert_true(nr_parts > at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_each_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
