/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The heaps of the experiment, as layouts like those of core/bheap.h. The two
 * of the paper are for comparison and have push and pop only. Their nodes are
 * one array over consecutive pages, as in struct arena.
 */
#ifndef BENCH_PAPER_HEAPS_H
#define BENCH_PAPER_HEAPS_H

#include "core/bheap.h"

/* The textbooks' heap, n -> { 2n, 2n + 1 } (binary.c). */
extern const struct bheap_layout paper_binary;

/* The paper's B-heap (kamp.c). */
extern const struct bheap_layout paper_kamp;

#endif /* BENCH_PAPER_HEAPS_H */
