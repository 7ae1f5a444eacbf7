/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The binary heap of the textbooks as a layout, for make bench-swap: what the
 * B-heap is measured against in the module. Only a module that was built with
 * EXPIRY_BINARY=1 has it, which no release is.
 */
#ifndef BENCH_BHEAP_BINARY_H
#define BENCH_BHEAP_BINARY_H

/* The number that EXPIRY_IOC_LAYOUT takes for it; far from those of the uapi. */
#define EXPIRY_LAYOUT_BINARY	0x10001

extern const struct bheap_layout bheap_binary;

#endif /* BENCH_BHEAP_BINARY_H */
