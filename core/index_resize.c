// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The size of an index, and its change.
 *
 * A change has two phases, with a step at each change of the table.
 * First a growing table gets its pages, one a step. Then the entries of MOVE
 * lines a step are placed by the new size. A growing table is passed from its
 * last line to the first, and a shrinking one from its first to the last: so
 * entries move away from those that are still to be moved, and there is room for
 * them. A line's entries move together, so a hash tells by which size it was
 * placed. INDEX_SIDE says the same in the entry: a moved one may come to lie in a
 * line that is still being read.
 *
 * A table of S lines is left behind after S / MOVE changes. It had five entries a
 * line at first, and has five and a half at the end, of seven. A table that shrinks
 * has at most four in the end.
 */
#include "index_lines.h"

/* Grow at this many entries a line. */
#define CROWDED		5U

/* Shrink at this part of the entries with which the table grows. */
#define SPARSE		8U

/* Lines that a step moves. */
#define MOVE		2U

/* The same where a table shrinks, and has few entries in each. */
#define MOVE_SPARSE	8U

/* A table's last line is home to no hash but takes what has no place before it,
 * unless pages are so small.
 */
#define SPARE		(INDEX_LINES_PER_PAGE > 1 ? 1U : 0U)

/* More lines at the table's end, for what has no place before them. */
#define BEYOND		8U

static inline u32 lines_of(u32 pages)
{
	return pages * INDEX_LINES_PER_PAGE - SPARE;
}

static inline u32 pages_of(u32 lines)
{
	return (lines + SPARE) / INDEX_LINES_PER_PAGE;
}

/* Returns the next size of the sequence 1, 2, 3, 4, 6, 9, 13, 19, ... */
static inline u32 grown(u32 pages)
{
	return pages + (pages > 1 ? pages / 2 : 1);
}

/* Returns the size three before it in the sequence, or 1. */
static inline u32 shrunk(u32 pages)
{
	u32 i;

	for (i = 0; i < 3 && pages > 1; i++)
		pages -= pages > 2 ? pages / 3 : 1;
	return pages;
}

static inline u32 beyond_pages(void)
{
	return (BEYOND + INDEX_LINES_PER_PAGE - 1) / INDEX_LINES_PER_PAGE;
}

/* Returns the entries with which a table of @pages is to grow. */
static inline u32 grow_at(u32 pages)
{
	return lines_of(pages) * CROWDED;
}

u32 index_pages_max(u64 limit)
{
	u32 pages = 1;

	while (limit > grow_at(pages))
		pages = grown(pages);
	return pages + beyond_pages();
}

/* Returns the entries with which it takes no other: 15 of 16 places. */
static u32 full_at(u32 lines)
{
	return lines * INDEX_LINE_ENTRIES - lines * INDEX_LINE_ENTRIES / 16;
}

/* Notes that the table has @lines from now on, or none. */
static void set_size(struct index *index, u32 lines)
{
	u32 pages = pages_of(lines);

	index->lines = lines;
	index->to = lines;
	index->shrink_below = 0;
	index->grow_at = ~0U;
	index->full_at = full_at(lines);
	if (lines && grown(pages) + beyond_pages() <= index->pages->nr_max)
		index->grow_at = grow_at(pages);
	if (pages > 1)
		index->shrink_below = grow_at(pages) / SPARSE;
}

void index_reset(struct index *index)
{
	index->nr = 0;
	index->moved = 0;
	index->side = 0;
	index->pages->nr = 0;
	set_size(index, 0);
}

int index_add_page(struct index *index)
{
	u32 nr = index->pages->nr;
	void *page = core_page(index->pages, nr);

	if (!page)
		return index->pages->error;
	memset(page, 0, CORE_PAGE_SIZE);
	index->pages->nr = nr + 1;
	return 0;
}

int index_resize_first(struct index *index)
{
	int err = index_add_page(index);

	if (!err)
		set_size(index, lines_of(1));
	return err;
}

int index_reserve(struct index *index, u64 nr)
{
	u32 pages = 1;
	int err = 0;

	if (!nr) {
		if (index->to == index->lines)
			set_size(index, index->lines);
		return 0;
	}
	if (index->lines)
		return 0;
	while (nr >= grow_at(pages) &&
	       grown(pages) + beyond_pages() <= index->pages->nr_max)
		pages = grown(pages);
	while (!err && index->pages->nr < pages)
		err = index_add_page(index);
	if (err) {
		index_reset(index);
		return err;
	}
	set_size(index, lines_of(pages));
	index->shrink_below = 0;
	return 0;
}

