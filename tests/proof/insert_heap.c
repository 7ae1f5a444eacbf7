// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Arrivals: the heap within a page.
 */
#include "proof.h"
#include "core/insert_heap.h"

#define NODES	BHEAP_NODES_PER_PAGE

static u32 parent_of(u32 elem)
{
	return elem / ARRIVALS_GROUP - 1;
}

/* The places that arrivals_up() and arrivals_down() go to, of any page. */
void arrivals_family(void)
{
	u32 elem = nondet_u32(), i = nondet_u32(), child;

	assume(elem < 1U << 16 && i < ARRIVALS_GROUP);
	child = elem * ARRIVALS_GROUP + ARRIVALS_GROUP;
	prove(child > elem);
	prove(parent_of(child + i) == elem);
	if (elem >= ARRIVALS_GROUP)
		prove(parent_of(elem) < elem);
	reached();
}

static void any_heap(struct bheap_node *page, u32 nr)
{
	u32 i;

	any_nodes(page, nr, 0, NODES + 1);
	for (i = ARRIVALS_GROUP; i < nr; i++)
		assume(page[i].deadline >= page[parent_of(i)].deadline);
}

static void check(const struct bheap_node *page, u32 nr)
{
	struct census census = { 0, 0 };
	u32 i;

	for (i = ARRIVALS_GROUP; i < nr; i++)
		prove(page[i].deadline >= page[parent_of(i)].deadline);
	prove(arrivals_is_heap(page, nr));
	census_add(&census, page, nr);
	prove(census.nr == nr);
}

void arrivals_push(void)
{
	struct bheap_node page[NODES], node;
	u32 nr = nondet_u32();

	assume(nr < NODES);
	any_heap(page, nr);
	any_nodes(&node, 1, nr, NODES + 1);
	arrivals_up(page, nr, &node);
	check(page, nr + 1);
	reached();
}

void arrivals_take(void)
{
	struct bheap_node page[NODES];
	u32 nr = nondet_u32(), elem = nondet_u32(), slot, i;

	assume(nr && nr <= NODES && elem < nr);
	any_heap(page, nr);
	slot = page[elem].slot;
	arrivals_remove(page, elem, nr);
	check(page, nr - 1);
	for (i = 0; i + 1 < nr; i++)
		prove(page[i].slot != slot);
	reached();
}

void arrivals_first(void)
{
	struct bheap_node page[NODES];
	u32 nr = nondet_u32(), least, i;

	assume(nr && nr <= NODES);
	any_heap(page, nr);
	least = arrivals_least(page, 0, nr);
	prove(least < nr);
	for (i = 0; i < nr; i++)
		prove(page[least].deadline <= page[i].deadline);
	reached();
}
