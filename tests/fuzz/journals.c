// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/journal/recovery.h"
#include "journals.h"
#include "tools/journal/contents.h"
#include "tools/journal/import.h"
#include "tools/journal/line.h"

#define SEGMENT	16384U
#define BLOCK	4096U

static void print_contents(const struct contents *contents)
{
	const struct contents_queue *queue;
	size_t i, timer;

	for (i = 0; i < contents->nr_queues; i++) {
		queue = contents->queues[i];
		if (!i)
			line_print_journal(contents);
		line_print_queue(queue);
		for (timer = 0; timer < queue->nr_timers; timer++)
			line_print_timer(queue, &queue->timers[timer]);
	}
}

static bool export_thread(struct disk *disk, uint16_t thread)
{
	struct contents contents;
	int r = contents_read(&contents, disk, thread);

	if (!r)
		print_contents(&contents);
	else
		assert_non_null(contents.recovery.why);
	assert_true(!r || r == -EBADMSG || r == -EPROTONOSUPPORT);
	contents_free(&contents);
	return !r;
}

char *journals_export(struct memory_disk *disk)
{
	FILE *real = stdout;
	uint64_t streams[JOURNAL_THREADS / 64];
	char *lines = NULL;
	uint32_t thread;
	bool good = true;
	size_t len;

	stdout = open_memstream(&lines, &len);
	assert_non_null(stdout);
	assert_int_equal(recovery_streams(&disk->disk, streams), 0);
	for (thread = 0; good && thread < JOURNAL_THREADS; thread++)
		if (streams[thread / 64] >> thread % 64 & 1)
			good = export_thread(&disk->disk, thread);
	fclose(stdout);
	stdout = real;
	if (good)
		return lines;
	free(lines);
	return NULL;
}

static bool add_line(struct import *import, const char *text, size_t len)
{
	char reason[LINE_WHY] = "";
	const char *why = reason;
	struct line line;

	if (line_parse(text, len, &line, reason) < 0) {
		assert_true(*reason);
		return false;
	}
	if (!import_add(import, &line, &why))
		return true;
	/* The disk does not fail, but it has few files. */
	assert_true(why || line.kind == LINE_JOURNAL);
	return false;
}

bool journals_import(struct memory_disk *disk, const char *lines, size_t len)
{
	const char *end = lines + len, *next;
	struct import import;
	bool good = true;

	assert_int_equal(import_init(&import, &disk->disk), 0);
	import.segment_min = SEGMENT;
	import.block_max = BLOCK;
	for (; good && lines < end; lines = next + 1) {
		next = memchr(lines, '\n', end - lines);
		if (!next)
			next = end;
		good = add_line(&import, lines, next - lines);
	}
	good = good && !import_finish(&import);
	import_deinit(&import, good);
	return good;
}

/* Returns whether a time is beyond what import takes. */
static bool is_too_late(const char *lines)
{
	const char *at = lines;

	while ((at = strstr(at, "_ns\": \""))) {
		at += strlen("_ns\": \"");
		if (strtoull(at, NULL, 10) > INT64_MAX)
			return true;
	}
	return false;
}

void journals_check(struct memory_disk *disk)
{
	char *first = journals_export(disk), *second;
	struct memory_disk *copy;

	if (!first)
		return;
	copy = malloc(sizeof(*copy));
	assert_non_null(copy);
	memory_disk_init(copy);
	if (*first && !is_too_late(first)) {
		assert_true(journals_import(copy, first, strlen(first)));
		second = journals_export(copy);
		assert_non_null(second);
		assert_string_equal(first, second);
		free(second);
	}
	memory_disk_free(copy);
	free(copy);
	free(first);
}
