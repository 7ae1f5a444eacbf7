/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The textbooks' binary heap as a layout, for make bench-swap: the module's
 * B-heap is compared with it. Only a module built with EXPIRY_BINARY=1 has it,
 * and no release does.
 */
#ifndef BENCH_BHEAP_BINARY_H
#define BENCH_BHEAP_BINARY_H

/* Its number for EXPIRY_IOC_LAYOUT; far from those of the uapi. */
#define EXPIRY_LAYOUT_BINARY	0x10001

extern const struct bheap_layout bheap_binary;

#endif /* BENCH_BHEAP_BINARY_H */
