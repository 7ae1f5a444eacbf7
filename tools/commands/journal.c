// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl journal: check, print, export and import the journals of a directory.
 * No daemon uses it meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/journal/directory.h"
#include "daemon/journal/recovery.h"
#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/input/lines.h"
#include "tools/journal/contents.h"
#include "tools/journal/dump.h"
#include "tools/journal/import.h"
#include "tools/journal/line.h"
#include "tools/output/error.h"
#include "tools/output/json.h"

#define EXIT_DAMAGED	3

/* Does something with the journal of a thread. Returns the exit status. */
typedef int (*each_t)(struct ctl *ctl, struct disk *disk, uint16_t thread);

/* Reports what recovery found. Returns the exit status. */
static int report_fault(const struct ctl *ctl, const struct recovery *recovery,
			int error)
{
	const uint64_t offset = recovery->fault_offset;
	char name[JOURNAL_NAME];
	struct json json;

	if (!recovery->why)
		return ctl_error("thread %u: %s", recovery->thread,
				 strerror(-error));
	journal_name(name, &recovery->fault, false);
	if (ctl->json) {
		json_begin(&json);
		json_text(&json, "file", name);
		json_u64(&json, "offset", offset);
		json_text(&json, "fault", recovery->why);
		json_end(&json);
	}
	ctl_error("%s at byte %" PRIu64 ": %s", name, offset, recovery->why);
	return error == -EBADMSG || error == -EPROTONOSUPPORT ? EXIT_DAMAGED :
								EXIT_REFUSED;
}

static uint64_t count_timers(const struct contents *contents)
{
	uint64_t nr = 0;
	size_t i;

	for (i = 0; i < contents->nr_queues; i++)
		nr += contents->queues[i]->nr_timers;
	return nr;
}

static int check(struct ctl *ctl, struct disk *disk, uint16_t thread)
{
	struct contents contents;
	struct json json;
	int r = contents_read(&contents, disk, thread), ret = 0;

	if (r) {
		ret = report_fault(ctl, &contents.recovery, r);
	} else if (ctl->json) {
		json_begin(&json);
		json_u32(&json, "thread", thread);
		json_u64(&json, "queues", contents.nr_queues);
		json_u64(&json, "timers", count_timers(&contents));
		json_end(&json);
	} else {
		printf("thread %u: OK: queues %zu, timers %" PRIu64 "\n",
		       thread, contents.nr_queues, count_timers(&contents));
	}
	contents_free(&contents);
	return ret;
}

/* Prints as much as can be read. */
static int dump(struct ctl *ctl, struct disk *disk, uint16_t thread)
{
	struct recovery recovery;
	int ret = 0, r;

	r = recovery_open(&recovery, disk, thread, true);
	if (!r)
		r = recovery_replay(&recovery, dump_record, NULL);
	if (!r && recovery.why)
		r = -EBADMSG;
	if (r)
		ret = report_fault(ctl, &recovery, r);
	recovery_close(&recovery);
	return ret;
}

static void print_contents(const struct ctl *ctl,
			   const struct contents *contents)
{
	const struct contents_queue *queue;
	bool has_head = false;
	size_t i, timer;

	for (i = 0; i < contents->nr_queues; i++) {
		queue = contents->queues[i];
		if (ctl->queue && strcmp(queue->name, ctl->queue))
			continue;
		if (!has_head)
			line_print_journal(contents);
		has_head = true;
		line_print_queue(queue);
		for (timer = 0; timer < queue->nr_timers; timer++)
			line_print_timer(queue, &queue->timers[timer]);
	}
}

static int export(struct ctl *ctl, struct disk *disk, uint16_t thread)
{
	struct contents contents;
	int r = contents_read(&contents, disk, thread), ret = 0;

	if (r)
		ret = report_fault(ctl, &contents.recovery, r);
	else
		print_contents(ctl, &contents);
	contents_free(&contents);
	return ret;
}

static int open_directory(struct journal_directory *directory,
			  const char *path)
{
	int r = journal_directory_open(directory, path);

	return r < 0 ? ctl_error("%s: %s: %s", path, directory->why,
				 strerror(-r)) : 0;
}

/* Calls @each for each thread of @streams. Returns the worst status. */
static int for_each_stream(struct ctl *ctl, struct disk *disk,
			   const uint64_t streams[JOURNAL_THREADS / 64],
			   each_t each)
{
	uint32_t thread;
	int ret = 0, status;

	for (thread = 0; thread < JOURNAL_THREADS; thread++) {
		if (!(streams[thread / 64] >> thread % 64 & 1))
			continue;
		status = each(ctl, disk, thread);
		if (status > ret)
			ret = status;
	}
	return ret;
}

