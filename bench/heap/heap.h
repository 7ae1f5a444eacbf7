/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Heaps alone, without slots and index: those of core/ and others for
 * comparison. Each has the same three calls, which the compiler cannot inline.
 * Also for C++.
 */
#ifndef BENCH_HEAP_HEAP_H
#define BENCH_HEAP_HEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same as struct bheap_node. */
struct heap_node {
	uint64_t deadline;
	uint32_t slot;
	uint32_t stamp;
};

/**
 * struct heap_kind - one sort of heap
 * @name: in reports
 * @create: an empty heap with room for @nr_max nodes
 * @push: add a node; there is room
 * @pop: remove a node with the least deadline; there is one
 *
 * @create ends the program on failure.
 */
struct heap_kind {
	const char *name;
	void *(*create)(uint32_t nr_max);
	void (*destroy)(void *heap);
	void (*push)(void *heap, const struct heap_node *node);
	struct heap_node (*pop)(void *heap);
};

extern const struct heap_kind heap_binary;		/* arrays.c */
extern const struct heap_kind heap_binary_free;
extern const struct heap_kind heap_priority_queue;	/* queue.cc */
extern const struct heap_kind heap_quad;	
extern const struct heap_kind heap_quad_free;
extern const struct heap_kind heap_subtree;		/* shipped.c */
extern const struct heap_kind heap_sorted;
extern const struct heap_kind heap_radix;

/* All of them, ends with NULL (kinds.c). */
extern const struct heap_kind *const heap_kinds[];

/* bench/pages.h */
void *bench_map(size_t size);
void bench_unmap(void *memory, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_HEAP_HEAP_H */
