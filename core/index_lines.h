/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The lines of an index, for lookups (index_entries.c) and changes of size (index_resize.c).
 */
#ifndef CORE_INDEX_LINES_H
#define CORE_INDEX_LINES_H

#include "index.h"

static_assert(sizeof(struct index_line) == 64, "a cache line");

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

static inline u32 line_count_free(const struct index_line *line)
{
	/* The product's highest byte is the sum of all. */
	return (line_free(line) >> 7) * (INDEX_TAG_LOW | 1ULL << 56) >> 56;
}

/* index_resize.c */

/* Gets an empty page at the table's end. */
int index_add_page(struct index *index);

/* Gives an empty table its first page, with lines that are home to hashes. */
int index_resize_first(struct index *index);

/* Returns line @number, which may be the next one after the table's end. */
static inline struct index_line *line_extend(struct index *index, u32 number)
{
	if (unlikely(number >= lines_in_use(index)) && index_add_page(index))
		return NULL;
	return line_get(index, number);
}

/* Places an entry in line @number or a later one; all lines up to its place are
 * there.
 */
static inline void index_place(struct index *index, u32 number, u32 hash,
			       u32 slot)
{
	struct index_line *line = line_get(index, number);

	while (likely(!core_broken(line)) && unlikely(!line_free(line))) {
		line_pass(line);
		line = line_get(index, ++number);
	}
	if (line)
		line_fill(line, hash, slot);
}

#endif /* CORE_INDEX_LINES_H */
