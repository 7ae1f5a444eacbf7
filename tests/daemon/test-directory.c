// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The directory of queues under ThreadSanitizer: a queue stays in one thread while it
 * has references, and threads have equal numbers of queues.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/queue/directory.h"

#define THREADS	4
#define NAMES	8
#define ROUNDS	20000

static struct directory directory;

/* Many in one bucket. */
uint32_t name_hash(const struct name_key *key, const char *name)
{
	return key->words[0] + name[1];
}

int name_key_init(struct name_key *key)
{
	key->words[0] = 0;
	return 0;
}

static struct directory_entry *get(uint32_t number)
{
	char name[EXPIRY_NAME_MAX] = "";

	if (number)
		snprintf(name, sizeof(name), "q%u", number);
	return directory_get(&directory, name);
}

/* ------------------------------------------------------------------------
 * One after the other
 */

/**
 * struct model - what there should be
 * @named: of each name its thread; @references to it, 0 = it is nowhere
 * @nr: by thread, of named ones and of anonymous ones
 */
struct model {
	uint32_t thread[100];
	uint32_t references[100];
	struct directory_entry *entry[100];
	uint32_t nr[2][THREADS];
};

static uint32_t draw(uint32_t below)
{
	static uint64_t chance = 1;

	chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
	return (chance >> 33) % below;
}

/* The thread with the fewest of its kind, of these that with the fewest others. */
static uint32_t fewest(const struct model *model, bool anonymous)
{
	const uint32_t *kind = model->nr[anonymous], *other = model->nr[!anonymous];
	uint32_t i, best = 0;

	for (i = 1; i < THREADS; i++)
		if (kind[i] * 1000 + other[i] < kind[best] * 1000 + other[best])
			best = i;
	return best;
}

/* Numbers from 50 on are anonymous: each of these is an entry of its own. */
static void as_the_model(void **state)
{
	static struct model model;
	uint32_t i, round, thread;

	(void)state;
	assert_int_equal(directory_init(&directory, THREADS, 1), 0);
	for (round = 0; round < ROUNDS; round++) {
		i = 1 + draw(99);
		if (!model.references[i] || (i < 50 && draw(2))) {
			thread = model.references[i] ? model.thread[i] :
				 fewest(&model, i >= 50);
			if (!model.references[i])
				model.nr[i >= 50][thread]++;
			model.thread[i] = thread;
			if (model.references[i] && draw(2))
				directory_ref(&directory, model.entry[i]);
			else
				model.entry[i] = get(i < 50 ? i : 0);
			model.references[i]++;
			assert_non_null(model.entry[i]);
			assert_int_equal(model.entry[i]->thread, thread);
		} else {
			directory_unref(&directory, model.entry[i]);
			if (!--model.references[i])
				model.nr[i >= 50][model.thread[i]]--;
		}
		for (thread = 0; thread < THREADS; thread++) {
			assert_int_equal(directory.named[thread],
					 model.nr[0][thread]);
			assert_int_equal(directory.anonymous[thread],
					 model.nr[1][thread]);
		}
	}
	assert_null(directory_ref(&directory, NULL));
	directory_unref(&directory, NULL);
	directory_deinit(&directory);
}

/* ------------------------------------------------------------------------
 * At the same time
 */

static void *come_and_go(void *arg)
{
	struct directory_entry *entry, *again;
	uint32_t i;

	(void)arg;
	for (i = 0; i < ROUNDS / 10; i++) {
		entry = get(i % NAMES);
		again = directory_ref(&directory, entry);
		directory_unref(&directory, entry);
		directory_unref(&directory, again);
	}
	return NULL;
}

static void threads_do_not_meet(void **state)
{
	pthread_t threads[THREADS];
	int i;

	(void)state;
	assert_int_equal(directory_init(&directory, THREADS, 1), 0);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, come_and_go, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(directory.named[i], 0);
		assert_int_equal(directory.anonymous[i], 0);
	}
	assert_int_equal(directory.pool.nr, 0);
	directory_deinit(&directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_model),
		cmocka_unit_test(threads_do_not_meet),
	};

	return cmocka_run_group_tests_name("directory", tests, NULL, NULL);
}
