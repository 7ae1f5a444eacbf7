// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/journal/journal.h"
#include "daemon/journal/recovery.h"
#include "daemon/util/util.h"

#define RECORD	((uint32_t)sizeof(struct expiry_record))

/* Records kept free in a block: CLOCK at its end, QUEUE before a run. */
#define EXTRA_RECORDS	3U

static uint64_t now_ns(struct journal *journal)
{
	uint64_t ns[3];

	journal->config.events->clocks(journal, ns);
	return ns[1];
}

static struct journal_block *gathering(const struct journal *journal)
{
	return journal->gather[journal->gathering].block;
}

/* Prepares an empty block. */
static void gather_nothing(struct journal *journal)
{
	gathering(journal)->count = 0;
	journal->gather[journal->gathering].queue = 0;
}

/* Drops what has gathered, after a failure. A listing that waits for that block is
 * sent once the journal is mended.
 */
static void drop_gathered(struct journal *journal)
{
	if (gathering(journal)->count)
		journal->next_lsn++;
	gather_nothing(journal);
}

/* --------------------------------------------------------------- beginning */

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

static void write_done(struct journal_job *job);
static void flush_done(struct journal_job *job);
static void maker_done(struct journal_job *job);

/* Notes where the last segment can be gone on with, if it can. */
static void set_last(struct journal *journal,
		     const struct recovery_segment *segment)
{
	uint32_t align = journal->config.disk->align;

	journal->maker.last = (struct segment) { .fd = -1 };
	if (segment->has_more || !segment->end || segment->end % align ||
	    segment->size % align || segment->size < segment->end + 2 * align)
		return;
	journal->maker.last.number = segment->number;
	journal->maker.last.size = segment->size;
	journal->maker.last.offset = segment->end;
}

/* Takes over what is there. Segments without blocks were the reserve of the life
 * before, and are that again.
 */
static int take_files(struct journal *journal, const struct recovery *recovery)
{
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < recovery->nr_segments; i++) {
		const struct recovery_segment *segment =
			&recovery->segments[i];

		if (recovery_is_free(segment)) {
			r = stock_push_spare(&journal->stock, segment->number,
					     segment->size);
		} else {
			r = stock_push_old(&journal->stock, segment->number,
					   segment->size);
			set_last(journal, segment);
		}
		counter_add(&journal->config.stat->size, segment->size);
	}
	return r;
}

int journal_init(struct journal *journal, const struct journal_config *config,
		 const struct recovery *recovery,
		 const struct journal_shift *shift)
{
	int i, r;

	*journal = (struct journal) {
		.config = *config,
		.next_lsn = recovery->next_lsn,
		.written = recovery->next_lsn - 1,
		.durable = recovery->next_lsn - 1,
		.acked = recovery->next_lsn - 1,
		.number = recovery->last_number,
		.length = recovery->length,
		.current.fd = -1,
		.write = { .job.run = journal_write_run,
			   .job.done = write_done, .disk = config->disk },
		.flush = { .job.run = journal_write_run,
			   .job.done = flush_done, .disk = config->disk,
			   .sync = true },
		.maker = { .job.run = segment_make, .job.done = maker_done,
			   .disk = config->disk, .thread = config->thread,
			   .shift = *shift, .last.fd = -1 },
		.retry_after_ns = JOURNAL_RETRY_NS,
	};
	assert(config->block_max <= JOURNAL_BLOCK_MAX);
	memcpy(journal->maker.boot_id, config->boot_id,
	       sizeof(config->boot_id));
	stock_init(&journal->stock, config->disk, config->thread,
		   config->segment_min, &config->stat->size);
	r = take_files(journal, recovery);
	journal->maker.header = map(DISK_ALIGN_MAX);
	journal->maker.zeros = map(SEGMENT_ZEROS);
	for (i = 0; i < 2; i++)
		journal->gather[i].block = map(config->block_max);
	if (!r && journal->maker.header && journal->maker.zeros &&
	    journal->gather[0].block && journal->gather[1].block)
		return 0;
	journal_deinit(journal);
	return -ENOMEM;
}

static void close_segment(struct journal *journal, struct segment *segment)
{
	struct disk *disk = journal->config.disk;

	if (segment->fd >= 0)
		disk->ops->close(disk, segment->fd);
	segment->fd = -1;
}

