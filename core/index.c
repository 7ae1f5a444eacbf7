// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The index of a keyed queue: see index.h.
 *
 * The top bits of an entry's hash give its home. So a table of twice the size
 * keeps the order, and a walk from end to end moves it. Probing is linear and
 * wraps around. The current table removes entries by shifting back, so its
 * probes end at the first empty entry. The old table only marks removed
 * entries, since it is about to be freed.
 *
 * Growth has two phases, with a step at each change. Clearing: the other
 * table's pages are emptied one by one while this one serves alone. Moving: the
 * new table takes additions, and the old one's entries follow. A step moves
 * MOVE entries or clears CLEAR pages. So an old table of S entries is empty
 * after S / MOVE changes, and a new one cleared after S / 512 at 4 KiB pages.
 * Both come long before the limits below are reached again.
 */
#include "index.h"
#include "siphash.h"

static_assert(sizeof(struct index_entry) == 8, "eight entries a cache line");

#define BITS_MIN	(CORE_PAGE_SHIFT - 3)	/* a table of one page */
#define BITS_MAX	31
#define MOVE		8U
#define CLEAR		2U

/* Steps that one change may catch up after pages were missing. */
#define CATCH_UP	64U

/* Grow when three quarters are in use, halve at an eighth. */
static inline bool table_crowded(const struct index_table *table)
{
	return table->nr >= (u64)3 << (table->bits - 2);
}

static inline bool table_sparse(const struct index_table *table)
{
	return table->bits > BITS_MIN && table->nr < 1U << (table->bits - 3);
}

static inline u32 table_mask(const struct index_table *table)
{
	return (1U << table->bits) - 1;
}

static inline u32 table_home(const struct index_table *table, u32 hash)
{
	return hash >> (32 - table->bits);
}

static inline u32 table_pages(const struct index_table *table)
{
	return 1U << (table->bits - BITS_MIN);
}

static inline struct index_entry *table_entry(struct index_table *table, u32 pos)
{
	struct index_entry *page = core_page(table->pages, pos / INDEX_PER_PAGE);

	return likely(page) ? page + pos % INDEX_PER_PAGE : NULL;
}

static inline struct index_table *current_table(struct index *index)
{
	return &index->table[index->cur];
}

static inline struct index_table *other_table(struct index *index)
{
	return &index->table[!index->cur];
}

/*
 * Refuses additions when 15 of 16 entries are taken, counting entries still to
 * be moved into the table. Happens only if pages for a larger table were
 * missing. At least one entry stays empty: probes end there.
 */
static bool current_full(struct index *index)
{
	u32 size = 1U << current_table(index)->bits;
	u32 nr = current_table(index)->nr;

	if (index->phase == INDEX_MOVING)
		nr += other_table(index)->nr;
	return nr >= size - size / 16 - 1;
}

/* Returns the bits of a table that holds @limit without being crowded. */
static u32 bits_for(u64 limit)
{
	u32 bits = BITS_MIN;

	while (bits < BITS_MAX && limit >= (u64)3 << (bits - 2))
		bits++;
	return bits;
}

u32 index_pages_max(u64 limit)
{
	return 1U << (bits_for(limit) - BITS_MIN);
}

void index_init(struct index *index, struct core_pages *pages0,
		struct core_pages *pages1, const u64 seed[2])
{
	index->table[0].pages = pages0;
	index->table[1].pages = pages1;
	index->seed[0] = seed[0];
	index->seed[1] = seed[1];
	index_reset(index);
}

static void table_reset(struct index_table *table)
{
	table->bits = 0;
	table->nr = 0;
	table->pages->nr = 0;
}

void index_reset(struct index *index)
{
	table_reset(&index->table[0]);
	table_reset(&index->table[1]);
	index->cur = 0;
	index->phase = INDEX_STABLE;
	index->done = 0;
}

u32 index_hash(const struct index *index, u64 id)
{
	return siphash_word(id, index->seed) >> 32;
}

static const struct index_entry *peek_home(const struct index *index, u32 hash)
{
	const struct index_table *table = &index->table[index->cur];
	const struct index_entry *page;
	u32 pos;

	if (!table->bits)
		return NULL;
	pos = table_home(table, hash);
	page = core_page_peek(table->pages, pos / INDEX_PER_PAGE);
	return page ? page + pos % INDEX_PER_PAGE : NULL;
}

void index_prefetch(const struct index *index, u32 hash)
{
	const struct index_entry *entry = peek_home(index, hash);

	if (entry)
		prefetchw(entry);
}

