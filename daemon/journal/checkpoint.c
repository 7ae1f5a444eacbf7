// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/journal/checkpoint.h"
#include "daemon/util/util.h"

#define RECORD	((uint32_t)sizeof(struct expiry_record))

/* Records kept free in a block: QUEUE before rows, and END. */
#define EXTRA_RECORDS	2U

static struct journal_file file_of(const struct checkpoint *checkpoint,
				   uint64_t number)
{
	return (struct journal_file) {
		.kind = JOURNAL_CHECKPOINT,
		.thread = checkpoint->journal->config.thread,
		.number = number,
	};
}

static struct journal_block *gathering(const struct checkpoint *checkpoint)
{
	return checkpoint->gather[checkpoint->gathering].block;
}

static void put(struct checkpoint *checkpoint, const void *record)
{
	struct journal_block *block = gathering(checkpoint);

	memcpy(journal_records(block) + block->count++, record, RECORD);
}

/* ------------------------------------------------------------------ the jobs */

/* Writes a block. The first one makes the file. */
static void block_run(struct journal_job *job)
{
	struct checkpoint *checkpoint =
		container_of(job, struct checkpoint, job);
	struct disk *disk = checkpoint->journal->config.disk;
	struct journal_file file = file_of(checkpoint, checkpoint->number);
	char name[JOURNAL_NAME];
	uint32_t size;

	if (checkpoint->fd < 0) {
		journal_name(name, &file, true);
		checkpoint->fd = disk->ops->open(disk, name, DISK_MAKE);
		if (checkpoint->fd < 0) {
			checkpoint->result = checkpoint->fd;
			return;
		}
	}
	size = journal_seal(checkpoint->block, &file, disk->align);
	checkpoint->result = disk->ops->write(disk, checkpoint->fd,
					      checkpoint->block, size,
					      checkpoint->offset);
	checkpoint->offset += size;
}

/* Makes the complete file durable, then its name. Only then the one before is
 * removed, and its segments may be used again.
 */
static void finish_run(struct journal_job *job)
{
	struct checkpoint *checkpoint =
		container_of(job, struct checkpoint, job);
	struct disk *disk = checkpoint->journal->config.disk;
	struct journal_file file = file_of(checkpoint, checkpoint->number);
	struct journal_file old = file_of(checkpoint, checkpoint->previous);
	char from[JOURNAL_NAME], name[JOURNAL_NAME];
	int r;

	journal_name(from, &file, true);
	journal_name(name, &file, false);
	r = disk->ops->sync(disk, checkpoint->fd);
	if (!r)
		r = disk->ops->rename(disk, from, name);
	if (!r)
		r = disk->ops->sync_names(disk);
	if (!r && checkpoint->previous) {
		journal_name(name, &old, false);
		disk->ops->unlink(disk, name);
	}
	checkpoint->result = r;
}

/* Removes an incomplete file, after a failure. */
static void abandon_run(struct journal_job *job)
{
	struct checkpoint *checkpoint =
		container_of(job, struct checkpoint, job);
	struct disk *disk = checkpoint->journal->config.disk;
	struct journal_file file = file_of(checkpoint, checkpoint->number);
	char name[JOURNAL_NAME];

	journal_name(name, &file, true);
	disk->ops->unlink(disk, name);
}

static void start_job(struct checkpoint *checkpoint,
		      void (*run)(struct journal_job *job))
{
	struct journal_runner *runner = checkpoint->journal->config.runner;

	checkpoint->job.run = run;
	checkpoint->writing = true;
	runner->start(runner, &checkpoint->job);
}

static void close_file(struct checkpoint *checkpoint)
{
	struct disk *disk = checkpoint->journal->config.disk;

	if (checkpoint->fd >= 0)
		disk->ops->close(disk, checkpoint->fd);
	checkpoint->fd = -1;
}