void journal_deinit(struct journal *journal)
{
	uint32_t i;

	assert(!journal_is_busy(journal));
	close_segment(journal, &journal->current);
	for (i = 0; i < journal->nr_ahead; i++)
		close_segment(journal, &journal->ahead[i]);
	unmap(journal->maker.header, DISK_ALIGN_MAX);
	unmap(journal->maker.zeros, SEGMENT_ZEROS);
	for (i = 0; i < 2; i++)
		unmap(journal->gather[i].block, journal->config.block_max);
	stock_deinit(&journal->stock);
	*journal = (struct journal) { .current.fd = -1 };
}

/* --------------------------------------------------------------- gathering */

/* Returns the bytes of the present segment that are not written yet. */
static uint64_t left(const struct journal *journal)
{
	return journal->current.fd < 0 ? 0 : journal->current.size -
						     journal->current.offset;
}

/* Returns whether the space is used to its end: what gathers has a place, and nothing
 * more.
 */
static bool is_used_up(const struct journal *journal)
{
	uint32_t count = gathering(journal)->count + EXTRA_RECORDS +
			 JOURNAL_ROOM_MIN;

	return journal->is_full && !journal->nr_ahead &&
	       left(journal) < journal_block_size(count, journal->config.disk->align);
}

/* Returns whether what gathers now may fill a segment, and there is another one. */
static bool has_next(const struct journal *journal)
{
	return journal->nr_ahead + (journal->current.fd >= 0) > 1;
}

int journal_takes(const struct journal *journal, bool grows)
{
	if (journal_has_failed(journal))
		return journal->error;
	if (is_used_up(journal))
		return -ENOSPC;
	if (!grows)
		return 0;
	/* The rest of the space is for requests that end timers. */
	if (journal->is_full || journal_is_over(journal))
		return -ENOSPC;
	/* So is what may be the rest: the next file is not made yet. One that failed for
	 * another reason does not mean that there is no space.
	 */
	if (!has_next(journal) && (journal->making || !journal->maker.result))
		return -EAGAIN;
	return 0;
}

uint32_t journal_room(const struct journal *journal)
{
	uint32_t used = gathering(journal)->count + EXTRA_RECORDS;
	uint64_t place = journal->config.block_max;
	uint32_t max;

	/* Behind the present segment there may be nothing. */
	if (journal->current.fd >= 0 && !journal->nr_ahead &&
	    (journal->is_full || journal->making))
		place = min_u64(place, left(journal));
	max = place / RECORD;
	return used + 1 < max ? max - 1 - used : 0;
}

static bool is_logged(const struct expiry_record *record)
{
	return !record->status && record->op != EXPIRY_OP_QUERY &&
	       record->op < JOURNAL_OP_SEGMENT;
}

void journal_append(struct journal *journal, uint64_t queue,
		    const struct expiry_record *records, uint32_t count)
{
	struct journal_gather *gather = &journal->gather[journal->gathering];
	struct journal_block *block = gather->block;
	struct expiry_record *room = journal_records(block) + block->count;
	struct expiry_record *first = room;
	uint32_t i;

	assert(count <= journal_room(journal));
	if (gather->queue != queue)
		*room++ = (struct expiry_record) { .op = JOURNAL_OP_QUEUE,
						   .id = queue };
	for (i = 0; i < count; i++) {
		*room = records[i];
		room += is_logged(&records[i]);
	}
	/* Leave out a QUEUE with nothing behind it. */
	if (room - first == 1 && first->op == JOURNAL_OP_QUEUE)
		return;
	gather->queue = queue;
	block->count += room - first;
}

void journal_append_own(struct journal *journal, uint64_t queue,
			const void *record)
{
	struct journal_gather *gather = &journal->gather[journal->gathering];
	struct journal_block *block = gather->block;
	const struct expiry_record about = { .op = JOURNAL_OP_QUEUE,
					     .id = queue };

	assert(journal_room(journal));
	if (gather->queue != queue)
		journal_records(block)[block->count++] = about;
	gather->queue = queue;
	memcpy(journal_records(block) + block->count++, record, RECORD);
}

static void append_clock(struct journal *journal, const uint64_t ns[3],
			 uint8_t flags)
{
	struct journal_block *block = gathering(journal);
	struct journal_clock clock = {
		.op = JOURNAL_OP_CLOCK,
		.flags = flags,
		.ns = { ns[0], ns[1], ns[2] },
	};

	assert(journal_block_size(block->count + 1, 1) <=
	       journal->config.block_max);
	memcpy(journal_records(block) + block->count++, &clock, sizeof(clock));
	journal->clock_ns = ns[1];
}

