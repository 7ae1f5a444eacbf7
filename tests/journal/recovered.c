// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/journal/recovered.h"

static int visit(void *data, const struct recovery_place *place,
		 const struct expiry_record *record)
{
	struct recovered *recovered = data;
	struct expiry_record moved = *record;
	struct seen *last = recovered->nr_seen ?
		&recovered->seen[recovered->nr_seen - 1] : NULL;

	if (!last || last->offset != place->offset ||
	    memcmp(&last->file, &place->file, sizeof(last->file))) {
		assert(recovered->nr_seen < BLOCKS);
		recovered->seen[recovered->nr_seen++] = (struct seen) {
			.file = place->file,
			.offset = place->offset,
			.lsn = place->lsn,
		};
	}
	if (record->op >= JOURNAL_OP_SEGMENT && record->op <= JOURNAL_OP_QUEUE)
		return 0;
	if (record->op < JOURNAL_OP_SEGMENT)
		moved.deadline_ns += place->shift_ns[1];
	/* The checkpoint lacks a queue that was dropped before it began, and the
	 * block that gathered then may have records of it.
	 */
	model_apply(&recovered->model, place->queue, &moved);
	return 0;
}

int recover(struct recovered *recovered, struct sim_disk *disk,
	    struct recovery *recovery)
{
	int r;

	model_init(&recovered->model);
	recovered->nr_seen = 0;
	r = recovery_open(recovery, &disk->disk, 0, false);
	if (!r)
		r = recovery_replay(recovery, visit, recovered);
	if (!r && recovery->has_clock)
		model_move(&recovered->model,
			   recovery->clock.ns[0] - recovery->clock.ns[2]);
	return r;
}

const char *recovered_fault(const struct recovery *recovery)
{
	static char text[JOURNAL_NAME + 64];
	char name[JOURNAL_NAME];

	journal_name(name, &recovery->fault, false);
	snprintf(text, sizeof(text), "%s at %" PRIu64 ": %s", name,
		 recovery->fault_offset,
		 recovery->why ? recovery->why : "?");
	return text;
}

/* Returns whether a segment has a block that counts: from @start on. */
static bool counts(const struct recovered *recovered,
		   const struct journal_file *file, uint64_t start)
{
	const struct seen *seen = recovered->seen;
	uint32_t i;

	for (i = 0; i < recovered->nr_seen; i++)
		if (!memcmp(&seen[i].file, file, sizeof(*file)) &&
		    seen[i].lsn && seen[i].lsn >= start)
			return true;
	return false;
}

/* Returns the last block of all segments, 0 if there is none. */
static uint64_t last_block(const struct recovered *recovered)
{
	const struct seen *seen = recovered->seen;
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i < recovered->nr_seen; i++)
		if (seen[i].file.kind == JOURNAL_SEGMENT && seen[i].lsn > last)
			last = seen[i].lsn;
	return last;
}

/* Returns whether a later segment has a block behind this one. */
static bool is_followed(const struct recovered *recovered,
			const struct seen *seen)
{
	const struct seen *all = recovered->seen;
	uint32_t i;

	for (i = 0; i < recovered->nr_seen; i++)
		if (all[i].file.kind == JOURNAL_SEGMENT &&
		    all[i].file.number > seen->file.number &&
		    all[i].lsn > seen->lsn)
			return true;
	return false;
}

bool recovered_needs(const struct recovered *recovered, const struct seen *seen,
		     bool remove, uint64_t start)
{
	if (seen->file.kind == JOURNAL_CHECKPOINT)
		return !remove;
	if (remove)
		return counts(recovered, &seen->file, start) &&
		       is_followed(recovered, seen);
	if (!seen->offset)
		return counts(recovered, &seen->file, start);
	return seen->lsn >= start && seen->lsn != last_block(recovered);
}