/* Reads only the cache line that index_prefetch() prefetched. */
u32 index_guess(const struct index *index, u32 hash)
{
	const struct index_entry *entry = peek_home(index, hash);

	if (!entry)
		return 0;
	do {
		if (!entry->slot)
			return 0;
		if (entry->hash == hash)
			return entry->slot;
		entry++;
	} while ((uintptr_t)entry % 64);
	return 0;
}

/* Probes one table for @id; entries below @from do not count. */
static s64 table_find(struct index_table *table, struct slots *slots, u64 id,
		      u32 hash, u32 from, struct slot **slotp)
{
	u32 mask = table_mask(table), pos = table_home(table, hash), probes;
	struct index_entry *entry;

	for (probes = 0; probes <= mask; probes++, pos = (pos + 1) & mask) {
		entry = table_entry(table, pos);
		if (unlikely(!entry))
			return table->pages->error;
		if (!entry->slot)
			return 0;
		if (entry->hash != hash || entry->slot == INDEX_GONE ||
		    pos < from)
			continue;
		*slotp = slots_get(slots, entry->slot);
		if (unlikely(!*slotp))
			return slots->pages->error;
		if ((*slotp)->id == id)
			return entry->slot;
	}
	return 0;
}

s64 index_find(struct index *index, struct slots *slots, u64 id, u32 hash,
	       struct slot **slotp)
{
	struct index_table *table = current_table(index);
	s64 slot;

	if (!table->bits)
		return 0;
	slot = table_find(table, slots, id, hash, 0, slotp);
	if (slot || index->phase != INDEX_MOVING)
		return slot;
	return table_find(other_table(index), slots, id, hash, index->done,
			  slotp);
}

/* Returns the entry for a new @hash. All pages from its home to there are in
 * memory.
 */
static struct index_entry *table_room(struct index_table *table, u32 hash)
{
	u32 mask = table_mask(table), pos = table_home(table, hash);
	struct index_entry *entry;

	do {
		entry = table_entry(table, pos);
		pos = (pos + 1) & mask;
	} while (entry && entry->slot);
	return entry;
}

/* Makes and empties one more page of @table. */
static int clear_page_of(struct index_table *table, u32 number)
{
	void *page = core_page(table->pages, number);

	if (!page)
		return table->pages->error;
	memset(page, 0, CORE_PAGE_SIZE);
	table->pages->nr = number + 1;
	return 0;
}

static int clear_step(struct index *index)
{
	struct index_table *other = other_table(index);
	u32 step;
	int err;

	for (step = 0; step < CLEAR; step++) {
		err = clear_page_of(other, index->done);
		if (err)
			return err;
		if (++index->done == table_pages(other)) {
			index->cur = !index->cur;
			index->phase = INDEX_MOVING;
			index->done = 0;
			break;
		}
	}
	return 0;
}

static int move_step(struct index *index)
{
	struct index_table *table = current_table(index);
	struct index_table *old = other_table(index);
	struct index_entry *from, *to;
	u32 step;

	for (step = 0; step < MOVE; step++) {
		from = table_entry(old, index->done);
		if (!from)
			return old->pages->error;
		if (from->slot && from->slot != INDEX_GONE) {
			to = table_room(table, from->hash);
			if (!to)
				return table->pages->error;
			*to = *from;
			table->nr++;
			old->nr--;
		}
		if (++index->done == 1U << old->bits) {
			core_broken(!old->nr);
			table_reset(old);
			index->phase = INDEX_STABLE;
			index->done = 0;
			break;
		}
	}
	return 0;
}

/* Takes a bounded step towards a table of the right size. A missing page only
 * delays it.
 */
static int resize_step(struct index *index)
{
	struct index_table *table = current_table(index);
	struct index_table *other = other_table(index);

	switch (index->phase) {
	case INDEX_STABLE:
		if (table_crowded(table) && table->bits < BITS_MAX &&
		    table_pages(table) * 2 <= table->pages->nr_max)
			other->bits = table->bits + 1;
		else if (table_sparse(table))
			other->bits = table->bits - 1;
		else
			return 0;
		index->phase = INDEX_CLEARING;
		index->done = 0;
		fallthrough;
	case INDEX_CLEARING:
		return clear_step(index);
	default:
		return move_step(index);
	}
}