/* Calls @each for each thread that has a journal. Returns the worst status. */
static int for_each_thread(struct ctl *ctl, const char *path, each_t each)
{
	struct journal_directory directory;
	uint64_t streams[JOURNAL_THREADS / 64];
	int ret = open_directory(&directory, path), r;

	if (ret)
		return ret;
	r = recovery_streams(&directory.disk, streams);
	if (r == -EINPROGRESS) {
		ctl_error("%s: an import was not completed: repeat it", path);
		if (each == dump)
			for_each_stream(ctl, &directory.disk, streams, each);
		ret = EXIT_DAMAGED;
	} else if (r < 0)
		ret = ctl_error("%s: %s", path, strerror(-r));
	else if (!(streams[0] | streams[1] | streams[2] | streams[3]))
		ret = ctl_error("%s: there is no journal in it", path);
	else
		ret = for_each_stream(ctl, &directory.disk, streams, each);
	journal_directory_close(&directory);
	return ret;
}

/* ------------------------------------------------------------------- import */

/* Adds the lines of the standard input. Returns the exit status. */
static int import_lines(struct import *import)
{
	static struct lines lines;
	char buffer[LINE_WHY];
	const char *text, *why;
	struct line line;
	size_t len;
	int r;

	lines_init(&lines, STDIN_FILENO);
	while ((r = lines_next(&lines, &text, &len)) == 1) {
		why = buffer;
		r = line_parse(text, len, &line, buffer);
		if (!r)
			r = import_add(import, &line, &why);
		if (r)
			return ctl_error("line %" PRIu64 ": %s", lines.number,
					 why ? why : strerror(-r));
	}
	if (r)
		return ctl_error("standard input: %s", strerror(-r));
	if (!import->nr_queues)
		return ctl_error("standard input: there is no queue in it");
	r = import_finish(import);
	return r ? ctl_error("%s", strerror(-r)) : 0;
}

/* Returns 0 for a journal without queues, or the exit status. */
static int check_empty(struct ctl *ctl, struct disk *disk, uint16_t thread)
{
	struct contents contents;
	int r = contents_read(&contents, disk, thread);
	int ret = r || contents.nr_queues ? EXIT_REFUSED : 0;

	(void)ctl;
	contents_free(&contents);
	return ret;
}

/* Removes journals without queues, and those of an import that was killed. Returns the
 * exit status.
 */
static int remove_empty(struct ctl *ctl, struct disk *disk, const char *path)
{
	uint64_t streams[JOURNAL_THREADS / 64];
	int r = recovery_streams(disk, streams);

	if (!r && for_each_stream(ctl, disk, streams, check_empty))
		return ctl_error("%s: it has a journal; export that, and import both into another directory",
				 path);
	if (!r || r == -EINPROGRESS)
		r = import_remove(disk);
	return r < 0 ? ctl_error("%s: %s", path, strerror(-r)) : 0;
}

static int import(struct ctl *ctl, struct journal_directory *directory,
		  const char *path)
{
	struct import import;
	struct json json;
	int ret = remove_empty(ctl, &directory->disk, path), r;

	if (ret)
		return ret;
	r = import_init(&import, &directory->disk);
	ret = r < 0 ? ctl_error("%s: %s", path, strerror(-r)) :
		      import_lines(&import);
	if (!ret && ctl->json) {
		json_begin(&json);
		json_u64(&json, "queues", import.nr_queues);
		json_u64(&json, "timers", import.nr_timers);
		json_end(&json);
	} else if (!ret) {
		printf("queues %" PRIu64 ", timers %" PRIu64 "\n",
		       import.nr_queues, import.nr_timers);
	}
	import_deinit(&import, !ret);
	return ret;
}

/* Makes the directory if there is none, and its name durable. */
static int import_directory(struct ctl *ctl, const char *path)
{
	struct journal_directory directory;
	bool is_new = !mkdir(path, 0700);
	int ret;

	if (!is_new && errno != EEXIST)
		return ctl_error("%s: %s", path, strerror(errno));
	ret = open_directory(&directory, path);
	if (!ret) {
		ret = import(ctl, &directory, path);
		journal_directory_close(&directory);
	}
	if (ret && is_new)
		rmdir(path);
	return ret;
}

static int run_journal(struct ctl *ctl, char **args)
{
	const char *what = args[0], *path = args[1];

	if (ctl->queue && strcmp(what, "export"))
		return ctl_usage("journal %s: it is about all queues; leave --queue out",
				 what);
	if (!strcmp(what, "check"))
		return for_each_thread(ctl, path, check);
	if (!strcmp(what, "dump"))
		return for_each_thread(ctl, path, dump);
	if (!strcmp(what, "export"))
		return for_each_thread(ctl, path, export);
	if (!strcmp(what, "import"))
		return import_directory(ctl, path);
	return ctl_usage("journal %s: expected check, dump, export or import",
			 what);
}

const struct command cmd_journal = {
	.name = "journal",
	.args = "check|dump|export|import DIRECTORY",
	.summary = "check, print, export or import a stopped daemon's journal",
	.examples =
		"  expiryctl journal check /var/lib/expiryd\n"
		"  expiryctl journal export /var/lib/expiryd >queues\n"
		"  expiryctl journal import /var/lib/expiryd <queues\n"
		"  expiryctl --queue leases journal export /var/lib/expiryd\n",
	.min = 2,
	.max = 2,
	.run = run_journal,
};
