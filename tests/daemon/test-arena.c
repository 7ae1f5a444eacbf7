// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The pages of the daemon's queues: each is one user's at a time, keeps what was
 * written while it is used, and costs no memory when it was given back to the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <cmocka.h>

#include "core/core.h"
#include "daemon/engine/arena.h"

#define MOST	6000U
#define KEPT	1024U	/* are kept at least, or an eighth of those in use */

/**
 * struct model - an arena and the pages that are in use
 * @number: by which each is marked from end to end
 */
struct model {
	struct budget budget;
	struct arena arena;
	void *pages[MOST];
	uint64_t number[MOST];
	uint32_t nr;
	uint64_t next;
	uint64_t chance;
};

static uint32_t draw(struct model *model, uint32_t below)
{
	model->chance = model->chance * 6364136223846793005ULL +
			1442695040888963407ULL;
	return (model->chance >> 33) % below;
}

static void model_init(struct model *model, uint64_t bytes)
{
	memset(model, 0, sizeof(*model));
	budget_init(&model->budget, bytes);
	arena_init(&model->arena, &model->budget);
}

static void get(struct model *model)
{
	uint64_t *page = arena_get(&model->arena);

	assert_non_null(page);
	assert_int_equal((uintptr_t)page % CORE_PAGE_SIZE, 0);
	model->pages[model->nr] = page;
	model->number[model->nr] = ++model->next;
	page[0] = model->next;
	page[CORE_PAGE_SIZE / sizeof(*page) - 1] = model->next;
	model->nr++;
}

static void put(struct model *model, uint32_t i)
{
	arena_put(&model->arena, model->pages[i]);
	model->nr--;
	memmove(&model->pages[i], &model->pages[i + 1],
		(model->nr - i) * sizeof(*model->pages));
	memmove(&model->number[i], &model->number[i + 1],
		(model->nr - i) * sizeof(*model->number));
}

/* Returns whether the kernel holds memory for @page. */
static bool has_memory(void *page)
{
	unsigned char resident = 0;

	assert_int_equal(mincore(page, CORE_PAGE_SIZE, &resident), 0);
	return resident & 1;
}

static void check(struct model *model)
{
	uint64_t i;

	for (i = 0; i < model->nr; i++) {
		const uint64_t *page = model->pages[i];

		assert_int_equal(page[0], model->number[i]);
		assert_int_equal(page[CORE_PAGE_SIZE / sizeof(*page) - 1],
				 model->number[i]);
	}
	for (i = 0; i < model->arena.nr_kept; i++)
		assert_true(has_memory(model->arena.kept[i]));
	for (i = 0; i < model->arena.nr_bare; i++)
		assert_false(has_memory(model->arena.bare[i]));
	assert_int_equal(model->arena.used, model->nr);
	assert_int_equal(share_read(&model->budget.pages), model->nr);
}

/* Puts back as many as @nr pages: the last first, the first first, from the middle,
 * or by chance.
 */
static void put_many(struct model *model, uint32_t nr, uint32_t order)
{
	while (nr--) {
		switch (order) {
		case 0:
			put(model, model->nr - 1);
			break;
		case 1:
			put(model, 0);
			break;
		case 2:
			put(model, model->nr / 2);
			break;
		default:
			put(model, draw(model, model->nr));
		}
	}
}

/* Trims @count a call until nothing is left to free. */
static void trim(struct model *model, uint32_t count)
{
	uint64_t keep = model->nr / 8 > KEPT ? model->nr / 8 : KEPT, before;
	bool more;

	do {
		before = model->arena.nr_kept;
		more = arena_trim(&model->arena, count);
		assert_true(before - model->arena.nr_kept <= count);
		assert_true(!more || model->arena.nr_kept < before);
		assert_true(more == (model->arena.nr_kept > keep));
	} while (more);
	assert_int_equal(model->arena.nr_kept, before > keep ? keep : before);
}

static void what_is_in_use_stays_and_what_is_not_goes(void **state)
{
	static const uint32_t counts[] = { 1, 2, 7, 256, 100000 };
	static struct model model;
	uint32_t order, i;

	(void)state;
	for (order = 0; order < 4; order++) {
		for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
			model_init(&model, UINT64_MAX);
			model.chance = order;
			while (model.nr < MOST)
				get(&model);
			put_many(&model, MOST / 2, order);
			trim(&model, counts[i]);
			check(&model);
			while (model.nr < MOST - MOST / 4)
				get(&model);
			check(&model);
			put_many(&model, MOST / 2, (order + 1) % 4);
			trim(&model, counts[i]);
			check(&model);
			put_many(&model, model.nr, order);
			trim(&model, counts[i]);
			check(&model);
			assert_int_equal(model.arena.nr_kept, KEPT);
			arena_deinit(&model.arena);
		}
	}
}

/* Several regions, each of 64 MiB, begin where a huge page may; none of a page is
 * handed out twice, and all is unmapped at the end.
 */
static void regions(void **state)
{
	const uint32_t in_one = (64U << 20) / CORE_PAGE_SIZE;
	void **pages = calloc(3 * in_one, sizeof(*pages));
	unsigned char resident;
	struct budget budget;
	struct arena arena;
	uint32_t i;

	(void)state;
	budget_init(&budget, 2ULL * in_one * CORE_PAGE_SIZE + CORE_PAGE_SIZE);
	arena_init(&arena, &budget);
	for (i = 0; i < 2 * in_one + 1; i++) {
		/* The last ones are a reserve. */
		if (i == 2 * in_one + 1 - budget.pages_reserved) {
			arena.spares_reserve = true;
			assert_null(arena_get(&arena));
			arena.spares_reserve = false;
		}
		pages[i] = arena_get(&arena);
		assert_non_null(pages[i]);
		if (i % in_one == 0)
			assert_int_equal((uintptr_t)pages[i] % (2 << 20), 0);
		else
			assert_true((char *)pages[i] ==
				    (char *)pages[i - 1] + CORE_PAGE_SIZE);
	}
	/* The limit, to the page. */
	assert_true(budget.pages_reserved > 0);
	assert_null(arena_get(&arena));
	arena_put(&arena, pages[5]);
	assert_true(arena_get(&arena) == pages[5]);
	assert_null(arena_get(&arena));
	arena_deinit(&arena);
	assert_true(mincore(pages[0], CORE_PAGE_SIZE, &resident));
	assert_true(mincore(pages[2 * in_one], CORE_PAGE_SIZE, &resident));
	free(pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_use_stays_and_what_is_not_goes),
		cmocka_unit_test(regions),
	};

	/* A huge page would bring memory for its neighbours. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
