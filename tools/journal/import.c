// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/journal/checkpoint.h"
#include "daemon/journal/journal.h"
#include "daemon/journal/recovery.h"
#include "daemon/util/util.h"
#include "tools/journal/import.h"

/**
 * struct import_stream - the journal of one thread
 * @config: of @journal
 * @clock: its time, of the first line about it
 * @is_clean: all lines about it said so
 * @ahead_ns: how much later the latest line's times are than @clock's
 * @by_ns: moves deadlines of the last line's clocks to @clock's, by
 *	JOURNAL_SHIFTS
 * @is_done: the checkpoint ended, with @result
 */
struct import_stream {
	struct journal_config config;
	struct journal_stat stat;
	struct journal journal;
	struct checkpoint checkpoint;
	struct journal_clock clock;
	bool is_clean;
	uint64_t ahead_ns[3];
	int64_t by_ns[JOURNAL_SHIFTS];
	bool is_done;
	int result;
};

/**
 * struct import_queue - a queue
 * @number: in its stream's journal
 * @by_ns: moves deadlines
 */
struct import_queue {
	char name[25];
	struct import_stream *stream;
	uint64_t number;
	int64_t by_ns;
};

/* ------------------------------------------------------------------- runner */

static void run_job(struct journal_runner *runner, struct journal_job *job)
{
	(void)runner;
	job->run(job);
	job->done(job);
}

static void run_write(struct journal_runner *runner,
		      struct journal_write *write)
{
	run_job(runner, &write->job);
}

static struct journal_runner runner = {
	.start = run_job,
	.commit = run_write,
	.flush = run_write,
};

static void advanced(struct journal *journal)
{
	(void)journal;
}

static void failed(struct journal *journal, int error)
{
	container_of(journal, struct import_stream, journal)->result = error;
}

static void clocks(struct journal *journal, uint64_t ns[3])
{
	const struct import_stream *stream =
		container_of(journal, struct import_stream, journal);
	int i;

	for (i = 0; i < 3; i++)
		ns[i] = stream->clock.ns[i] + stream->ahead_ns[i];
}

static const struct journal_events events = {
	.advanced = advanced,
	.failed = failed,
	.clocks = clocks,
};

static void checkpoint_done(struct checkpoint *checkpoint, int result)
{
	struct import_stream *stream =
		container_of(checkpoint, struct import_stream, checkpoint);

	stream->is_done = true;
	stream->result = result;
}

/* ------------------------------------------------------------------ streams */

/* Makes durable what gathers in the journal. */
static int commit(struct import_stream *stream)
{
	struct journal *journal = &stream->journal;
	int r = 0;

	while (!r && journal_pending(journal) > journal->acked) {
		journal_turn(journal, false, false);
		r = stream->result ? stream->result :
		    journal->state == JOURNAL_FAILED ? journal->error :
		    journal->is_full && !journal->nr_ahead ? -ENOSPC : 0;
	}
	return r;
}

static void free_stream(struct import_stream *stream)
{
	checkpoint_deinit(&stream->checkpoint);
	journal_deinit(&stream->journal);
	free(stream);
}

static int begin_stream(struct import_stream *stream)
{
	const struct journal_shift none = { 0 };
	struct recovery recovery;
	int r;

	r = recovery_open(&recovery, stream->config.disk,
			  stream->config.thread, false);
	if (!r)
		r = journal_init(&stream->journal, &stream->config, &recovery,
				 &none);
	recovery_close(&recovery);
	if (r < 0)
		return r;
	r = checkpoint_init(&stream->checkpoint, &stream->journal,
			    CHECKPOINT_BLOCK, 0);
	if (r < 0) {
		journal_deinit(&stream->journal);
		return r;
	}
	stream->checkpoint.done = checkpoint_done;
	journal_append_clock(&stream->journal, 0);
	r = commit(stream);
	if (!r)
		checkpoint_begin(&stream->checkpoint, 0);
	return r;
}

