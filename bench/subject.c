// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/bench.h"
#include "bench/subject.h"

void subject_init(struct subject *subject, const struct bheap_layout *layout,
		  bool keyed, u32 limit)
{
	struct timers_config config = {
		.mode = keyed ? EXPIRY_MODE_KEYED : 0,
		.limit = limit,
		.seed = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 },
		.layout = layout,
	};
	struct core_pages *pages[TIMERS_PAGES_NR];
	size_t offset = 0;
	u32 i;

	memset(subject, 0, sizeof(*subject));
	subject->layout = layout;
	subject->keyed = keyed;
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		subject->size += run_size(timers_pages_max(&config, i));
	subject->memory = bench_map(subject->size);
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		run_init(&subject->runs[i],
			 (unsigned char *)subject->memory + offset,
			 timers_pages_max(&config, i));
		offset += run_size(timers_pages_max(&config, i));
		pages[i] = &subject->runs[i].pages;
	}
	if (timers_setup(&subject->timers, &config, pages))
		die("timers_setup() failed");
}

void subject_deinit(struct subject *subject)
{
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		run_deinit(&subject->runs[i]);
	bench_unmap(subject->memory, subject->size);
}

static u64 run_bytes(const struct subject *subject, enum timers_pages which)
{
	return (u64)subject->runs[which].pages.nr * CORE_PAGE_SIZE;
}

u64 subject_heap_bytes(const struct subject *subject)
{
	return run_bytes(subject, TIMERS_PAGES_HEAP);
}

u64 subject_slots_bytes(const struct subject *subject)
{
	return run_bytes(subject, TIMERS_PAGES_SLOTS);
}

u64 subject_index_bytes(const struct subject *subject)
{
	return run_bytes(subject, TIMERS_PAGES_INDEX);
}

u64 subject_bytes(const struct subject *subject)
{
	return subject_heap_bytes(subject) + subject_slots_bytes(subject) +
	       subject_index_bytes(subject);
}

const struct bheap_layout *subject_layout(const char *name)
{
	static const struct bheap_layout *const known[] = {
		&bheap_subtree, &bheap_sorted, &bheap_radix,
	};
	u32 i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i]->name))
			return known[i];
	return NULL;
}
