// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The hash of queues' names: the published function, and names that are chosen to
 * meet in one bucket do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <expiry/wire.h>

#include "daemon/util/name.h"

#define KEYS	4096

/* Values from Python 3.11, whose hash() of bytes is SipHash-1-3; with
 * PYTHONHASHSEED=0 its key is 0. The lower half is not used.
 */
static void published_function(void **state)
{
	static const struct {
		const char *name;
		uint64_t hash;
	} known[] = {
		{ "default", 0x973f75e4492c3b3bULL },
		{ "leases", 0x4fe73e3803789da4ULL },
		{ "abcdefghijklmnopqrstuvwx", 0x42acf3a099aff2dcULL },
	};
	const struct name_key key = { { 0, 0 } };
	char name[EXPIRY_NAME_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		memset(name, 0, sizeof(name));
		memcpy(name, known[i].name, strlen(known[i].name));
		assert_int_equal(name_hash(&key, name), known[i].hash >> 32);
	}
}

static struct name_key next_key(void)
{
	static uint64_t x = 1;
	struct name_key key;
	size_t i;

	for (i = 0; i < 2; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		key.words[i] = x;
	}
	return key;
}

/* Returns with how many of KEYS keys the names have one hash. */
static int meetings(const char *one, const char *other)
{
	int i, nr = 0;

	for (i = 0; i < KEYS; i++) {
		const struct name_key key = next_key();

		nr += name_hash(&key, one) == name_hash(&key, other);
	}
	return nr;
}

/* A hash that multiplies and shifts each word maps bit 62 of one word to itself or to
 * bits 62 and 63, and a shift by @shift copies it to one more bit. A second word that
 * differs in the same bits cancels the difference, for half of all keys.
 */
static void chosen_names_do_not_meet(void **state)
{
	static const char letters[] = "0-5cgks79";
	unsigned int shift, word, i;

	(void)state;
	for (shift = 24; shift <= 40; shift++) {
		for (word = 0; word < 2; word++) {
			char one[EXPIRY_NAME_MAX], other[EXPIRY_NAME_MAX];
			unsigned int bit = 62 - shift;

			for (i = 0; i < sizeof(one); i++)
				one[i] = letters[i % (sizeof(letters) - 1)];
			memcpy(other, one, sizeof(one));
			other[8 * word + 7] ^= 0x40;
			other[8 * word + 15] ^= 0x40;
			other[8 * word + 8 + bit / 8] ^= 1 << bit % 8;
			assert_true(meetings(one, other) <= 1);
		}
	}
}

/* Each single bit of a name changes the hash. */
static void no_bit_is_left_out(void **state)
{
	char one[EXPIRY_NAME_MAX], other[EXPIRY_NAME_MAX];
	unsigned int bit;

	(void)state;
	memset(one, 'a', sizeof(one));
	for (bit = 0; bit < 8 * sizeof(one); bit++) {
		memcpy(other, one, sizeof(one));
		other[bit / 8] ^= 1 << bit % 8;
		assert_true(meetings(one, other) <= 1);
	}
}

/* The whole key counts. */
static void no_half_of_the_key_is_left_out(void **state)
{
	const char name[EXPIRY_NAME_MAX] = "sessions";
	unsigned int bit, i, nr = 0;

	(void)state;
	for (bit = 0; bit < 128; bit++) {
		for (i = 0; i < 64; i++) {
			struct name_key key = next_key();
			uint32_t hash = name_hash(&key, name);

			key.words[bit / 64] ^= 1ULL << bit % 64;
			nr += name_hash(&key, name) == hash;
		}
	}
	assert_true(nr <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_function),
		cmocka_unit_test(chosen_names_do_not_meet),
		cmocka_unit_test(no_bit_is_left_out),
		cmocka_unit_test(no_half_of_the_key_is_left_out),
	};

	return cmocka_run_group_tests_name("name", tests, NULL, NULL);
}
