/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The heaps that take part, as layouts like those of core/bheap.h. The two of
 * the paper are here to be compared with and know push and pop only; their
 * nodes are one array over consecutive pages, as struct arena has them.
 */
#ifndef BENCH_PAPER_HEAPS_H
#define BENCH_PAPER_HEAPS_H

#include "core/bheap.h"

/* The heap of the textbooks, n -> { 2n, 2n + 1 } (binary.c). */
extern const struct bheap_layout paper_binary;

/* The B-heap as the paper has it (kamp.c). */
extern const struct bheap_layout paper_kamp;

#endif /* BENCH_PAPER_HEAPS_H */
