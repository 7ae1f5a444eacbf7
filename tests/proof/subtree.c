// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Subtree pages: the positions of a node's parent and children, for every
 * position of a heap of 2^31 nodes.
 */
#include "proof.h"
#include "core/bheap_subtree.c"

#define POSITIONS	(1U << 31)

/* Children are four in one group, at greater positions, and their parent is
 * this node.
 */
void subtree_children(void)
{
	u32 pos = nondet_u32(), i = nondet_u32();
	u64 child;

	assume(pos < POSITIONS && i < GROUP);
	child = child_of(pos);
	prove(child > pos);
	prove(child % GROUP == 0);
	prove(child % NODES + GROUP <= NODES);
	prove(child / NODES == pos / NODES || child % NODES == 0);
	if (child + i < POSITIONS)
		prove(parent_of(child + i) == pos);
	reached();
}

/* Every node but those of the first group has a parent, further back, and is
 * one of its children.
 */
void subtree_parent(void)
{
	u32 pos = nondet_u32(), parent;

	assume(pos >= GROUP && pos < POSITIONS);
	parent = parent_of(pos);
	prove(parent < pos);
	prove(child_of(parent) == pos / GROUP * GROUP);
	reached();
}

/* The proofs' own test: not every node has its children in its own page. */
void canary_subtree(void)
{
	u32 pos = nondet_u32();

	assume(pos < POSITIONS);
	prove(child_of(pos) / NODES == pos / NODES);
}
