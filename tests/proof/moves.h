/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memcpy() and memmove() for core/'s uses, node by node: CBMC's own work by
 * bytes and make formulas many times as large. Included before the code that
 * uses them.
 */
#ifndef TESTS_PROOF_MOVES_H
#define TESTS_PROOF_MOVES_H

#include "proof.h"

#define MOVES_MAX	(2 * BHEAP_NODES_PER_PAGE)

static inline void *move_nodes(void *to, const void *from, size_t size)
{
	const struct bheap_node *in = from;
	struct bheap_node kept[MOVES_MAX], *out = to;
	u32 i, nr = size / sizeof(*in);

	prove(size % sizeof(*in) == 0 && nr <= MOVES_MAX);
	for (i = 0; i < nr; i++)
		kept[i] = in[i];
	for (i = 0; i < nr; i++)
		out[i] = kept[i];
	return to;
}

static inline void *copy_nodes(void *to, const void *from, size_t size)
{
	prove(!__CPROVER_same_object(to, from) ||
	      (const char *)to + size <= (const char *)from ||
	      (const char *)from + size <= (const char *)to);
	return move_nodes(to, from, size);
}

#define memmove	move_nodes
#define memcpy	copy_nodes

#endif /* TESTS_PROOF_MOVES_H */
