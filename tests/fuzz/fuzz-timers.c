// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * struct timers against its naive twin, with the bytes of a file instead of
 * random numbers: requests, batches, the pages that leave, and those that do
 * not return. The first bytes choose the queue.
 */
#include "fuzz.h"
#include "twins.h"

#define LIMITS		256U

static const struct bheap_layout *const layouts[] = {
	&bheap_subtree, &bheap_sorted, &bheap_radix,
};

static const u32 modes[] = {
	0, EXPIRY_MODE_KEYED, EXPIRY_MODE_ACK,
	EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct twins twins = { .data = data, .data_end = data + size };
	u32 mode, limit;

	fuzz_abort_on_failure();
	test_layout = layouts[twins_chance(&twins, ARRAY_SIZE(layouts))];
	mode = modes[twins_chance(&twins, ARRAY_SIZE(modes))];
	limit = 1 + twins_chance(&twins, LIMITS);
	twins.evict = twins_chance(&twins, 4);
	twins.faults = twins_chance(&twins, 8);
	twins.thorough = 16;
	twins.walk = true;
	twins.now = SECOND;
	twins_init(&twins, mode, limit, 1);

	while (twins.data < twins.data_end)
		twins_step(&twins);
	twins_compare(&twins);
	twins_compare_counters(&twins);
	twins_drain(&twins);
	twins_free(&twins);
	return 0;
}