static int make_stream(struct import *import, const struct line *line)
{
	struct import_stream *stream = calloc(1, sizeof(*stream));
	int r;

	if (!stream)
		return -ENOMEM;
	stream->config = (struct journal_config) {
		.disk = import->disk,
		.runner = &runner,
		.events = &events,
		.stat = &stream->stat,
		.thread = line->thread,
		.segment_min = import->segment_min,
		.segment_max = JOURNAL_SEGMENT_MAX,
		.block_max = import->block_max,
	};
	memcpy(stream->config.boot_id, line->boot_id, sizeof(line->boot_id));
	stream->clock = line->clock;
	stream->is_clean = true;
	r = begin_stream(stream);
	if (r < 0) {
		/* Its journal may never have begun. */
		if (stream->checkpoint.journal)
			free_stream(stream);
		else
			free(stream);
		return r;
	}
	import->streams[line->thread] = stream;
	return 0;
}

/* Has the stream's time on a clock reach @then_ns. */
static void set_ahead(struct import_stream *stream, int clock, uint64_t then_ns)
{
	uint64_t now_ns = stream->clock.ns[clock];

	if (then_ns > now_ns && then_ns - now_ns > stream->ahead_ns[clock])
		stream->ahead_ns[clock] = then_ns - now_ns;
}

/* Continues a stream by lines of the same start of the machine: its clocks went on. */
static void go_on(struct import_stream *stream, const uint64_t then[3])
{
	int i;

	memset(stream->by_ns, 0, sizeof(stream->by_ns));
	for (i = 0; i < 3; i++)
		set_ahead(stream, i, then[i]);
}

/* Continues a stream by the lines of another machine, or of another start of it:
 * their deadlines are moved as if this machine had started anew at the stream's
 * time. MONOTONIC does not count the time in between, or timers would be early.
 */
static void move_over(struct import_stream *stream, const uint64_t then[3])
{
	const uint64_t *now = stream->clock.ns;
	uint64_t off = now[0] - then[0];

	stream->by_ns[0] = now[1] - then[1];
	stream->by_ns[1] = now[2] - then[2] - off;
	set_ahead(stream, 0, then[0]);
	set_ahead(stream, 2, now[2] - off);
}

/* Returns whether two lines are of one start of one machine. It may be unknown. */
static bool is_same_boot(const uint8_t a[16], const uint8_t b[16])
{
	static const uint8_t unknown[16];

	return !memcmp(a, b, 16) && memcmp(a, unknown, 16);
}

static int add_journal(struct import *import, const struct line *line,
		       const char **why)
{
	struct import_stream *stream;
	const uint64_t *then = line->clock.ns;
	int r;

	/* The time goes on, behind what a journal can say otherwise. */
	if (then[0] > INT64_MAX || then[1] > INT64_MAX || then[2] > INT64_MAX) {
		*why = "a time after the year 2262";
		return -EINVAL;
	}
	if (!import->streams[line->thread]) {
		r = make_stream(import, line);
		if (r < 0)
			return r;
	}
	stream = import->streams[line->thread];
	if (is_same_boot(stream->config.boot_id, line->boot_id))
		go_on(stream, then);
	else
		move_over(stream, then);
	stream->is_clean &= !!(line->clock.flags & JOURNAL_CLOCK_CLEAN);
	import->stream = stream;
	return 0;
}

/* ------------------------------------------------------------------- queues */

