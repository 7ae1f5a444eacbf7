// SPDX-License-Identifier: LGPL-2.1-or-later
/* An index with its slots and pages, and the calls of its tests. */
#include "support-index.h"

void subject_init(struct subject *subject)
{
	const u64 seed[2] = { test_seed, ~test_seed };

	memset(subject, 0, sizeof(*subject));
	subject->random = test_seed;
	test_pages_init(&subject->table, index_pages_max(LIMIT),
			&subject->faults, test_seed);
	test_pages_init(&subject->run, slots_pages_max(LIMIT),
			&subject->slot_faults, test_seed + 2);
	slots_init(&subject->slots, &subject->run.pages);
	/* It needs no memory that is cleared. */
	memset(&subject->index, 0xff, sizeof(subject->index));
	index_init(&subject->index, &subject->table.pages, seed);
}

void subject_free(struct subject *subject)
{
	test_pages_free(&subject->table);
	test_pages_free(&subject->run);
}

void subject_evict(struct subject *subject, u32 nr)
{
	test_pages_trim(&subject->table);
	test_pages_evict(&subject->table, nr);
	test_pages_evict(&subject->run, nr);
}

/* Prepares an addition, every other time as an ARM does: right after a lookup. */
static int prepare(struct subject *subject, u64 id, u32 hash)
{
	struct slot *slot = NULL;
	s64 found;

	subject->looked_up = !subject->looked_up;
	if (!subject->looked_up)
		return index_prepare(&subject->index, hash);
	found = index_find(&subject->index, &subject->slots, id, hash, &slot);
	assert_true(found <= 0);
	return found ?: index_prepare_absent(&subject->index, hash);
}

int subject_try_add(struct subject *subject, u64 id, u32 hash)
{
	struct slot *slot = NULL;
	u32 nr = slots_reserve(&subject->slots, &slot);
	int err;

	assert_in_range(nr, 1, LIMIT);
	err = prepare(subject, id, hash);
	if (err)
		return err;
	slots_commit(&subject->slots, nr, slot);
	slot->id = id;
	slot->tag = SLOT_ARMED;
	index_add(&subject->index, hash, nr);
	subject->ids[nr] = id;
	subject->hashes[nr] = hash;
	subject->nr++;
	subject->resizing += subject_is_resizing(subject);
	return 0;
}

void subject_add(struct subject *subject, u64 id, u32 hash)
{
	assert_int_equal(subject_try_add(subject, id, hash), 0);
}

void subject_add_id(struct subject *subject, u64 id)
{
	subject_add(subject, id, index_hash(&subject->index, id));
}

int subject_try_remove(struct subject *subject, u32 nr)
{
	int err = index_prepare_remove(&subject->index, subject->hashes[nr],
				       nr);
	struct slot *slot;

	if (err)
		return err;
	index_remove(&subject->index, subject->hashes[nr], nr);
	slot = slots_get(&subject->slots, nr);
	assert_non_null(slot);
	slots_put(&subject->slots, nr, slot);
	subject->ids[nr] = 0;
	subject->nr--;
	subject->resizing += subject_is_resizing(subject);
	return 0;
}

int subject_try_move(struct subject *subject, u32 from)
{
	struct slot *old, *slot = NULL;
	u32 to = slots_reserve(&subject->slots, &slot);
	u32 hash = subject->hashes[from];
	int err;

	assert_in_range(to, 1, LIMIT);
	err = index_prepare_remove(&subject->index, hash, from);
	if (err)
		return err;
	old = slots_get(&subject->slots, from);
	assert_non_null(old);
	slots_commit(&subject->slots, to, slot);
	slot->id = old->id;
	slot->tag = SLOT_ARMED;
	index_renumber(&subject->index, hash, from, to);
	slots_put(&subject->slots, from, old);
	subject->ids[to] = subject->ids[from];
	subject->hashes[to] = hash;
	subject->ids[from] = 0;
	return 0;
}

void subject_find(struct subject *subject, u64 id, u32 hash, u32 nr)
{
	struct slot *slot = NULL;

	assert_int_equal(index_find(&subject->index, &subject->slots, id, hash,
				    &slot), nr);
	if (nr)
		assert_true(slot && slot->id == id);
}

void subject_find_all(struct subject *subject)
{
	u32 nr;

	for (nr = 1; nr <= LIMIT; nr++)
		if (subject->ids[nr])
			subject_find(subject, subject->ids[nr],
				     subject->hashes[nr], nr);
}

void subject_validate(struct subject *subject)
{
	assert_int_equal(index_validate(&subject->index, &subject->slots), 0);
}

u32 subject_any_slot(struct subject *subject)
{
	u32 nr;

	do {
		nr = 1 + test_below(&subject->random, LIMIT);
	} while (!subject->ids[nr]);
	return nr;
}
