/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/* The sweep of sorted pages. */
#ifndef CORE_BHEAP_SORTED_SWEEP_H
#define CORE_BHEAP_SORTED_SWEEP_H

#include "bheap.h"

bool sorted_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		  bheap_ahead_t *ahead, void *context);

#endif /* CORE_BHEAP_SORTED_SWEEP_H */