void journal_append_clock(struct journal *journal, uint8_t flags)
{
	uint64_t ns[3];

	journal->config.events->clocks(journal, ns);
	append_clock(journal, ns, flags);
	journal->is_ending = flags & JOURNAL_CLOCK_CLEAN;
}

/* ---------------------------------------------------------------- segments */

static bool exceeds_limit(const struct journal *journal, uint64_t more)
{
	return journal->config.size_max &&
	       counter_read(&journal->config.stat->size) + more >
		       journal->config.size_max;
}

/* Returns the size of the next new segment. Below the limit there may be room for a small
 * one only.
 */
static uint64_t segment_size(const struct journal *journal)
{
	uint64_t size = journal->config.segment_min;
	uint32_t i;

	for (i = 0; i < journal->made &&
		    !exceeds_limit(journal, 2 * size); i++)
		size = min_u64(2 * size, journal->config.segment_max);
	return size;
}

/* Returns whether the next block needs another segment, with a CLOCK at its end. */
static bool is_at_end(const struct journal *journal)
{
	uint32_t size = journal_block_size(gathering(journal)->count +
						   !journal->is_ending,
					   journal->config.disk->align);

	return journal->current.offset + size > journal->current.size;
}

/* Returns whether a new segment would exceed the limit. The first ones are always
 * made: one to use, and a reserve.
 */
static bool is_at_limit(const struct journal *journal)
{
	return journal->made > JOURNAL_AHEAD &&
	       exceeds_limit(journal, segment_size(journal));
}

/* Begins to make a segment, if one is missing. */
static void make_ahead(struct journal *journal, const uint64_t ns[3])
{
	struct segment_maker *maker = &journal->maker;

	if (journal->making || journal->nr_ahead == JOURNAL_AHEAD ||
	    ns[1] < journal->retry_ns)
		return;
	/* The time in its header would be later than the daemon's end. */
	if (journal->is_ending && journal->current.fd >= 0 &&
	    !is_at_end(journal))
		return;
	/* A checkpoint makes room, which begins now. One that has failed needs a segment
	 * before its checkpoint.
	 */
	if (!journal->stock.spare.nr && is_at_limit(journal) &&
	    (journal->state != JOURNAL_FAILED || journal->nr_ahead)) {
		journal->is_full = true;
		return;
	}
	maker->segment = (struct segment) {
		.fd = -1,
		.number = ++journal->number,
		.size = segment_size(journal),
	};
	maker->clock = (struct journal_clock) {
		.op = JOURNAL_OP_CLOCK,
		.ns = { ns[0], ns[1], ns[2] },
	};
	maker->old = 0;
	maker->is_old_gone = false;
	/* Another one is behind it from now on. */
	if (journal->state != JOURNAL_EMPTY || journal->nr_ahead)
		maker->last.number = 0;
	/* A file that failed is not used again, nor are those of its time. */
	if (journal->stock.spare.nr && journal->state != JOURNAL_FAILED) {
		struct stock_segment spare = stock_pop_spare(&journal->stock);

		maker->old = spare.number;
		maker->old_size = spare.size;
		maker->segment.size = spare.size;
	}
	journal->making = true;
	journal->config.runner->start(journal->config.runner, &maker->job);
}

static void journal_fail(struct journal *journal, int error)
{
	if (journal->state == JOURNAL_FAILED)
		return;
	/* To those who ask journal_takes(), -EAGAIN is that a later turn may do. */
	if (error == -EAGAIN)
		error = -EIO;
	journal->state = JOURNAL_FAILED;
	journal->error = error;
	journal->failures++;
	drop_gathered(journal);
	counter_add(&journal->config.stat->failures, 1);
	counter_set(&journal->config.stat->has_failed, 1);
	journal->config.events->failed(journal, error);
}

bool journal_is_stuck(const struct journal *journal)
{
	return !journal_is_busy(journal) && !journal->nr_ahead &&
	       (journal->current.fd < 0 || is_at_end(journal)) &&
	       (journal->is_full || journal->maker.result < 0);
}

/* Fails if what has gathered has no place, and a checkpoint would make none: no file can
 * be made, though the disk is not full.
 */
static void fail_if_broken(struct journal *journal)
{
	if (journal_is_stuck(journal) && !journal->is_full)
		journal_fail(journal, journal->maker.result);
}