int index_prepare(struct index *index, u32 hash)
{
	struct index_table *table = current_table(index);
	u32 steps;
	int err;

	if (unlikely(!table->bits)) {
		err = clear_page_of(table, 0);
		if (err)
			return err;
		table->bits = BITS_MIN;
	}
	err = resize_step(index);
	for (steps = 0; current_full(index) && !err; steps++) {
		if (steps == CATCH_UP)
			return -ENOMEM;
		err = resize_step(index);
	}
	if (unlikely(current_full(index)))
		return err;

	table = current_table(index);
	return table_room(table, hash) ? 0 : table->pages->error;
}

void index_add(struct index *index, u32 hash, u32 slot)
{
	struct index_table *table = current_table(index);
	struct index_entry *entry = table_room(table, hash);

	if (core_broken(entry))
		return;
	entry->hash = hash;
	entry->slot = slot;
	table->nr++;
}

/* Returns the position of an entry at or above @from, or a page error; beyond
 * the table if there is none.
 */
static s64 table_locate(struct index_table *table, u32 hash, u32 slot, u32 from)
{
	u32 mask = table_mask(table), pos = table_home(table, hash), probes;
	struct index_entry *entry;

	for (probes = 0; probes <= mask; probes++, pos = (pos + 1) & mask) {
		entry = table_entry(table, pos);
		if (unlikely(!entry))
			return table->pages->error;
		if (!entry->slot)
			break;
		if (entry->slot == slot && pos >= from)
			return pos;
	}
	return (s64)mask + 1;
}

/* Closes the gap at @hole by moving back the entries displaced over it (D.
 * Knuth, TAOCP vol. 3, 6.4, algorithm R).
 */
static void table_close(struct index_table *table, u32 hole)
{
	struct index_entry *gap = table_entry(table, hole), *entry;
	u32 mask = table_mask(table), pos;

	for (pos = (hole + 1) & mask; ; pos = (pos + 1) & mask) {
		entry = table_entry(table, pos);
		if (core_broken(entry) || !entry->slot)
			break;
		if (((pos - table_home(table, entry->hash)) & mask) <
		    ((pos - hole) & mask))
			continue;
		*gap = *entry;
		gap = entry;
		hole = pos;
	}
	gap->hash = 0;
	gap->slot = 0;
	table->nr--;
}

int index_prepare_remove(struct index *index, u32 hash, u32 slot)
{
	struct index_table *table = current_table(index);
	s64 pos = table_locate(table, hash, slot, 0);
	struct index_entry *entry;

	if (pos > table_mask(table) && index->phase == INDEX_MOVING)
		pos = table_locate(other_table(index), hash, slot, index->done);
	else
		/* Only entries before the next empty one may move back. */
		while (pos >= 0 && pos <= table_mask(table)) {
			entry = table_entry(table, pos);
			if (unlikely(!entry))
				return table->pages->error;
			if (!entry->slot)
				break;
			pos = (pos + 1) & table_mask(table);
		}
	return pos < 0 ? (int)pos : 0;
}

void index_remove(struct index *index, u32 hash, u32 slot)
{
	struct index_table *table = current_table(index);
	s64 pos = table_locate(table, hash, slot, 0);

	if (pos > table_mask(table) && index->phase == INDEX_MOVING) {
		table = other_table(index);
		pos = table_locate(table, hash, slot, index->done);
		if (core_broken(pos >= 0 && pos <= table_mask(table)))
			return;
		table_entry(table, pos)->slot = INDEX_GONE;
		table->nr--;
	} else {
		if (core_broken(pos >= 0 && pos <= table_mask(table)))
			return;
		table_close(table, pos);
	}
	(void)resize_step(index);
}

static int table_validate(struct index_table *table, struct index *index,
			  struct slots *slots, u32 from)
{
	struct index_entry *entry;
	struct slot *slot;
	u32 pos, nr = 0;
	u64 id;

	if (!table->bits)
		return table->nr ? -EIO : 0;
	for (pos = from; pos <= table_mask(table); pos++) {
		entry = table_entry(table, pos);
		if (!entry)
			return table->pages->error;
		if (!entry->slot || entry->slot == INDEX_GONE)
			continue;
		nr++;
		slot = slots_get(slots, entry->slot);
		if (!slot)
			return slots->pages->error ?: -EIO;
		id = slot->id;
		if (index_hash(index, id) != entry->hash ||
		    index_find(index, slots, id, entry->hash, &slot) !=
		    entry->slot)
			return -EIO;
	}
	return nr == table->nr ? 0 : -EIO;
}

int index_validate(struct index *index, struct slots *slots)
{
	int err = table_validate(current_table(index), index, slots, 0);

	if (err || index->phase != INDEX_MOVING)
		return err;
	return table_validate(other_table(index), index, slots, index->done);
}