static void end(struct checkpoint *checkpoint, int result)
{
	struct journal *journal = checkpoint->journal;
	struct journal_stat *stat = journal->config.stat;

	counter_add(&stat->bytes, checkpoint->offset);
	close_file(checkpoint);
	checkpoint->state = CHECKPOINT_NONE;
	if (!result) {
		counter_add(&stat->checkpoints, 1);
		counter_add(&stat->size,
			    checkpoint->offset - checkpoint->previous_size);
		checkpoint->previous_size = checkpoint->offset;
		checkpoint->previous = checkpoint->number;
		journal_release(journal, checkpoint->start.number,
				checkpoint->keep);
		/* One begun before a failure lacks what was refused. */
		if (checkpoint->mends &&
		    checkpoint->failures == journal->failures)
			journal_mended(journal);
	} else {
		start_job(checkpoint, abandon_run);
	}
	checkpoint->done(checkpoint, result);
}

static void job_done(struct journal_job *job)
{
	struct checkpoint *checkpoint =
		container_of(job, struct checkpoint, job);

	checkpoint->writing = false;
	if (checkpoint->state == CHECKPOINT_NONE)
		return;
	if (checkpoint->result < 0 ||
	    checkpoint->state == CHECKPOINT_FINISHING)
		end(checkpoint, checkpoint->result);
}

/* --------------------------------------------------------------------- steps */

/* Adds the complete one to the journal's size. */
static int measure_previous(struct checkpoint *checkpoint)
{
	struct disk *disk = checkpoint->journal->config.disk;
	struct journal_file file = file_of(checkpoint, checkpoint->previous);
	char name[JOURNAL_NAME];
	int64_t size;
	int fd;

	journal_name(name, &file, false);
	fd = disk->ops->open(disk, name, DISK_READ);
	if (fd < 0)
		return fd;
	size = disk->ops->size(disk, fd);
	disk->ops->close(disk, fd);
	if (size < 0)
		return size;
	checkpoint->previous_size = size;
	counter_add(&checkpoint->journal->config.stat->size, size);
	return 0;
}

int checkpoint_init(struct checkpoint *checkpoint, struct journal *journal,
		    uint32_t block_max, uint64_t previous)
{
	int i, r;

	*checkpoint = (struct checkpoint) {
		.journal = journal,
		.block_max = block_max,
		.previous = previous,
		.fd = -1,
		.job.done = job_done,
	};
	for (i = 0; i < 2; i++) {
		void *memory = mmap(NULL, block_max, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED) {
			checkpoint_deinit(checkpoint);
			return -ENOMEM;
		}
		checkpoint->gather[i].block = memory;
	}
	r = previous ? measure_previous(checkpoint) : 0;
	if (r < 0)
		checkpoint_deinit(checkpoint);
	return r;
}

void checkpoint_deinit(struct checkpoint *checkpoint)
{
	int i;

	assert(!checkpoint->writing);
	if (checkpoint->fd >= 0)
		close_file(checkpoint);
	for (i = 0; i < 2; i++)
		if (checkpoint->gather[i].block)
			munmap(checkpoint->gather[i].block,
			       checkpoint->block_max);
	*checkpoint = (struct checkpoint) { .fd = -1 };
}

void checkpoint_begin(struct checkpoint *checkpoint, uint64_t keep)
{
	struct journal *journal = checkpoint->journal;
	struct journal_segment segment = {
		.op = JOURNAL_OP_SEGMENT,
		.version = JOURNAL_VERSION,
		.thread = journal->config.thread,
		.align = journal->config.disk->align,
		.number = journal->current.number,
	};
	struct journal_clock clock = { .op = JOURNAL_OP_CLOCK };

	assert(checkpoint->state == CHECKPOINT_NONE && !checkpoint->writing);
	assert(journal->current.fd >= 0);
	journal->config.events->clocks(journal, clock.ns);
	memcpy(segment.boot_id, journal->config.boot_id,
	       sizeof(segment.boot_id));
	checkpoint->state = CHECKPOINT_SCANNING;
	checkpoint->number = ++journal->number;
	checkpoint->start = (struct journal_mark) {
		.op = JOURNAL_OP_START,
		.lsn = journal->next_lsn,
		.number = journal->current.number,
		.count = journal->current.offset,
	};
	checkpoint->keep = keep;
	checkpoint->mends = journal->state == JOURNAL_MENDING;
	checkpoint->failures = journal->failures;
	checkpoint->started_ns = clock.ns[1];
	checkpoint->abandoned = 0;
	checkpoint->rows = 0;
	checkpoint->next = 1;
	checkpoint->offset = 0;
	checkpoint->gathering = 0;
	checkpoint->gather[0].queue = 0;
	gathering(checkpoint)->count = 0;
	journal->length = 0;
	put(checkpoint, &checkpoint->start);
	put(checkpoint, &segment);
	put(checkpoint, &clock);
}

