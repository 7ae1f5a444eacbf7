// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs: merging and sorting, with pages of a few nodes and anything in them.
 */
#include "proof.h"
#include "moves.h"
#include "core/runs.h"

#define NODES	BHEAP_NODES_PER_PAGE
#define BOTH	(2 * NODES)

/* CBMC follows no pointer through arithmetic on its bits: this replaces
 * runs_either(). The proof runs_either_is_plain shows that they are equal.
 */
const struct bheap_node *plain_either(const struct bheap_node *a,
				      const struct bheap_node *b, bool is_b)
{
	return is_b ? b : a;
}

void runs_either_is_plain(void)
{
	unsigned long x = nondet_u64(), y = nondet_u64();
	bool is_b = nondet_u32() & 1;

	prove((unsigned long)runs_either((const void *)x, (const void *)y,
					 is_b) == (is_b ? y : x));
	reached();
}

/* Two runs of any length up to a page: the lesser half in order in one place,
 * the greater half in order in the other, each node once.
 */
void runs_merge_any(void)
{
	struct bheap_node a[NODES], b[NODES], least[NODES], greatest[NODES];
	struct node_set set = { 0, 0 };
	u32 nr = nondet_u32();

	assume(nr && nr <= NODES);
	any_nodes(a, NODES, 0, BOTH);
	any_nodes(b, NODES, NODES, BOTH);
	assume(is_sorted(a, nr) && is_sorted(b, nr));
	runs_merge(a, b, nr, least, greatest);
	prove(is_sorted(least, nr) && is_sorted(greatest, nr));
	prove(least[nr - 1].deadline <= greatest[0].deadline);
	node_set_add(&set, least, nr);
	node_set_add(&set, greatest, nr);
	prove(set.nr == 2 * nr);
	reached();
}

/* Of equals, those of the first run are the lesser. */
void runs_merge_equals(void)
{
	struct bheap_node a[NODES], b[NODES], both[BOTH];
	u32 i;

	any_nodes(a, NODES, 0, BOTH);
	any_nodes(b, NODES, NODES, BOTH);
	assume(is_sorted(a, NODES) && is_sorted(b, NODES));
	runs_merge(a, b, NODES, both, both + NODES);
	/* Slots grow along each run, and from the first to the second. */
	for (i = 1; i < BOTH; i++)
		prove(both[i - 1].deadline < both[i].deadline ||
		      (both[i - 1].deadline == both[i].deadline &&
		       both[i - 1].slot < both[i].slot));
	reached();
}

/* Live nodes of a swept page join the run, as in the sweep: the greatest beyond
 * a page fill another, the rest is merged in the run's place.
 */
void runs_merge_greatest_in_place(void)
{
	struct bheap_node page[NODES], other[NODES], surplus[NODES], *run;
	u32 run_nr = nondet_u32(), nr = nondet_u32(), i, j, all;
	struct node_set set = { 0, 0 };

	assume(run_nr <= NODES && nr <= NODES && run_nr + nr > NODES);
	any_nodes(page, NODES, 0, BOTH);
	any_nodes(other, NODES, NODES, BOTH);
	run = page + NODES - run_nr;
	assume(is_sorted(run, run_nr) && is_sorted(other, nr));
	i = run_nr;
	j = nr;
	all = run_nr + nr - NODES;
	runs_merge_greatest(run, &i, other, &j, NODES, surplus + NODES);
	runs_merge_greatest(run, &i, other, &j, all, page + NODES);
	prove(!i && !j);
	run = page + NODES - all;
	prove(is_sorted(run, all) && is_sorted(surplus, NODES));
	prove(page[NODES - 1].deadline <= surplus[0].deadline);
	node_set_add(&set, run, all);
	node_set_add(&set, surplus, NODES);
	prove(set.nr == run_nr + nr);
	reached();
}

void runs_sort_any_four(void)
{
	struct bheap_node from[4], to[4];
	struct node_set set = { 0, 0 };

	any_nodes(from, 4, 0, 4);
	runs_sort_four(from, to);
	prove(is_sorted(to, 4));
	node_set_add(&set, to, 4);
	prove(set.nr == 4);
	reached();
}

void runs_sort_any_page(void)
{
	struct bheap_node page[NODES], scratch[NODES], *sorted;
	struct node_set set = { 0, 0 };

	any_nodes(page, NODES, 0, NODES);
	sorted = runs_sort_page(page, scratch);
	prove(sorted == page || sorted == scratch);
	prove(is_sorted(sorted, NODES));
	node_set_add(&set, sorted, NODES);
	prove(set.nr == NODES);
	reached();
}

/* The proofs' own test: runs that are not sorted make none that is. */
void canary_runs(void)
{
	struct bheap_node a[NODES], b[NODES], least[NODES], greatest[NODES];

	any_nodes(a, NODES, 0, BOTH);
	any_nodes(b, NODES, NODES, BOTH);
	runs_merge(a, b, NODES, least, greatest);
	prove(is_sorted(least, NODES));
}
