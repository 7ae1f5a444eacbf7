/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The index of a keyed queue: from a client's id to its slot. A plain queue's has
 * only the timers that are no longer in the slot of their id (compact.c).
 *
 * Open addressing over cache lines. A line has seven entries {hash, slot} and a
 * word of their tags, so that one comparison finds an entry or a free place. The
 * same word counts the entries that found no place here and went on to a later
 * line (an F14 table's "outbound overflow count", N. Bronson and X. Shi, 2019). A
 * lookup ends at the first line without such entries. A removal leaves no mark.
 *
 * The table grows by half and shrinks to a third in place, a few lines at each
 * change, without a second table. A line's place is its hash scaled to the size,
 * so a larger table has the same order, and lines can move one after the other.
 * The id itself is in the slot, which the caller reads anyway. The hash is
 * SipHash with the queue's secret, so clients cannot choose ids that collide.
 */
#ifndef CORE_INDEX_H
#define CORE_INDEX_H

#include "core.h"
#include "pages.h"
#include "siphash.h"
#include "slots.h"

#define INDEX_LINE_ENTRIES	7U

/**
 * struct index_line - one cache line
 * @head: a byte for each entry, 0 or its tag; above them the count
 * @entry: an entry whose tag is 0 is free
 *
 * The count, INDEX_PASSED, is of entries that belong to this line or an earlier
 * one and are in a later one. At 255 it stays.
 */
struct index_line {
	u64 head;
	struct {
		u32 hash;
		u32 slot;	/* and INDEX_SIDE */
	} entry[INDEX_LINE_ENTRIES];
};

#define INDEX_LINES_PER_PAGE	(CORE_PAGE_SIZE / (u32)sizeof(struct index_line))

#define INDEX_TAG_LOW		0x0001010101010101ULL
#define INDEX_TAG_HIGH		0x0080808080808080ULL
#define INDEX_PASSED_SHIFT	56

/* The bit of an entry's @slot that tells by which size it was placed. */
#define INDEX_SIDE		0x80000000U

/**
 * struct index - the table and its change of size
 * @pages: its pages, whose lines are all in use
 * @nr: entries
 * @lines: lines that are home to hashes, before the change of size
 * @to: after it; the same if there is none
 * @moved: progress of the change
 * @shrink_below: entries with which the table shrinks
 * @grow_at: entries with which it grows
 * @full_at: entries with which it takes no other
 * @side: INDEX_SIDE of entries placed by @to, 0 or INDEX_SIDE
 * @place: the line found by the last lookup or preparation, NULL if not the entry's
 *	home
 * @entry: which of that line's
 * @seed: of the hash
 *
 * Hashes are placed by @to from line @moved on while the table grows, and before
 * it while the table shrinks. Lines beyond @lines and @to are home to no hash but
 * take entries of the last lines.
 */
struct index {
	struct core_pages *pages;
	u32 nr;
	u32 lines;
	u32 to;
	u32 moved;
	u32 shrink_below;
	u32 grow_at;
	u32 full_at;
	u32 side;
	u32 entry;
	struct index_line *place;
	u64 seed[2];
};

u32 index_pages_max(u64 limit);
void index_init(struct index *index, struct core_pages *pages,
		const u64 seed[2]);
void index_reset(struct index *index);

/* Returns the hash of an id under this queue's secret. */
static inline u32 index_hash(const struct index *index, u64 id)
{
	return siphash_word(id, index->seed) >> 32;
}

/* Returns which of @lines a hash is at home in: they have its order. */
static inline u32 index_scale(u32 hash, u32 lines)
{
	return (u64)hash * lines >> 32;
}

/* Returns whether the hashes of @line are placed by the size after the change. */
static inline bool index_has_moved(const struct index *index, u32 line)
{
	return index->to < index->lines ? line < index->moved :
					  line >= index->moved;
}

/* Returns the line where the search for @hash begins. */
static inline u32 index_home(const struct index *index, u32 hash)
{
	u32 line = index_scale(hash, index->lines);

	if (unlikely(index->to != index->lines) && index_has_moved(index, line))
		line = index_scale(hash, index->to);
	return line;
}

/* Returns a bit for each entry of @hash's tag, the highest of its byte. A tag has
 * its own highest bit set, so it never matches a free entry.
 */
static inline u64 index_match(u64 head, u32 hash)
{
	u64 differ = head ^ (INDEX_TAG_HIGH | (hash & 0x7f) * INDEX_TAG_LOW);

	return ~(((differ & ~INDEX_TAG_HIGH) + 0x007f7f7f7f7f7f7fULL) | differ) &
	       INDEX_TAG_HIGH;
}

/* Returns a bit for each free entry. */
static inline u64 line_free(const struct index_line *line)
{
	return ~line->head & INDEX_TAG_HIGH;
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

static inline void line_fill(struct index_line *line, u32 hash, u32 slot)
{
	u32 i = __ffs64(line_free(line)) / 8;

	line->head |= (0x80ULL | (hash & 0x7f)) << i * 8;
	line->entry[i].hash = hash;
	line->entry[i].slot = slot;
}

/* Returns the line where the search for @hash begins, or NULL if it is not in memory.
 */
static inline struct index_line *index_peek(const struct index *index, u32 hash)
{
	u32 number = index_home(index, hash);
	struct index_line *page;

	if (unlikely(!index->pages->nr))
		return NULL;
	page = core_page_peek(index->pages, number / INDEX_LINES_PER_PAGE);
	return likely(page) ? page + number % INDEX_LINES_PER_PAGE : NULL;
}

/* Prefetches that line, and returns it. */
static inline const struct index_line *
index_prefetch(const struct index *index, u32 hash)
{
	const struct index_line *line = index_peek(index, hash);

	if (likely(line))
		prefetchw(line);
	return line;
}

/* Returns the likely slot of @hash; 0 = unknown. @line is what index_prefetch()
 * returned in the same call of the core. The slot's id tells if it is the right one.
 */
static inline u32 index_guess(const struct index_line *line, u32 hash)
{
	u64 match = line ? index_match(line->head, hash) : 0;
	u32 i;

	if (!match)
		return 0;
	i = __ffs64(match) / 8;
	return line->entry[i].hash == hash ?
	       line->entry[i].slot & ~INDEX_SIDE : 0;
}

/* Returns the slot number of @id and sets *@slotp; 0 = none, or a page error.
 */
s64 index_find(struct index *index, struct slots *slots, u64 id, u32 hash,
	       struct slot **slotp);

/* Gives a table that never had an entry the size for @nr of them. It does not shrink
 * until a call with 0, or until it has grown. Returns 0 or a page error, after which the
 * table is as index_reset() leaves it.
 */
int index_reserve(struct index *index, u64 nr);

/* Takes a bounded step of a change of size, which it begins if none is under way. A
 * missing page only delays it.
 */
int index_resize(struct index *index);

/* Returns whether the table has the size for its entries, and does not change it. */
static inline bool index_has_size(const struct index *index)
{
	return index->to == index->lines && index->nr < index->grow_at &&
	       index->nr >= index->shrink_below;
}

/* Gets every page that the index_add() of @hash that follows needs: 0 or a page
 * error. Resizes the table by a bounded step when due.
 */
int index_prepare(struct index *index, u32 hash);

/* The same, right after the index_find() that found no such id: it does not look at
 * the lines again.
 */
static inline int index_prepare_absent(struct index *index, u32 hash)
{
	if (likely(index->place && index_has_size(index) &&
		   index->nr < index->full_at))
		return 0;
	return index_prepare(index, hash);
}

/* Does the same, and the lookup before it, where a glance at the home line tells that
 * no such id is there. Returns false if it does not.
 */
static inline bool index_prepare_new(struct index *index, u32 hash)
{
	struct index_line *line = index_peek(index, hash);

	if (unlikely(!line || index_match(line->head, hash) ||
		     line->head >> INDEX_PASSED_SHIFT || !line_free(line) ||
		     !index_has_size(index) || index->nr >= index->full_at))
		return false;
	index->place = line;
	return true;
}

/* Adds an entry where @place is NULL, or while the size changes. */
void index_add_elsewhere(struct index *index, u32 hash, u32 slot);

/* Adds an entry after index_prepare(); cannot fail. */
static inline void index_add(struct index *index, u32 hash, u32 slot)
{
	if (likely(index->place && index->to == index->lines))
		line_fill(index->place, hash, slot | index->side);
	else
		index_add_elsewhere(index, hash, slot);
	index->nr++;
}

/* As index_prepare_remove(), for an entry in any line. */
int index_prepare_elsewhere(struct index *index, u32 hash, u32 slot);

/* Gets every page that the index_remove() of an entry that follows needs: 0 or a
 * page error.
 */
static inline int index_prepare_remove(struct index *index, u32 hash, u32 slot)
{
	struct index_line *line = index_peek(index, hash);

	if (likely(line)) {
		index->place = line;
		index->entry = line_find_slot(line, hash, slot);
		if (likely(index->entry < INDEX_LINE_ENTRIES))
			return 0;
	}
	return index_prepare_elsewhere(index, hash, slot);
}

/* Finds an entry that is not in its home line, and uncounts it on the way. */
void index_find_elsewhere(struct index *index, u32 hash, u32 slot);

/* Removes an existing entry; cannot fail after index_prepare_remove(). */
static inline void index_remove(struct index *index, u32 hash, u32 slot)
{
	if (unlikely(!index->place))
		index_find_elsewhere(index, hash, slot);
	if (unlikely(!index->place))
		return;
	line_clear(index->place, index->entry);
	index->nr--;
	if (unlikely(!index_has_size(index)))
		(void)index_resize(index);
}

/* Lets an existing entry refer to slot @to; cannot fail after
 * index_prepare_remove().
 */
void index_renumber(struct index *index, u32 hash, u32 slot, u32 to);

/* Walks the index (unbounded): 0 or -EIO. */
int index_validate(struct index *index, struct slots *slots);

#endif /* CORE_INDEX_H */
