// SPDX-License-Identifier: LGPL-2.1-or-later
/* SipHash, and what the index makes of it. */
#include "siphash.h"
#include "support-index.h"

/* SipHash-1-3 of eight bytes; the values are another implementation's
 * (CPython's, which hashes bytes so).
 */
static void siphash_is_siphash(void **state)
{
	static const struct {
		u64 key[2], word, hash;
	} known[] = {
		{ { 0, 0 }, 0, 0xbd60acb658c79e45 },
		{ { 0, 0 }, 1, 0x1e9f734161d62dd9 },
		{ { 0, 0 }, 0x0123456789abcdef, 0x8662046e52264db8 },
		{ { 0, 0 }, ~0ULL, 0x2f205be2fec8e38d },
		{ { 0xdc504fd368cd90af, 0xb920bb9ffe99e9c1 },
		  0, 0xff8022ca61836881 },
		{ { 0xdc504fd368cd90af, 0xb920bb9ffe99e9c1 },
		  0x0123456789abcdef, 0x009f3909b890b8a2 },
		{ { 0xdc504fd368cd90af, 0xb920bb9ffe99e9c1 },
		  0x0000000100000007, 0xf2e80e2844e0b753 },
	};
	struct subject subject;
	struct index index;
	u32 i;

	(void)state;
	subject_init(&subject);
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		assert_true(siphash_word(known[i].word, known[i].key) ==
			    known[i].hash);
		/* The index's own copy was compiled elsewhere. */
		index_init(&index, &subject.table.pages, known[i].key);
		assert_int_equal(index_hash(&index, known[i].word),
				 known[i].hash >> 32);
	}
	subject_free(&subject);
}

/* The same of several words, with CPython's keys 0 and of PYTHONHASHSEED=1. The words
 * follow each other, but for the bits of @flip, which are changed in each.
 */
static void several_words_are_one_message(void **state)
{
	static const u64 keys[][2] = {
		{ 0, 0 }, { 0xaed66ce184be2329, 0xebe9bbf1f1499052 },
	};
	static const struct {
		u64 first, flip;
		u32 nr;
		u64 hashes[ARRAY_SIZE(keys)];	/* by key */
	} known[] = {
		{ 1, 0, 2,
		  { 0xfb058313e6201d48, 0x8cf4c344e3f0da5a } },
		{ 1, 0x123456789abcdef0, 2,
		  { 0x1bfa5fa601c175d8, 0x33c71c726b8d72cb } },
		{ 0, 0, 3,
		  { 0xbdcbe075ce4e5465, 0xa406438ccb6fde90 } },
		{ 0x123456789abcdef0, 0, 3,
		  { 0xd1c1d2fc33def8c0, 0xaf32d27659cd3d66 } },
		{ 1, 0, 8,
		  { 0x62b6d05084d4af5c, 0x91b2d7aa754a1f57 } },
		{ 0, 0, 31,
		  { 0xf267c58d4a201bdf, 0x1b35901ada3f5a06 } },
		{ 0, 0xfedcba9876543210, 31,
		  { 0x3f362239192b9b1b, 0xbfbb912ee04befc5 } },
	};
	u64 words[31];
	u32 i, j, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		for (j = 0; j < known[i].nr; j++)
			words[j] = (known[i].first + j) ^ known[i].flip;
		for (k = 0; k < ARRAY_SIZE(keys); k++)
			assert_true(siphash_words(words, known[i].nr, keys[k]) ==
				    known[i].hashes[k]);
	}
}

/* Both halves of the seed count: with any two that differ in one half, ids have
 * other hashes. Among 1000 ids, random 32-bit hashes give less than one equal
 * pair.
 */
static void the_seed_decides(void **state)
{
	const u64 seeds[][2] = { { 1, 2 }, { 1, 3 }, { 2, 2 }, { 0, 2 }, { 1, 0 } };
	u32 buckets[256] = { 0 }, same = 0, i, j;
	struct index indexes[ARRAY_SIZE(seeds)];
	struct subject subject;
	u64 id;

	(void)state;
	subject_init(&subject);
	memset(indexes, 0, sizeof(indexes));
	for (i = 0; i < ARRAY_SIZE(seeds); i++) {
		index_init(&indexes[i], &subject.table.pages, seeds[i]);
		for (j = 0; j < i; j++)
			for (id = 1; id <= 1000; id++)
				same += index_hash(&indexes[i], id) ==
					index_hash(&indexes[j], id);
	}
	assert_in_range(same, 0, 2);

	/* Sequential ids spread evenly: 256 a bucket, plus or minus 6 sigma. */
	for (i = 0; i < 65536; i++)
		buckets[index_hash(&subject.index, i) >> 24]++;
	for (i = 0; i < 256; i++)
		assert_in_range(buckets[i], 160, 352);
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_is_siphash),
		cmocka_unit_test(several_words_are_one_message),
		cmocka_unit_test(the_seed_decides),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