uint32_t checkpoint_room(const struct checkpoint *checkpoint)
{
	uint32_t used = gathering(checkpoint)->count + EXTRA_RECORDS;
	uint32_t max = checkpoint->block_max / RECORD - 1;

	if (checkpoint->state != CHECKPOINT_SCANNING)
		return 0;
	return used < max ? max - used : 0;
}

void checkpoint_make(struct checkpoint *checkpoint, uint64_t queue,
		     const struct journal_make *make, uint64_t timers)
{
	const struct expiry_record about = { .op = JOURNAL_OP_QUEUE,
					     .id = queue,
					     .cookie = timers };

	assert(checkpoint_room(checkpoint));
	put(checkpoint, &about);
	put(checkpoint, make);
	checkpoint->gather[checkpoint->gathering].queue = queue;
	checkpoint->rows++;
}

void checkpoint_put(struct checkpoint *checkpoint, uint64_t queue,
		    const struct expiry_record *records, uint32_t count)
{
	struct journal_gather *gather =
		&checkpoint->gather[checkpoint->gathering];
	struct journal_block *block = gather->block;
	const struct expiry_record about = { .op = JOURNAL_OP_QUEUE,
					     .id = queue };

	assert(count <= checkpoint_room(checkpoint));
	if (gather->queue != queue)
		put(checkpoint, &about);
	gather->queue = queue;
	memcpy(journal_records(block) + block->count, records,
	       count * RECORD);
	block->count += count;
	checkpoint->rows += count;
}

void checkpoint_end(struct checkpoint *checkpoint)
{
	const struct journal_mark mark = {
		.op = JOURNAL_OP_END,
		.lsn = journal_pending(checkpoint->journal),
		.number = checkpoint->start.number,
		.count = checkpoint->rows,
	};

	assert(checkpoint->state == CHECKPOINT_SCANNING);
	/* A journal that mends has nothing to wait for: what it lost was refused.
	 */
	checkpoint->end_lsn = checkpoint->mends ? 0 : mark.lsn;
	checkpoint->state = CHECKPOINT_ENDING;
	put(checkpoint, &mark);
}

void checkpoint_abandon(struct checkpoint *checkpoint, int error)
{
	checkpoint->abandoned = error;
}

/* Writes the block that gathers; the other one gathers from now on. */
static void write_block(struct checkpoint *checkpoint)
{
	checkpoint->block = gathering(checkpoint);
	checkpoint->block->lsn = checkpoint->next++;
	checkpoint->block->durable = 0;
	checkpoint->gathering ^= 1;
	checkpoint->gather[checkpoint->gathering].queue = 0;
	gathering(checkpoint)->count = 0;
	start_job(checkpoint, block_run);
}

void checkpoint_turn(struct checkpoint *checkpoint)
{
	struct journal *journal = checkpoint->journal;

	if (checkpoint->state == CHECKPOINT_NONE || checkpoint->writing)
		return;
	/* After a failure the journal needs another one, behind a new segment. It
	 * may have that by now.
	 */
	if (journal->failures != checkpoint->failures)
		checkpoint->abandoned = journal->error;
	if (checkpoint->abandoned) {
		end(checkpoint, checkpoint->abandoned);
		return;
	}
	if (checkpoint->state == CHECKPOINT_SCANNING) {
		if (!checkpoint_room(checkpoint))
			write_block(checkpoint);
		return;
	}
	if (checkpoint->state != CHECKPOINT_ENDING)
		return;
	if (gathering(checkpoint)->count) {
		write_block(checkpoint);
	} else if (journal->durable >= checkpoint->end_lsn) {
		checkpoint->state = CHECKPOINT_FINISHING;
		start_job(checkpoint, finish_run);
	}
}
