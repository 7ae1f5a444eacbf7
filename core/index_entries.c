// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The index of a keyed queue: see index.h. Changes of its size are in
 * index_resize.c.
 */
#include "index_lines.h"

/* Steps that one change may catch up after pages were missing. */
#define CATCH_UP	64U

void index_init(struct index *index, struct core_pages *pages,
		const u64 seed[2])
{
	index->pages = pages;
	index->seed[0] = seed[0];
	index->seed[1] = seed[1];
	index_reset(index);
}

/* ------------------------------------------------------------------------
 * Lookups
 */

s64 index_find(struct index *index, struct slots *slots, u64 id, u32 hash,
	       struct slot **slotp)
{
	u32 home = index_home(index, hash), end = lines_in_use(index);
	u32 number, i, slot;
	struct index_line *line;
	u64 match;

	index->place = NULL;
	for (number = home; number < end; number++) {
		line = line_get(index, number);
		if (unlikely(!line))
			return index->pages->error;
		match = index_match(line->head, hash);
		for (; match; match &= match - 1) {
			i = __ffs64(match) / 8;
			if (unlikely(line->entry[i].hash != hash))
				continue;
			slot = line->entry[i].slot & ~INDEX_SIDE;
			*slotp = slots_get(slots, slot);
			if (unlikely(!*slotp))
				return slots->pages->error;
			if (likely((*slotp)->id == id))
				return slot;
		}
		if (unlikely(line_passed(line)))
			continue;
		if (likely(number == home && line_free(line)))
			index->place = line;
		break;
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Additions and removals
 */

/* Takes a bounded step towards a table of the right size. A missing page only
 * delays it.
 */
static inline int resize_step(struct index *index)
{
	return likely(index_has_size(index)) ? 0 : index_resize(index);
}

/* Gets the lines from the home of @hash to the first with a place. */
static inline int prepare_place(struct index *index, u32 hash)
{
	u32 number = index_home(index, hash);
	struct index_line *line = line_extend(index, number);

	index->place = line;
	while (line && unlikely(!line_free(line))) {
		index->place = NULL;
		line = line_extend(index, ++number);
	}
	return likely(line) ? 0 : index->pages->error;
}

int index_prepare(struct index *index, u32 hash)
{
	u32 steps;
	int err;

	if (unlikely(!index->lines)) {
		err = index_resize_first(index);
		if (err)
			return err;
	}
	err = resize_step(index);
	/* Only pages that were missing let it come that far. */
	for (steps = 0; unlikely(index->nr >= index->full_at); steps++) {
		if (err)
			return err;
		if (steps == CATCH_UP)
			return -ENOMEM;
		err = resize_step(index);
	}
	return prepare_place(index, hash);
}

void index_add_elsewhere(struct index *index, u32 hash, u32 slot)
{
	u32 side = index->side;

	if (!index_has_moved(index, index_scale(hash, index->lines)))
		side ^= INDEX_SIDE;
	if (index->place)
		line_fill(index->place, hash, slot | side);
	else
		index_place(index, index_home(index, hash), hash, slot | side);
}

int index_prepare_elsewhere(struct index *index, u32 hash, u32 slot)
{
	u32 number = index_home(index, hash);
	struct index_line *line = line_get(index, number);

	index->place = line;
	while (line) {
		index->entry = line_find_slot(line, hash, slot);
		if (index->entry < INDEX_LINE_ENTRIES)
			return 0;
		index->place = NULL;
		line = line_get(index, ++number);
	}
	return index->pages->error;
}

void index_find_elsewhere(struct index *index, u32 hash, u32 slot)
{
	u32 number = index_home(index, hash);
	struct index_line *line = line_get(index, number);

	while (!core_broken(line)) {
		index->entry = line_find_slot(line, hash, slot);
		if (index->entry < INDEX_LINE_ENTRIES)
			break;
		line_unpass(line);
		line = line_get(index, ++number);
	}
	index->place = line;
}

void index_renumber(struct index *index, u32 hash, u32 slot, u32 to)
{
	u32 number = index_home(index, hash);
	struct index_line *line = index->place;

	while (!line) {
		line = line_get(index, number++);
		if (core_broken(line))
			return;
		index->entry = line_find_slot(line, hash, slot);
		if (index->entry == INDEX_LINE_ENTRIES)
			line = NULL;
	}
	slot = line->entry[index->entry].slot;
	line->entry[index->entry].slot = to | (slot & INDEX_SIDE);
}

/* ------------------------------------------------------------------------
 * Validation
 */

/* Checks an entry and returns how many lines it is from its home, or -EIO or a
 * page error.
 */
static s64 validate_entry(struct index *index, struct slots *slots, u32 number,
			  u32 hash, u32 slot)
{
	u32 home = index_home(index, hash);
	bool has_moved = index_has_moved(index, index_scale(hash, index->lines));
	struct slot *found;
	u64 id;

	found = slots_get(slots, slot & ~INDEX_SIDE);
	if (!found)
		return slots->pages->error ?: -EIO;
	id = found->id;
	if (index_hash(index, id) != hash || number < home ||
	    has_moved != ((slot & INDEX_SIDE) == index->side) ||
	    index_find(index, slots, id, hash, &found) != (slot & ~INDEX_SIDE))
		return -EIO;
	return number - home;
}

int index_validate(struct index *index, struct slots *slots)
{
	u64 away = 0, passed = 0;
	struct index_line *line;
	u32 number, i, nr = 0;
	bool stays = false;
	s64 ret;

	for (number = 0; number < lines_in_use(index); number++) {
		line = line_get(index, number);
		if (!line)
			return index->pages->error;
		passed += line_passed(line);
		stays |= line_passed(line) == 255;
		for (i = 0; i < INDEX_LINE_ENTRIES; i++) {
			if (!(line->head >> i * 8 & 0xff))
				continue;
			ret = validate_entry(index, slots, number,
					     line->entry[i].hash,
					     line->entry[i].slot);
			if (ret < 0)
				return ret;
			away += ret;
			nr++;
		}
	}
	/* Every entry away from home is counted in each line that it passed. */
	return nr == index->nr && (stays || passed == away) ? 0 : -EIO;
}
