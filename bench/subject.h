/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A measured queue: the joined structure with pages of its own. */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include "bench/pages.h"
#include "core/timers.h"

/**
 * struct subject - a queue
 * @memory: all its pages, one run after the other
 * @size: of @memory
 */
struct subject {
	struct timers timers;
	struct run runs[TIMERS_PAGES_NR];
	const struct bheap_layout *layout;
	bool keyed;
	void *memory;
	size_t size;
};

/* Makes an empty queue for @limit timers at most. Ends the program on failure.
 */
void subject_init(struct subject *subject, const struct bheap_layout *layout,
		  bool keyed, u32 limit);
void subject_deinit(struct subject *subject);

/* Return the bytes of pages in use: of heap, slots and index, or of all of
 * them.
 */
u64 subject_heap_bytes(const struct subject *subject);
u64 subject_slots_bytes(const struct subject *subject);
u64 subject_index_bytes(const struct subject *subject);
u64 subject_bytes(const struct subject *subject);

/* Returns a layout by name, NULL if there is none. */
const struct bheap_layout *subject_layout(const char *name);

#endif /* BENCH_SUBJECT_H */
