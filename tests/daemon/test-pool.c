// SPDX-License-Identifier: LGPL-2.1-or-later
/* A pool gives as many objects as it may, apart, zero, and at their index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/util/pool.h"

#define SIZE	200
#define MOST	2000		/* several chunks */

static unsigned char *objects[MOST];

static void assert_zero(const unsigned char *object)
{
	static const unsigned char zero[SIZE];

	assert_memory_equal(object, zero, SIZE);
}

static void as_many_as_it_may(void **state)
{
	struct pool pool;
	uint32_t i;

	(void)state;
	pool_init(&pool, SIZE, MOST);
	for (i = 0; i < MOST; i++) {
		objects[i] = pool_get(&pool);
		assert_non_null(objects[i]);
		assert_zero(objects[i]);
		/* No two overlap: each keeps its own bytes, see below. */
		memset(objects[i], i, SIZE);
	}
	assert_null(pool_get(&pool));
	assert_int_equal(pool.nr, MOST);
	for (i = 0; i < MOST; i++)
		assert_int_equal(objects[i][SIZE - 1], (unsigned char)i);
	pool_put(&pool, NULL);
	assert_int_equal(pool.nr, MOST);
	pool_put(&pool, objects[7]);
	assert_ptr_equal(pool_get(&pool), objects[7]);
	assert_zero(objects[7]);
	assert_null(pool_get(&pool));
	pool.nr_max++;
	assert_non_null(pool_get(&pool));
	pool_deinit(&pool);
}

static void each_keeps_its_index(void **state)
{
	uint64_t nr_chunks, i, found = 0;
	struct pool pool;

	(void)state;
	pool_init(&pool, SIZE, MOST);
	for (i = 0; i < MOST; i++) {
		objects[i] = pool_get(&pool);
		objects[i][SIZE - 1] = 1;
	}
	nr_chunks = pool.nr_chunks;
	for (i = 0; pool_at(&pool, i); i++)
		found += ((unsigned char *)pool_at(&pool, i))[SIZE - 1];
	assert_int_equal(found, MOST);
	/* Freed ones are there, too, and memory is used again. */
	for (i = 0; i < MOST; i++)
		pool_put(&pool, objects[i]);
	for (i = 0, found = 0; pool_at(&pool, i); i++)
		found += ((unsigned char *)pool_at(&pool, i))[SIZE - 1];
	assert_int_equal(found, MOST);
	for (i = 0; i < MOST; i++)
		assert_non_null(pool_get(&pool));
	assert_int_equal(pool.nr_chunks, nr_chunks);
	pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_as_it_may),
		cmocka_unit_test(each_keeps_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
