// SPDX-License-Identifier: LGPL-2.1-or-later
#include "heap.h"

const struct heap_kind *const heap_kinds[] = {
	&heap_binary,
	&heap_binary_free,
	&heap_quad,
	&heap_quad_free,
	&heap_priority_queue,
	&heap_subtree,
	&heap_sorted,
	&heap_radix,
	NULL,
};
