/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the proofs. A proof is a function without arguments that CBMC takes
 * as main: it makes every input arbitrary, assumes the code's preconditions,
 * calls it, and asserts its guarantees.
 */
#ifndef TESTS_PROOF_PROOF_H
#define TESTS_PROOF_PROOF_H

#include "core/bheap.h"

#define assume(x)	__CPROVER_assume(x)

/* Each proof ends with reached(). Compiled with REACH it asserts the contrary,
 * which must fail: else the assumptions are contradictory, and the proof is
 * vacuous.
 */
#ifdef REACH
#define prove(x)	((void)(x))
#define reached()	__CPROVER_assert(0, "not reached")
#else
#define prove(x)	__CPROVER_assert(x, #x)
#define reached()	((void)0)
#endif

/* Not defined anywhere: to CBMC, any value. */
u32 nondet_u32(void);
u64 nondet_u64(void);

/*
 * Makes a node for each slot number below @nr, with any deadline. The code only
 * compares deadlines of nodes, so deadlines below @nr cover every order of @nr
 * nodes.
 */
static inline void any_nodes(struct bheap_node *node, u32 nr, u32 slot, u32 all)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		node[i].deadline = nondet_u64();
		assume(node[i].deadline < all);
		node[i].slot = slot + i;
		node[i].stamp = 7 * (slot + i) + 1;
	}
}

static inline bool is_sorted(const struct bheap_node *node, u32 nr)
{
	u32 i;

	for (i = 1; i < nr; i++)
		if (node[i].deadline < node[i - 1].deadline)
			return false;
	return true;
}

/* Sums which nodes are among some: each slot once is each node once. */
struct node_set {
	u64 seen;
	u32 nr;
};

static inline void node_set_add(struct node_set *set,
				const struct bheap_node *node, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		prove(node[i].slot < 64);
		prove(node[i].stamp == 7 * node[i].slot + 1);
		prove(!(set->seen >> node[i].slot & 1));
		set->seen |= 1ULL << node[i].slot;
		set->nr++;
	}
}

#endif /* TESTS_PROOF_PROOF_H */
