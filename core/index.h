/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The index of a keyed queue: from a client's id to its slot.
 *
 * Linear probing in pages of 8-byte entries {hash, slot}. The id itself is in
 * the slot, which the caller reads anyway. The table doubles and halves a few
 * entries at a time. Meanwhile there are two tables, and each change moves some
 * entries from the old to the new. The hash is SipHash with the queue's secret,
 * so clients cannot choose ids that collide.
 */
#ifndef CORE_INDEX_H
#define CORE_INDEX_H

#include "core.h"
#include "pages.h"
#include "slots.h"

struct index_entry {
	u32 hash;
	u32 slot;	/* 0 = empty, INDEX_GONE = removed from the old table */
};

#define INDEX_GONE		0xffffffffU
#define INDEX_PER_PAGE		(CORE_PAGE_SIZE / (u32)sizeof(struct index_entry))

/**
 * struct index_table - one table
 * @pages: its pages; NULL on a plain queue
 * @bits: log2 of its entries; 0 = no table
 * @nr: entries in use
 *
 * A table that is being cleared already has its bits.
 */
struct index_table {
	struct core_pages *pages;
	u32 bits;
	u32 nr;
};

enum index_phase {
	INDEX_STABLE,		/* there is one table */
	INDEX_CLEARING,		/* the other table is being made, page by page */
	INDEX_MOVING,		/* the other table is being emptied into this one */
};

/**
 * struct index - two tables, one of them unused most of the time
 * @table: [@cur] takes additions
 * @cur: 0 or 1
 * @phase: the state of the other table
 * @done: progress in the other table
 * @seed: of the hash
 *
 * While clearing, @done counts the pages made. While moving, the other table's
 * entries below @done have been moved and count no more.
 */
struct index {
	struct index_table table[2];
	u32 cur;
	enum index_phase phase;
	u32 done;
	u64 seed[2];
};

u32 index_pages_max(u64 limit);
void index_init(struct index *index, struct core_pages *pages0,
		struct core_pages *pages1, const u64 seed[2]);
void index_reset(struct index *index);

/* Returns the hash of an id under this queue's secret. */
u32 index_hash(const struct index *index, u64 id);

/* Prefetches the first memory that a lookup of @hash reads. */
void index_prefetch(const struct index *index, u32 hash);

/* Returns the likely slot of @hash, for a prefetch; 0 = unknown. */
u32 index_guess(const struct index *index, u32 hash);

/* Returns the slot number of @id and sets *@slotp; 0 = none, or a page error.
 */
s64 index_find(struct index *index, struct slots *slots, u64 id, u32 hash,
	       struct slot **slotp);

/* Gets every page that the next index_add() of @hash needs: 0 or a page error.
 * Resizes the table by a bounded step when due.
 */
int index_prepare(struct index *index, u32 hash);

/* Adds an entry after index_prepare(); cannot fail. */
void index_add(struct index *index, u32 hash, u32 slot);

/* Gets every page that index_remove() of an entry needs: 0 or a page error. */
int index_prepare_remove(struct index *index, u32 hash, u32 slot);

/* Removes an existing entry; cannot fail after index_prepare_remove(). */
void index_remove(struct index *index, u32 hash, u32 slot);

/* Walks the index (unbounded): 0 or -EIO. */
int index_validate(struct index *index, struct slots *slots);

#endif /* CORE_INDEX_H */
