// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The insertion heap: a heap within a page.
 */
#include "proof.h"
#include "core/insert_heap.h"

#define NODES	BHEAP_NODES_PER_PAGE

static u32 parent_of(u32 elem)
{
	return elem / INSERT_HEAP_GROUP - 1;
}

/* Parents and children, where insert_heap_up() and insert_heap_down() go. */
void insert_heap_family(void)
{
	u32 elem = nondet_u32(), i = nondet_u32(), child;

	assume(elem < 1U << 16 && i < INSERT_HEAP_GROUP);
	child = elem * INSERT_HEAP_GROUP + INSERT_HEAP_GROUP;
	prove(child > elem);
	prove(parent_of(child + i) == elem);
	if (elem >= INSERT_HEAP_GROUP)
		prove(parent_of(elem) < elem);
	reached();
}

static void any_heap(struct bheap_node *page, u32 nr)
{
	u32 i;

	any_nodes(page, nr, 0, NODES + 1);
	for (i = INSERT_HEAP_GROUP; i < nr; i++)
		assume(page[i].deadline >= page[parent_of(i)].deadline);
}

static void check(const struct bheap_node *page, u32 nr)
{
	struct node_set set = { 0, 0 };
	u32 i;

	for (i = INSERT_HEAP_GROUP; i < nr; i++)
		prove(page[i].deadline >= page[parent_of(i)].deadline);
	prove(insert_heap_is_ordered(page, nr));
	node_set_add(&set, page, nr);
	prove(set.nr == nr);
}

void insert_heap_push(void)
{
	struct bheap_node page[NODES], node;
	u32 nr = nondet_u32();

	assume(nr < NODES);
	any_heap(page, nr);
	any_nodes(&node, 1, nr, NODES + 1);
	insert_heap_up(page, nr, &node);
	check(page, nr + 1);
	reached();
}

void insert_heap_take(void)
{
	struct bheap_node page[NODES];
	u32 nr = nondet_u32(), elem = nondet_u32(), slot, i;

	assume(nr && nr <= NODES && elem < nr);
	any_heap(page, nr);
	slot = page[elem].slot;
	insert_heap_remove(page, elem, nr);
	check(page, nr - 1);
	for (i = 0; i + 1 < nr; i++)
		prove(page[i].slot != slot);
	reached();
}

void insert_heap_first(void)
{
	struct bheap_node page[NODES];
	u32 nr = nondet_u32(), least, i;

	assume(nr && nr <= NODES);
	any_heap(page, nr);
	least = insert_heap_least(page, 0, nr);
	prove(least < nr);
	for (i = 0; i < nr; i++)
		prove(page[least].deadline <= page[i].deadline);
	reached();
}