/* The segment that was to be used again is gone, or as good as before. */
static void maker_failed_with_old(struct journal *journal)
{
	struct segment_maker *maker = &journal->maker;

	if (maker->is_old_gone)
		counter_add(&journal->config.stat->size, -maker->old_size);
	else
		(void)stock_push_spare(&journal->stock, maker->old,
				       maker->old_size);
}

static void maker_done(struct journal_job *job)
{
	struct journal *journal = container_of(job, struct journal, maker.job);
	struct segment_maker *maker = &journal->maker;

	journal->making = false;
	if (maker->old && (maker->result < 0 || maker->has_resumed))
		maker_failed_with_old(journal);
	if (maker->result < 0 || maker->has_resumed) {
		journal->is_full = maker->has_resumed ||
				   segment_is_full(maker->result);
		journal->retry_ns = now_ns(journal) + journal->retry_after_ns;
		journal->retry_after_ns = min_u64(2 * journal->retry_after_ns,
						  JOURNAL_RETRY_MAX_NS);
	}
	if (maker->has_resumed) {
		maker->has_resumed = false;
		maker->shift.op = 0;
		journal->current = maker->segment;
		journal->state = JOURNAL_OPEN;
		return;
	}
	if (maker->result < 0) {
		/* Without any segment nothing can be made durable. */
		if (!journal->nr_ahead && journal->current.fd < 0)
			journal_fail(journal, maker->result);
		else
			fail_if_broken(journal);
		return;
	}
	journal->is_full = false;
	journal->retry_ns = 0;
	journal->retry_after_ns = JOURNAL_RETRY_NS;
	maker->shift.op = 0;
	if (!maker->old) {
		counter_add(&journal->config.stat->size, maker->segment.size);
		counter_add(&journal->config.stat->bytes, maker->segment.size);
	}
	journal->made++;
	journal->ahead[journal->nr_ahead++] = maker->segment;
}

/* Takes the next segment into use. Returns false if there is none yet, or the
 * present one has to be flushed first.
 */
static bool segment_switch(struct journal *journal)
{
	struct segment *current = &journal->current;

	if (!journal->nr_ahead || journal->durable < journal->written)
		return false;
	/* Without memory its file stays until the next start. */
	stock_push_old(&journal->stock, journal->ahead[0].number,
		       journal->ahead[0].size);
	close_segment(journal, current);
	*current = journal->ahead[0];
	journal->nr_ahead--;
	memmove(&journal->ahead[0], &journal->ahead[1],
		journal->nr_ahead * sizeof(journal->ahead[0]));
	return true;
}

void journal_release(struct journal *journal, uint64_t number, uint64_t keep)
{
	/* There may be space for the next one now. */
	if (stock_release(&journal->stock, number, keep))
		journal->retry_ns = 0;
}

/* ----------------------------------------------------------------- failing */

/* Takes a new segment into use after a failure. The failed one is closed once no
 * write is in progress; nothing uses it again.
 */
static void journal_mend(struct journal *journal)
{
	if (journal->committing || journal->flushing)
		return;
	close_segment(journal, &journal->current);
	if (!journal->nr_ahead)
		return;
	/* Nothing in the failed segment will be durable. */
	journal->written = journal->durable;
	segment_switch(journal);
	journal->state = JOURNAL_MENDING;
}

void journal_mended(struct journal *journal)
{
	journal->state = JOURNAL_OPEN;
	counter_set(&journal->config.stat->has_failed, 0);
	journal->written = journal->next_lsn - 1;
	journal->durable = journal->written;
	journal->acked = journal->written;
	journal->config.events->advanced(journal);
}

/* ----------------------------------------------------------------- commits */

/* Takes the next segment into use if the next block needs one. Returns false if it has to
 * wait.
 */
static bool has_place(struct journal *journal)
{
	if (journal->current.fd >= 0 && !is_at_end(journal))
		return true;
	if (!segment_switch(journal))
		return false;
	journal->state = JOURNAL_OPEN;
	return true;
}

