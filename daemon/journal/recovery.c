// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/journal/reader.h"
#include "daemon/journal/recovery.h"

static int fail(struct recovery *recovery, const struct journal_file *file,
		uint64_t offset, const char *why, int error)
{
	recovery->fault = *file;
	recovery->fault_offset = offset;
	recovery->why = why;
	return error;
}

static struct journal_file file_of(const struct recovery *recovery,
				   enum journal_kind kind, uint64_t number)
{
	return (struct journal_file) {
		.kind = kind,
		.thread = recovery->thread,
		.number = number,
	};
}

static int open_file(struct recovery *recovery, struct reader *reader,
		     enum journal_kind kind, uint64_t number)
{
	struct journal_file file = file_of(recovery, kind, number);
	int r = reader_open(reader, recovery->disk, &file, recovery->memory);

	return r < 0 ? fail(recovery, &file, 0, strerror(-r), r) : 0;
}

/* ---------------------------------------------------------------- the files */

static int note_name(void *data, const char *name)
{
	struct recovery *recovery = data;
	struct journal_file file;

	if (!journal_parse(name, &file) || file.thread != recovery->thread)
		return 0;
	if (file.number > recovery->last_number)
		recovery->last_number = file.number;
	if (file.kind == JOURNAL_CHECKPOINT) {
		if (file.number > recovery->checkpoint)
			recovery->checkpoint = file.number;
		return 0;
	}
	if (recovery->nr_segments == recovery->max_segments) {
		uint32_t max = recovery->max_segments ?
				       2 * recovery->max_segments : 16;
		void *all = realloc(recovery->segments,
				    max * sizeof(*recovery->segments));

		if (!all)
			return -ENOMEM;
		recovery->segments = all;
		recovery->max_segments = max;
	}
	recovery->segments[recovery->nr_segments++] =
		(struct recovery_segment) { .number = file.number };
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct recovery_segment *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Notes the latest time. The header of a segment may be older than blocks before
 * it.
 */
static void note_clock(struct recovery *recovery, const uint8_t *boot_id,
		       const struct expiry_record *record)
{
	struct journal_clock clock;

	memcpy(&clock, record, sizeof(clock));
	if (recovery->has_clock &&
	    !memcmp(recovery->boot_id, boot_id, sizeof(recovery->boot_id))) {
		if (clock.ns[2] < recovery->clock.ns[2])
			return;
		/* A header of the same time does not say how the daemon ended. */
		if (clock.ns[2] == recovery->clock.ns[2])
			clock.flags |= recovery->clock.flags;
	}
	recovery->clock = clock;
	recovery->has_clock = true;
	memcpy(recovery->boot_id, boot_id, sizeof(recovery->boot_id));
}

/* Notes the time that a block has, and when the machine started. @boot_id: of its
 * file so far. @is_behind: it is behind the checkpoint's beginning, which is later than
 * any time before it
 */
static void note_records(struct recovery *recovery,
			 const struct journal_block *block, uint8_t *boot_id,
			 bool is_behind)
{
	const struct expiry_record *record = (const void *)(block + 1);
	struct journal_segment segment;
	uint32_t i;

	for (i = 0; i < block->count; i++) {
		switch (record[i].op) {
		case JOURNAL_OP_SEGMENT:
			memcpy(&segment, &record[i], sizeof(segment));
			memcpy(boot_id, segment.boot_id,
			       sizeof(segment.boot_id));
			break;
		case JOURNAL_OP_CLOCK:
			if (is_behind)
				note_clock(recovery, boot_id, &record[i]);
			break;
		}
	}
}

/* Returns whether a block is behind the checkpoint's beginning. */
static bool is_behind(const struct recovery *recovery, uint64_t number,
		      uint64_t offset)
{
	return number > recovery->start.number ||
	       offset >= recovery->start.count;
}

/* Passes a block of segment @number. Returns whether it is a header that moves
 * deadlines.
 */
static bool pass_block(const struct recovery *recovery,
		       struct recovery_shifts *shifts, uint64_t number,
		       uint64_t offset, const struct journal_block *block)
{
	const struct expiry_record *record = (const void *)(block + 1);
	struct journal_segment segment = { 0 };
	struct journal_shift shift = { 0 };
	uint32_t i;

	if (block->lsn) {
		shifts->is_last = false;
		return false;
	}
	for (i = 0; i < block->count; i++) {
		if (record[i].op == JOURNAL_OP_SEGMENT)
			memcpy(&segment, &record[i], sizeof(segment));
		if (record[i].op == JOURNAL_OP_SHIFT)
			memcpy(&shift, &record[i], sizeof(shift));
	}
	if (!shift.op)
		return false;
	if (shifts->is_last &&
	    !memcmp(&shift, &shifts->last, sizeof(shift)) &&
	    !memcmp(segment.boot_id, shifts->boot_id, sizeof(segment.boot_id)))
		return true;
	shifts->is_last = true;
	shifts->last = shift;
	memcpy(shifts->boot_id, segment.boot_id, sizeof(segment.boot_id));
	/* A damaged file must not overflow it. */
	for (i = 0; i < JOURNAL_SHIFTS &&
		    is_behind(recovery, number, offset); i++)
		shifts->by_ns[i] = (uint64_t)shifts->by_ns[i] + shift.by_ns[i];
	return true;
}

/* Reads the beginning of the checkpoint. */
static int read_start(struct recovery *recovery)
{
	const struct journal_block *block;
	struct reader reader;
	uint8_t boot_id[16] = { 0 };
	int r;

	recovery->start = (struct journal_mark) { .lsn = 1 };
	if (!recovery->checkpoint)
		return 0;
	r = open_file(recovery, &reader, JOURNAL_CHECKPOINT,
		      recovery->checkpoint);
	if (r < 0)
		return r;
	recovery->checkpoint_size = reader.size;
	r = reader_next(&reader, &block);
	if (r == 1 && block->count) {
		memcpy(&recovery->start, block + 1, sizeof(recovery->start));
		note_records(recovery, block, boot_id, true);
	}
	if (r >= 0 && (!r || recovery->start.op != JOURNAL_OP_START))
		r = fail(recovery, &reader.file, 0, "a bad block", -EBADMSG);
	else if (r < 0)
		fail(recovery, &reader.file, 0,
		     r == -EPROTONOSUPPORT ? "another version's file" :
					     strerror(-r), r);
	reader_close(&reader);
	return r < 0 ? r : 0;
}

/* ------------------------------------------------------------ the segments */

/* Returns whether a block behind the last good one shows that what should be there was
 * durable. So does any behind a bad header, another header, and the very block: both
 * were written behind something durable.
 */
static bool shows_damage(const struct recovery *recovery, uint64_t offset,
			 const struct journal_block *block)
{
	return !offset || !block->lsn || block->lsn == recovery->next_lsn ||
	       (block->lsn > recovery->next_lsn &&
		block->durable >= recovery->next_lsn);
}

/* Checks what follows the last good block of @segment, which ends at @offset. */
static int check_rest(struct recovery *recovery, struct reader *reader,
		      struct recovery_segment *segment, uint64_t offset)
{
	const struct journal_block *block;
	int r;

	while ((r = reader_search(reader, &block)) == 1) {
		segment->has_more = true;
		if (shows_damage(recovery, offset, block))
			return fail(recovery, &reader->file, offset,
				    "a bad block", -EBADMSG);
	}
	if (r < 0)
		fail(recovery, &reader->file, reader->offset, strerror(-r), r);
	return r;
}

/* Notes the segment's header, or one of a start that went on with it. Where that moved
 * deadlines, the clocks began anew: the latest time from before counts no more. The boot
 * id may not tell that: it may be unknown, or a container's clock was set back.
 */
static void note_header(struct recovery *recovery,
			struct recovery_segment *segment,
			const struct reader *reader,
			const struct journal_block *block, uint8_t *boot_id)
{
	uint64_t offset = reader->offset - block->size;
	bool behind = is_behind(recovery, segment->number, offset);

	if (pass_block(recovery, &recovery->shifts, segment->number, offset,
		       block)) {
		segment->has_shift = true;
		if (behind)
			recovery->has_clock = false;
	}
	note_records(recovery, block, boot_id, behind);
	segment->end = reader->offset;
}

/* Reads the blocks of a segment behind its header, as far as they continue the
 * stream.
 */
static int read_blocks(struct recovery *recovery,
		       struct recovery_segment *segment, struct reader *reader,
		       uint8_t *boot_id)
{
	const struct journal_block *block;
	uint64_t offset;
	int r;

	for (;;) {
		offset = reader->offset;
		r = reader_next(reader, &block);
		if (r < 0)
			return fail(recovery, &reader->file, offset,
				    strerror(-r), r);
		if (!r)
			break;
		if (!block->lsn) {
			note_header(recovery, segment, reader, block, boot_id);
			continue;
		}
		/* Blocks before the checkpoint only have to be contiguous. */
		if (!segment->first_lsn &&
		    block->lsn < recovery->next_lsn &&
		    recovery->length == 0)
			recovery->next_lsn = block->lsn;
		if (block->lsn != recovery->next_lsn) {
			reader->offset = offset;
			break;
		}
		if (!segment->first_lsn)
			segment->first_lsn = block->lsn;
		recovery->next_lsn++;
		recovery->length += block->size;
		pass_block(recovery, &recovery->shifts, segment->number, offset,
			   block);
		note_records(recovery, block, boot_id,
			     is_behind(recovery, segment->number, offset));
		segment->end = reader->offset;
	}
	return 0;
}

static int read_segment(struct recovery *recovery,
			struct recovery_segment *segment)
{
	const struct journal_block *block;
	uint8_t boot_id[16] = { 0 };
	struct reader reader;
	int r;

	r = open_file(recovery, &reader, JOURNAL_SEGMENT, segment->number);
	if (r < 0)
		return r;
	segment->size = reader.size;
	segment->is_needed = segment->number >= recovery->start.number;
	if (!segment->is_needed)
		goto out;
	r = reader_next(&reader, &block);
	if (r == -EPROTONOSUPPORT) {
		fail(recovery, &reader.file, 0, "another version's file", r);
		goto out;
	}
	if (r < 0) {
		fail(recovery, &reader.file, 0, strerror(-r), r);
		goto out;
	}
	if (r && !block->lsn) {
		note_header(recovery, segment, &reader, block, boot_id);
		r = read_blocks(recovery, segment, &reader, boot_id);
	}
	if (r >= 0)
		r = check_rest(recovery, &reader, segment, segment->end);
	if (r == -EBADMSG && recovery->forced)
		r = 0;
out:
	reader_close(&reader);
	return r;
}

int recovery_open(struct recovery *recovery, struct disk *disk,
		  uint16_t thread, bool force)
{
	uint32_t i;
	int r;

	*recovery = (struct recovery) {
		.disk = disk,
		.thread = thread,
		.forced = force,
	};
	recovery->memory = malloc(READER_MEMORY);
	if (!recovery->memory)
		return -ENOMEM;
	r = disk->ops->list(disk, note_name, recovery);
	if (r < 0) {
		recovery->why = "the directory cannot be read";
		return r;
	}
	if (recovery->nr_segments)
		qsort(recovery->segments, recovery->nr_segments,
		      sizeof(*recovery->segments), by_number);
	r = read_start(recovery);
	recovery->next_lsn = recovery->start.lsn;
	for (i = 0; !r && i < recovery->nr_segments; i++)
		r = read_segment(recovery, &recovery->segments[i]);
	if (r < 0)
		return r;
	if (recovery->next_lsn < recovery->start.lsn) {
		struct journal_file file =
			file_of(recovery, JOURNAL_CHECKPOINT,
				recovery->checkpoint);

		return fail(recovery, &file, 0,
			    "the journal ends before its checkpoint", -EBADMSG);
	}
	return 0;
}

void recovery_close(struct recovery *recovery)
{
	free(recovery->segments);
	free(recovery->memory);
	recovery->segments = NULL;
	recovery->memory = NULL;
}

/* ----------------------------------------------------------------- replaying */

/* Visits the records of a block. */
static int visit_block(const struct journal_block *block,
		       struct recovery_place *place, recovery_visit_t visit,
		       void *data)
{
	const struct expiry_record *record = (const void *)(block + 1);
	uint32_t i;
	int r = 0;

	place->queue = 0;
	place->lsn = block->lsn;
	for (i = 0; !r && i < block->count; i++) {
		if (record[i].op == JOURNAL_OP_QUEUE)
			place->queue = record[i].id;
		r = visit(data, place, &record[i]);
	}
	return r;
}

static int replay_checkpoint(struct recovery *recovery, recovery_visit_t visit,
			     void *data, struct recovery_place *place)
{
	const struct journal_block *block;
	const struct expiry_record *last;
	struct journal_mark end = { 0 };
	struct reader reader;
	uint64_t next = 1;
	int r;

	r = open_file(recovery, &reader, JOURNAL_CHECKPOINT,
		      recovery->checkpoint);
	if (r < 0)
		return r;
	place->file = reader.file;
	while (end.op != JOURNAL_OP_END) {
		place->offset = reader.offset;
		r = reader_next(&reader, &block);
		if (r == 1 && (block->lsn != next || !block->count))
			r = 0;
		if (r <= 0) {
			r = fail(recovery, &reader.file, place->offset,
				 r ? strerror(-r) : "a bad block",
				 r ? r : -EBADMSG);
			if (recovery->forced)
				r = 0;
			break;
		}
		next++;
		last = (const struct expiry_record *)(block + 1) +
		       block->count - 1;
		memcpy(&end, last, sizeof(end));
		r = visit_block(block, place, visit, data);
		if (r)
			break;
	}
	reader_close(&reader);
	return r;
}

/* Sets by how much deadlines behind @passed have to be moved. */
static void set_shift(const struct recovery *recovery,
		      const struct recovery_shifts *passed,
		      struct recovery_place *place)
{
	uint32_t i;

	for (i = 0; i < JOURNAL_SHIFTS; i++)
		place->shift_ns[i] = (uint64_t)recovery->shifts.by_ns[i] -
				     passed->by_ns[i];
}

static int replay_segment(struct recovery *recovery,
			  const struct recovery_segment *segment,
			  recovery_visit_t visit, void *data,
			  struct recovery_shifts *passed,
			  struct recovery_place *place)
{
	const struct journal_block *block;
	struct reader reader;
	int r;

	r = open_file(recovery, &reader, JOURNAL_SEGMENT, segment->number);
	if (r < 0)
		return r;
	place->file = reader.file;
	do {
		place->offset = reader.offset;
		r = reader_next(&reader, &block);
		if (r <= 0) {
			/* It was good a moment ago. */
			r = fail(recovery, &reader.file, place->offset,
				 r ? strerror(-r) : "a block has changed",
				 r ? r : -EIO);
			break;
		}
		r = 0;
		if (pass_block(recovery, passed, segment->number, place->offset,
			       block))
			set_shift(recovery, passed, place);
		if (!block->lsn || block->lsn >= recovery->start.lsn)
			r = visit_block(block, place, visit, data);
	} while (!r && reader.offset < segment->end);
	reader_close(&reader);
	return r;
}

int recovery_replay(struct recovery *recovery, recovery_visit_t visit,
		    void *data)
{
	struct recovery_shifts passed = { 0 };
	struct recovery_place place = { 0 };
	uint32_t i;
	int r = 0;

	set_shift(recovery, &passed, &place);
	if (recovery->checkpoint)
		r = replay_checkpoint(recovery, visit, data, &place);
	for (i = 0; !r && i < recovery->nr_segments; i++) {
		if (!recovery->segments[i].end)
			continue;
		r = replay_segment(recovery, &recovery->segments[i], visit,
				   data, &passed, &place);
	}
	return r;
}

/* ------------------------------------------------------------------ cleaning */

static int clean_name(void *data, const char *name)
{
	struct recovery *recovery = data;
	struct disk *disk = recovery->disk;
	struct journal_file file;
	int r = 0;

	if (journal_is_unfinished(name))
		r = disk->ops->unlink(disk, name);
	else if (journal_parse(name, &file) &&
		 file.thread == recovery->thread &&
		 file.kind == JOURNAL_CHECKPOINT &&
		 file.number < recovery->checkpoint)
		r = disk->ops->unlink(disk, name);
	return r < 0 ? r : 0;
}

/* Makes durable what was read: a daemon that was killed may have left blocks and
 * names that are not. From now on they are shown and built upon.
 */
static int sync_all(struct recovery *recovery)
{
	struct disk *disk = recovery->disk;
	struct journal_file file;
	char name[JOURNAL_NAME];
	uint32_t i;
	int fd, r = 0;

	for (i = 0; !r && i < recovery->nr_segments; i++) {
		if (!recovery->segments[i].end)
			continue;
		file = file_of(recovery, JOURNAL_SEGMENT,
			       recovery->segments[i].number);
		journal_name(name, &file, false);
		fd = disk->ops->open(disk, name, DISK_WRITE);
		if (fd < 0)
			return fd;
		r = disk->ops->sync(disk, fd);
		disk->ops->close(disk, fd);
	}
	return r ? r : disk->ops->sync_names(disk);
}

int recovery_clean(struct recovery *recovery)
{
	int r = sync_all(recovery);

	return r ? r : recovery->disk->ops->list(recovery->disk, clean_name,
						 recovery);
}

struct streams {
	uint64_t *bits;
	bool is_unfinished;
};

static int note_stream(void *data, const char *name)
{
	struct streams *streams = data;
	struct journal_file file;

	if (journal_parse(name, &file) && file.thread < JOURNAL_THREADS)
		streams->bits[file.thread / 64] |= 1ULL << file.thread % 64;
	if (!strcmp(name, JOURNAL_UNFINISHED))
		streams->is_unfinished = true;
	return 0;
}

int recovery_streams(struct disk *disk, uint64_t streams[JOURNAL_THREADS / 64])
{
	struct streams all = { .bits = streams };
	int r;

	memset(streams, 0, JOURNAL_THREADS / 8);
	r = disk->ops->list(disk, note_stream, &all);
	return r ? r : all.is_unfinished ? -EINPROGRESS : 0;
}
