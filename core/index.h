/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The index of a keyed queue: from a client's id to its slot.
 *
 * Linear probing in pages of 8-byte entries {hash, slot}; the id itself is in
 * the slot, which the caller touches anyway. The table doubles and halves a
 * few entries at a time: while it does, there are two, and each change moves
 * some from the old to the new. The hash is SipHash with the queue's secret,
 * so that nobody can choose ids that collide.
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
 * @pages: where it is; NULL on a plain queue
 * @bits: it has 2^bits entries; 0 = there is no table (one being cleared has
 *	its bits set already)
 * @nr: entries in use
 */
struct index_table {
	struct core_pages *pages;
	u32 bits;
	u32 nr;
};

enum index_phase {
	INDEX_STABLE,		/* there is one table */
	INDEX_CLEARING,		/* the other is being made, page by page */
	INDEX_MOVING,		/* the other is being emptied into this one */
};

/**
 * struct index - two tables, of which the second is unused most of the time
 * @table: [@cur] takes what is new
 * @cur: 0 or 1
 * @phase: what the other table is doing
 * @done: clearing: pages of the other table made so far; moving: entries of
 *	the other table below this have been moved and count no more
 * @seed: of the hash
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

/* The hash of an id under this queue's secret. */
u32 index_hash(const struct index *index, u64 id);

/* Bring what a lookup of @hash begins with on its way to the cache. */
void index_prefetch(const struct index *index, u32 hash);

/* A slot that may be that of @hash, for a prefetch: 0 = do not know. */
u32 index_guess(const struct index *index, u32 hash);

/* The slot number of @id and *@slotp its slot, 0 = none, or a page error. */
s64 index_find(struct index *index, struct slots *slots, u64 id, u32 hash,
	       struct slot **slotp);

/* Get every page that the next index_add() of @hash needs: 0 or a page error.
 * Grows the table by a bounded step where it is time to.
 */
int index_prepare(struct index *index, u32 hash);

/* Add what index_prepare() made sure of; cannot fail. */
void index_add(struct index *index, u32 hash, u32 slot);

/* Get every page that index_remove() of an entry needs: 0 or a page error. */
int index_prepare_remove(struct index *index, u32 hash, u32 slot);

/* Remove an entry that is there; cannot fail after index_prepare_remove(). */
void index_remove(struct index *index, u32 hash, u32 slot);

/* Walk the index (unbounded): 0 or -EIO. */
int index_validate(struct index *index, struct slots *slots);

#endif /* CORE_INDEX_H */