/* Writes what has gathered. It has a place. */
static void commit(struct journal *journal, uint64_t ns)
{
	struct journal_block *block = gathering(journal);
	struct journal_write *write = &journal->write;
	struct journal_file file = {
		.kind = JOURNAL_SEGMENT,
		.thread = journal->config.thread,
	};
	uint32_t size = journal_block_size(block->count,
					   journal->config.disk->align);

	assert(journal->current.offset + size <= journal->current.size);
	file.number = journal->current.number;
	block->lsn = journal->next_lsn++;
	block->durable = journal->durable;
	write->len = journal_seal(block, &file, journal->config.disk->align);
	write->fd = journal->current.fd;
	write->data = block;
	write->offset = journal->current.offset;
	write->sync = !journal->config.interval_ns;
	journal->current.offset += size;
	journal->length += size;
	journal->committing = true;
	journal->commit_ns = ns;
	journal->gathering ^= 1;
	gather_nothing(journal);
	journal->config.runner->commit(journal->config.runner, write);
}

static void write_done(struct journal_job *job)
{
	struct journal *journal = container_of(job, struct journal, write.job);
	struct journal_write *write = &journal->write;
	const struct journal_block *block = write->data;
	struct journal_stat *stat = journal->config.stat;

	journal->committing = false;
	if (write->result < 0 || journal->state == JOURNAL_FAILED) {
		journal_fail(journal, write->result < 0 ? write->result : -EIO);
		return;
	}
	counter_add(&stat->records, block->count);
	counter_add(&stat->commits, 1);
	counter_add(&stat->bytes, write->len);
	histogram_add(&stat->commit_ns, now_ns(journal) - journal->commit_ns);
	journal->written = block->lsn;
	if (write->sync)
		journal->durable = block->lsn;
	journal->acked = block->lsn;
	journal->config.events->advanced(journal);
}

/* Begins to make durable what is written; with an interval only. */
static void flush(struct journal *journal, uint64_t ns)
{
	journal->flush.fd = journal->current.fd;
	journal->flush_lsn = journal->written;
	journal->flushed_ns = ns;
	journal->flushing = true;
	journal->config.runner->flush(journal->config.runner, &journal->flush);
}

static void flush_done(struct journal_job *job)
{
	struct journal *journal = container_of(job, struct journal, flush.job);

	journal->flushing = false;
	if (journal->flush.result < 0)
		journal_fail(journal, journal->flush.result);
	else
		journal->durable = journal->flush_lsn;
}

static bool needs_flush(const struct journal *journal, uint64_t ns)
{
	if (journal->flushing || journal->durable >= journal->written)
		return false;
	return journal->is_ending ||
	       ns - journal->flushed_ns >= journal->config.interval_ns ||
	       (gathering(journal)->count && is_at_end(journal));
}

static uint64_t count_waiting(const struct journal *journal)
{
	uint64_t nr = gathering(journal)->count;

	if (journal->committing)
		nr += journal->gather[!journal->gathering].block->count;
	return nr;
}

/* Commits what has gathered, and the time if the last one is old. That is added only when
 * the block is written: while it waits for a segment it has room for one.
 */
static void commit_gathered(struct journal *journal, const uint64_t ns[3],
			    bool clock)
{
	bool records = gathering(journal)->count;
	bool is_due = ns[1] - journal->clock_ns >= JOURNAL_CLOCK_NS &&
		      !journal->is_ending &&
		      (records || (clock && journal->state == JOURNAL_OPEN));

	if (!records && !is_due)
		return;
	if (!has_place(journal)) {
		if (records)
			fail_if_broken(journal);
		return;
	}
	if (is_due)
		append_clock(journal, ns, 0);
	commit(journal, ns[1]);
}

uint64_t journal_turn(struct journal *journal, bool clock, bool awaited)
{
	bool is_failed = journal->state == JOURNAL_FAILED;
	uint64_t ns[3], wait = UINT64_MAX;

	if (journal_is_unused(journal) && !awaited)
		return UINT64_MAX;
	journal->config.events->clocks(journal, ns);
	if (is_failed)
		journal_mend(journal);
	if (!journal->committing && journal->state <= JOURNAL_OPEN)
		commit_gathered(journal, ns, clock);
	make_ahead(journal, ns);
	stock_trim(&journal->stock, journal->config.runner);
	if (journal->state == JOURNAL_OPEN && needs_flush(journal, ns[1]))
		flush(journal, ns[1]);
	counter_set(&journal->config.stat->waiting, count_waiting(journal));
	if (journal->retry_ns > ns[1] && !journal->making)
		wait = journal->retry_ns - ns[1];
	if (journal->config.interval_ns && journal->durable < journal->written)
		wait = min_u64(wait, journal->config.interval_ns);
	return wait;
}