static int put(struct import_queue *queue, const void *record)
{
	struct checkpoint *checkpoint = &queue->stream->checkpoint;
	struct expiry_record row;

	memcpy(&row, record, sizeof(row));
	if (!checkpoint_room(checkpoint))
		checkpoint_turn(checkpoint);
	if (queue->stream->is_done)
		return queue->stream->result;
	checkpoint_put(checkpoint, queue->number, &row, 1);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct import_queue *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int compare_numbers(const void *a, const void *b)
{
	const struct import_queue *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Adds a queue to the trees. A number is that of one queue in its journal. */
static int insert(struct import *import, struct import_queue *queue,
		  const char **why)
{
	struct import_queue **found;

	found = tsearch(queue, &import->queues, compare_names);
	if (!found)
		return -ENOMEM;
	if (*found != queue) {
		*why = "the queue is there twice";
		return -EINVAL;
	}
	found = tsearch(queue, &import->numbers, compare_numbers);
	if (found && *found == queue)
		return 0;
	tdelete(queue, &import->queues, compare_names);
	if (!found)
		return -ENOMEM;
	*why = "the number is that of another queue";
	return -EINVAL;
}

static int add_queue(struct import *import, const struct line *line,
		     const char **why)
{
	struct journal_make make = {
		.op = JOURNAL_OP_MAKE,
		.mode = EXPIRY_MODE_ALL,
		.clock_id = line->clock_id,
		.uid = line->uid,
	};
	struct import_stream *stream = import->stream;
	struct import_queue *queue;
	int r;

	if (!stream) {
		*why = "a queue comes behind the line of its journal";
		return -EINVAL;
	}
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	memcpy(queue->name, line->name, sizeof(queue->name));
	memcpy(make.name, line->name, sizeof(make.name));
	queue->stream = stream;
	queue->number = line->number;
	r = insert(import, queue, why);
	if (r < 0) {
		free(queue);
		return r;
	}
	if (line->clock_id != CLOCK_REALTIME)
		queue->by_ns =
			stream->by_ns[line->clock_id != CLOCK_MONOTONIC];
	import->nr_queues++;
	return put(queue, &make);
}

static int add_timer(struct import *import, const struct line *line,
		     const char **why)
{
	struct expiry_record row = line->timer;
	struct import_queue key, **found;

	memcpy(key.name, line->name, sizeof(key.name));
	found = tfind(&key, &import->queues, compare_names);
	if (!found) {
		*why = "a timer comes behind the line of its queue";
		return -EINVAL;
	}
	row.deadline_ns = journal_move(row.deadline_ns, (*found)->by_ns);
	import->nr_timers++;
	return put(*found, &row);
}

/* -------------------------------------------------------------------- the whole */

int import_init(struct import *import, struct disk *disk)
{
	int fd;

	*import = (struct import) {
		.disk = disk,
		.segment_min = JOURNAL_SEGMENT_MIN,
		.block_max = JOURNAL_GATHER_MAX,
	};
	fd = disk->ops->open(disk, JOURNAL_UNFINISHED, DISK_MAKE);
	if (fd < 0)
		return fd;
	disk->ops->close(disk, fd);
	return disk->ops->sync_names(disk);
}

int import_add(struct import *import, const struct line *line,
	       const char **why)
{
	*why = NULL;
	switch (line->kind) {
	case LINE_JOURNAL:
		return add_journal(import, line, why);
	case LINE_QUEUE:
		return add_queue(import, line, why);
	default:
		return add_timer(import, line, why);
	}
}

static int finish_stream(struct import_stream *stream)
{
	struct checkpoint *checkpoint = &stream->checkpoint;
	int r;

	journal_append_clock(&stream->journal,
			     stream->is_clean ? JOURNAL_CLOCK_CLEAN : 0);
	r = commit(stream);
	if (r)
		return r;
	if (!stream->is_done)
		checkpoint_end(checkpoint);
	while (!stream->is_done)
		checkpoint_turn(checkpoint);
	return stream->result;
}

/* Says that what is there is not a part of an import. */
static int remove_mark(struct disk *disk)
{
	int r = disk->ops->unlink(disk, JOURNAL_UNFINISHED);

	return r && r != -ENOENT ? r : disk->ops->sync_names(disk);
}

int import_finish(struct import *import)
{
	int i, r = 0;

	for (i = 0; !r && i < JOURNAL_THREADS; i++)
		if (import->streams[i])
			r = finish_stream(import->streams[i]);
	return r ? r : remove_mark(import->disk);
}

static int remove_name(void *data, const char *name)
{
	struct disk *disk = data;
	struct journal_file file;

	return journal_is_unfinished(name) || journal_parse(name, &file) ?
		       disk->ops->unlink(disk, name) : 0;
}

int import_remove(struct disk *disk)
{
	int r = disk->ops->list(disk, remove_name, disk);

	/* The mark is the last: a loss of power may keep any of the names. */
	if (!r)
		r = disk->ops->sync_names(disk);
	return r ? r : remove_mark(disk);
}

static void forget(void *data)
{
	(void)data;
}

void import_deinit(struct import *import, bool keep)
{
	int i;

	for (i = 0; i < JOURNAL_THREADS; i++)
		if (import->streams[i])
			free_stream(import->streams[i]);
	if (!keep)
		import_remove(import->disk);
	tdestroy(import->numbers, forget);
	tdestroy(import->queues, free);
	*import = (struct import) { 0 };
}
