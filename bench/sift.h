/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A heap in one array, each node with D children. With two it is the binary
 * heap of J. W. J. Williams, "Algorithm 232: Heapsort", CACM 7 (1964). With
 * four it is as in libev: a level costs one cache line, and there are half as
 * many levels. The first is element D - 1, so that siblings share a line. A
 * moving node leaves a hole, and the hole moves; no nodes are exchanged.
 *
 * The includer defines SIFT_HEAP, SIFT_NODE with a member deadline, and
 * sift_moved(), which gets each node that has a new position.
 *
 * @d and @branch are constants: the compiler makes a copy for each.
 */
#ifndef BENCH_SIFT_H
#define BENCH_SIFT_H

#include <stdbool.h>
#include <stdint.h>

static inline void sift_moved(SIFT_HEAP *heap, uint32_t pos,
			      const SIFT_NODE *node);

static inline uint32_t sift_first(uint32_t d)
{
	return d - 1;
}

static inline uint32_t sift_parent(uint32_t pos, uint32_t d)
{
	return pos / d + d - 2;
}

static inline uint32_t sift_child(uint32_t pos, uint32_t d)
{
	return d * (pos - d + 2);
}

static inline bool sift_less(const SIFT_NODE *nodes, uint32_t a, uint32_t b)
{
	return nodes[a].deadline < nodes[b].deadline;
}

/* Returns the lesser of two by arithmetic, without a branch. */
static inline uint32_t sift_lesser(const SIFT_NODE *nodes, uint32_t a,
				   uint32_t b)
{
	return a + (-(uint32_t)sift_less(nodes, b, a) & (b - a));
}

/* Returns the least of the children from @child on and before @end. A branch is
 * mispredicted half of the time, but allows speculation on the predicted path.
 * Without it the heap is faster in the cache. Of two, a missing one is @end:
 * the former last node, which is not less.
 */
static inline uint32_t sift_least(const SIFT_NODE *nodes, uint32_t child,
				  uint32_t end, uint32_t d, bool branch)
{
	uint32_t least = child, i;

	if (d == 2 && !branch)
		return child + sift_less(nodes, child + 1, child);
	if (d == 2)
		return child + 1 < end && sift_less(nodes, child + 1, child) ?
		       child + 1 : child;
	if (!branch && child + 3 < end)
		return sift_lesser(nodes, sift_lesser(nodes, child, child + 1),
				   sift_lesser(nodes, child + 2, child + 3));
	if (end > child + d)
		end = child + d;
	for (i = child + 1; i < end; i++)
		if (sift_less(nodes, i, least))
			least = i;
	return least;
}

static inline void sift_put(SIFT_HEAP *heap, SIFT_NODE *nodes, uint32_t pos,
			    const SIFT_NODE *node)
{
	nodes[pos] = *node;
	sift_moved(heap, pos, node);
}

/* Puts @node in its position on the way up from the hole @pos. */
static inline void sift_up(SIFT_HEAP *heap, SIFT_NODE *nodes, uint32_t pos,
			   const SIFT_NODE *node, uint32_t d)
{
	uint32_t parent;

	for (; pos > sift_first(d); pos = parent) {
		parent = sift_parent(pos, d);
		if (nodes[parent].deadline <= node->deadline)
			break;
		sift_put(heap, nodes, pos, &nodes[parent]);
	}
	sift_put(heap, nodes, pos, node);
}

/* Does the same on the way down, among nodes before @end. */
static inline void sift_down(SIFT_HEAP *heap, SIFT_NODE *nodes, uint32_t pos,
			     uint32_t end, const SIFT_NODE *node, uint32_t d,
			     bool branch)
{
	uint32_t child;

	for (; (child = sift_child(pos, d)) < end; pos = child) {
		child = sift_least(nodes, child, end, d, branch);
		if (node->deadline <= nodes[child].deadline)
			break;
		sift_put(heap, nodes, pos, &nodes[child]);
	}
	sift_put(heap, nodes, pos, node);
}

#endif /* BENCH_SIFT_H */
