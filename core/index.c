// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The index of a keyed queue: see index.h.
 *
 * A change of size has two phases, with a step at each change of the table.
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
#include "index.h"

static_assert(sizeof(struct index_line) == 64, "a cache line");

/* Grow at this many entries a line. */
#define CROWDED		5U

/* Shrink at this part of the entries with which the table grows. */
#define SPARSE		8U

/* Lines that a step moves. */
#define MOVE		2U

/* Steps that one change may catch up after pages were missing. */
#define CATCH_UP	64U

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

void index_init(struct index *index, struct core_pages *pages,
		const u64 seed[2])
{
	index->pages = pages;
	index->seed[0] = seed[0];
	index->seed[1] = seed[1];
	index_reset(index);
}

void index_reset(struct index *index)
{
	index->nr = 0;
	index->moved = 0;
	index->side = 0;
	index->pages->nr = 0;
	set_size(index, 0);
}

/* ------------------------------------------------------------------------
 * Lines
 */

static inline u32 lines_in_use(const struct index *index)
{
	return index->pages->nr * INDEX_LINES_PER_PAGE;
}

/* Returns a line in use, or NULL with the pages' error set. */
static inline struct index_line *line_get(struct index *index, u32 number)
{
	struct index_line *page = core_page(index->pages,
					    number / INDEX_LINES_PER_PAGE);

	return likely(page) ? page + number % INDEX_LINES_PER_PAGE : NULL;
}

static inline u32 line_passed(const struct index_line *line)
{
	return line->head >> INDEX_PASSED_SHIFT;
}

static inline void line_pass(struct index_line *line)
{
	if (line_passed(line) < 255)
		line->head += 1ULL << INDEX_PASSED_SHIFT;
}

static inline void line_unpass(struct index_line *line)
{
	if (line_passed(line) < 255)
		line->head -= 1ULL << INDEX_PASSED_SHIFT;
}

/* Returns a bit for each free entry. */
static inline u64 line_free(const struct index_line *line)
{
	return ~line->head & INDEX_TAG_HIGH;
}

static inline u32 line_count_free(const struct index_line *line)
{
	/* The product's highest byte is the sum of all. */
	return (line_free(line) >> 7) * (INDEX_TAG_LOW | 1ULL << 56) >> 56;
}

/* Returns a bit for each of these entries that has the hash. */
static inline u64 line_find(const struct index_line *line, u32 hash)
{
	u64 match, found = 0;
	u32 i;

	for (match = index_match(line->head, hash); match; match &= match - 1) {
		i = __ffs64(match) / 8;
		if (likely(line->entry[i].hash == hash))
			found |= 0x80ULL << i * 8;
	}
	return found;
}

/* Returns the entry of @slot and @hash, or INDEX_LINE_ENTRIES. */
static inline u32 line_find_slot(const struct index_line *line, u32 hash,
				 u32 slot)
{
	u64 match;
	u32 i;

	for (match = index_match(line->head, hash); match; match &= match - 1) {
		i = __ffs64(match) / 8;
		if (likely((line->entry[i].slot & ~INDEX_SIDE) == slot))
			return i;
	}
	return INDEX_LINE_ENTRIES;
}

static inline void line_clear(struct index_line *line, u32 i)
{
	line->head &= ~(0xffULL << i * 8);
}

/* ------------------------------------------------------------------------
 * Lookups
 */

s64 index_find(struct index *index, struct slots *slots, u64 id, u32 hash,
	       struct slot **slotp)
{
	u32 number, end = lines_in_use(index), slot;
	const struct index_line *line;
	u64 match;

	for (number = index_home(index, hash); number < end; number++) {
		line = line_get(index, number);
		if (unlikely(!line))
			return index->pages->error;
		for (match = line_find(line, hash); match; match &= match - 1) {
			slot = line->entry[__ffs64(match) / 8].slot &
			       ~INDEX_SIDE;
			*slotp = slots_get(slots, slot);
			if (unlikely(!*slotp))
				return slots->pages->error;
			if (likely((*slotp)->id == id))
				return slot;
		}
		if (likely(!line_passed(line)))
			return 0;
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * The size
 */

/* Gets an empty page at the table's end. */
static int add_page(struct index *index)
{
	u32 nr = index->pages->nr;
	void *page = core_page(index->pages, nr);

	if (!page)
		return index->pages->error;
	memset(page, 0, CORE_PAGE_SIZE);
	index->pages->nr = nr + 1;
	return 0;
}

/* Returns line @number, which may be the next one after the table's end. */
static struct index_line *line_extend(struct index *index, u32 number)
{
	if (unlikely(number >= lines_in_use(index)) && add_page(index))
		return NULL;
	return line_get(index, number);
}

static inline void line_fill(struct index_line *line, u32 hash, u32 slot)
{
	u32 i = __ffs64(line_free(line)) / 8;

	line->head |= (0x80ULL | (hash & 0x7f)) << i * 8;
	line->entry[i].hash = hash;
	line->entry[i].slot = slot;
}

/* Places an entry in line @number or a later one; all lines up to its place are
 * there.
 */
static inline void place(struct index *index, u32 number, u32 hash, u32 slot)
{
	struct index_line *line = line_get(index, number);

	while (likely(!core_broken(line)) && unlikely(!line_free(line))) {
		line_pass(line);
		line = line_get(index, ++number);
	}
	if (line)
		line_fill(line, hash, slot);
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
			place(index, index_scale(hash, index->to), hash, slot);
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
		return add_page(index);
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

	for (step = 0; step < MOVE && index->moved < index->lines; step++) {
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

static int resize(struct index *index)
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

/* Takes a bounded step towards a table of the right size. A missing page only
 * delays it.
 */
static inline int resize_step(struct index *index)
{
	if (likely(index->to == index->lines && index->nr < index->grow_at &&
		   index->nr >= index->shrink_below))
		return 0;
	return resize(index);
}

/* ------------------------------------------------------------------------
 * Additions and removals
 */

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
		err = add_page(index);
		if (err)
			return err;
		set_size(index, lines_of(1));
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

void index_add(struct index *index, u32 hash, u32 slot)
{
	u32 side = index->side;

	if (unlikely(!index_has_moved(index, index_scale(hash, index->lines))))
		side ^= INDEX_SIDE;
	if (likely(index->place))
		line_fill(index->place, hash, slot | side);
	else
		place(index, index_home(index, hash), hash, slot | side);
	index->nr++;
}

int index_prepare_remove(struct index *index, u32 hash, u32 slot)
{
	u32 number = index_home(index, hash);
	struct index_line *line = line_get(index, number);

	index->place = line;
	while (likely(line)) {
		index->entry = line_find_slot(line, hash, slot);
		if (likely(index->entry < INDEX_LINE_ENTRIES))
			return 0;
		index->place = NULL;
		line = line_get(index, ++number);
	}
	return index->pages->error;
}

/* Finds an entry that is not in its home line, and uncounts it on the way. */
static void find_place(struct index *index, u32 hash, u32 slot)
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

void index_remove(struct index *index, u32 hash, u32 slot)
{
	if (unlikely(!index->place))
		find_place(index, hash, slot);
	if (unlikely(!index->place))
		return;
	line_clear(index->place, index->entry);
	index->nr--;
	(void)resize_step(index);
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