/* Returns a bit for each entry that is to be moved with line @home. */
static inline u64 moves_with(const struct index *index,
			     const struct index_line *line, u32 home)
{
	u64 used = line->head & INDEX_TAG_HIGH, found = 0;
	u32 i;

	/* By bits: whether an entry is free cannot be predicted. */
	for (; used; used &= used - 1) {
		i = __ffs64(used) / 8;
		found |= (u64)((line->entry[i].slot & INDEX_SIDE) !=
			       index->side &&
			       index_scale(line->entry[i].hash,
					   index->lines) == home) <<
			 (i * 8 + 7);
	}
	return found;
}

/* Gets all lines that moving the entries of line @home reads and writes: 0 or a
 * page error.
 */
static int prepare_move(struct index *index, u32 home)
{
	u32 number, to, first = ~0U, last = 0, nr = 0, room = 0;
	const struct index_line *line;
	u64 found;

	for (number = home; number < lines_in_use(index); number++) {
		line = line_get(index, number);
		if (!line)
			return index->pages->error;
		found = moves_with(index, line, home);
		for (; found; found &= found - 1) {
			to = index_scale(line->entry[__ffs64(found) / 8].hash,
					 index->to);
			first = to < first ? to : first;
			last = to > last ? to : last;
			nr++;
		}
		if (!line_passed(line))
			break;
	}
	for (number = first; room < nr; number++) {
		line = line_extend(index, number);
		if (!line)
			return index->pages->error;
		if (number >= last)
			room += line_count_free(line);
	}
	return 0;
}

/* Moves the entries of line @home, after prepare_move() and in the new state. */
static void move(struct index *index, u32 home)
{
	u32 number, passed, i, hash, slot;
	struct index_line *line;
	u64 found;

	for (number = home; number < lines_in_use(index); number++) {
		line = line_get(index, number);
		if (core_broken(line))
			return;
		found = moves_with(index, line, home);
		for (; found; found &= found - 1) {
			i = __ffs64(found) / 8;
			hash = line->entry[i].hash;
			slot = line->entry[i].slot ^ INDEX_SIDE;
			line_clear(line, i);
			for (passed = home; passed < number; passed++)
				line_unpass(line_get(index, passed));
			index_place(index, index_scale(hash, index->to), hash,
				    slot);
		}
		if (!line_passed(line))
			break;
	}
}

/* Frees the pages that a table which has shrunk does not need. */
static int drop_pages(struct index *index)
{
	u32 last = index->to - 1, pages = pages_of(index->to);
	const struct index_line *line;

	for (; last < lines_in_use(index); last++) {
		line = line_get(index, last);
		if (!line)
			return index->pages->error;
		if (!line_passed(line))
			break;
	}
	if (pages < last / INDEX_LINES_PER_PAGE + 1)
		pages = last / INDEX_LINES_PER_PAGE + 1;
	if (pages < index->pages->nr)
		index->pages->nr = pages;
	return 0;
}

static int grow_step(struct index *index)
{
	u32 step;
	int err;

	if (index->pages->nr < pages_of(index->to))
		return index_add_page(index);
	for (step = 0; step < MOVE && index->moved; step++) {
		err = prepare_move(index, index->moved - 1);
		if (err)
			return err;
		index->moved--;
		move(index, index->moved);
	}
	if (!index->moved)
		set_size(index, index->to);
	return 0;
}

static int shrink_step(struct index *index)
{
	u32 step;
	int err;

	for (step = 0; step < MOVE_SPARSE && index->moved < index->lines;
	     step++) {
		err = prepare_move(index, index->moved);
		if (err)
			return err;
		index->moved++;
		move(index, index->moved - 1);
	}
	if (index->moved < index->lines)
		return 0;
	err = drop_pages(index);
	if (err)
		return err;
	set_size(index, index->to);
	index->moved = 0;
	return 0;
}

int index_resize(struct index *index)
{
	u32 pages = pages_of(index->lines);

	if (index->to == index->lines) {
		index->side ^= INDEX_SIDE;
		if (index->nr >= index->grow_at) {
			index->to = lines_of(grown(pages));
			index->moved = index->lines;
		} else {
			index->to = lines_of(shrunk(pages));
			index->full_at = full_at(index->to);
		}
	}
	return index->to > index->lines ? grow_step(index) : shrink_step(index);
}
