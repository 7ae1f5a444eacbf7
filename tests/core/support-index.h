/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An index with its slots and pages, for the programs about the index. */
#ifndef TESTS_CORE_SUPPORT_INDEX_H
#define TESTS_CORE_SUPPORT_INDEX_H

#include "support.h"

#define INDEX_PER_PAGE	(INDEX_LINES_PER_PAGE * INDEX_LINE_ENTRIES)

/* Entries with which a table of @lines takes no other. */
#define FULL(lines)	((lines) * INDEX_LINE_ENTRIES - \
			 (lines) * INDEX_LINE_ENTRIES / 16)

/* Enough for a table of several pages. */
#define LIMIT	(INDEX_PER_PAGE > 1024 ? 4 * INDEX_PER_PAGE : 4096U)

/**
 * struct subject - an index, its slots, and the expected contents
 * @ids: by slot number; 0 = free
 * @hashes: likewise; as given to the index
 * @resizing: changes during which the table grew or shrank
 * @looked_up: the last addition came right after a lookup
 */
struct subject {
	struct index index;
	struct slots slots;
	struct test_faults faults, slot_faults;
	struct test_pages table, run;
	u64 ids[LIMIT + 1];
	u32 hashes[LIMIT + 1];
	u32 nr;
	u64 random;
	u32 resizing;
	bool looked_up;
};

void subject_init(struct subject *subject);
void subject_free(struct subject *subject);

/* Takes up to @nr random pages of each run out of memory. */
void subject_evict(struct subject *subject, u32 nr);

/* Adds @id, which is new, under @hash; returns index_prepare()'s answer. */
int subject_try_add(struct subject *subject, u64 id, u32 hash);
/* Add @id, under @hash or its own; the index must take it. */
void subject_add(struct subject *subject, u64 id, u32 hash);
void subject_add_id(struct subject *subject, u64 id);

/* Removes slot @nr; returns index_prepare_remove()'s answer. */
int subject_try_remove(struct subject *subject, u32 nr);

/* Moves what slot @from has to a free one; returns index_prepare_remove()'s answer. */
int subject_try_move(struct subject *subject, u32 from);

/* Checks that a lookup of @id returns slot @nr; 0 = none. */
void subject_find(struct subject *subject, u64 id, u32 hash, u32 nr);
/* Checks that a lookup of every id returns its slot. */
void subject_find_all(struct subject *subject);
void subject_validate(struct subject *subject);

static inline bool subject_is_resizing(const struct subject *subject)
{
	return subject->index.to != subject->index.lines;
}

/* Returns a random slot in use. */
u32 subject_any_slot(struct subject *subject);

#endif /* TESTS_CORE_SUPPORT_INDEX_H */
