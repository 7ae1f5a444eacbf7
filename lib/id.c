// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ids of names, by keyed BLAKE2b (RFC 7693). */
#include <errno.h>
#include <string.h>

#include "internal.h"

#define BLOCK		128	/* bytes */
#define DIGEST		16
#define KEY_MIN		16
#define KEY_MAX		64

static const uint64_t iv[8] = {
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b,
	0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f,
	0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* The last two of the twelve rounds repeat the first two. */
static const uint8_t sigma[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static uint64_t rotate_right(uint64_t word, unsigned int bits)
{
	return word >> bits | word << (64 - bits);
}

static uint64_t load(const unsigned char *bytes)
{
	uint64_t word = 0;
	int i;

	for (i = 7; i >= 0; i--)
		word = word << 8 | bytes[i];
	return word;
}

/* Section 3.1: one mixing, of the words a to d. */
static void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x,
		uint64_t y)
{
	*a += *b + x;
	*d = rotate_right(*d ^ *a, 32);
	*c += *d;
	*b = rotate_right(*b ^ *c, 24);
	*a += *b + y;
	*d = rotate_right(*d ^ *a, 16);
	*c += *d;
	*b = rotate_right(*b ^ *c, 63);
}

/* Section 3.2: compresses a block. @done: bytes with this block's. */
static void compress(uint64_t *h, const unsigned char *block, uint64_t done,
		     bool is_last)
{
	uint64_t m[16], v[16];
	const uint8_t *s;
	int i, round;

	for (i = 0; i < 16; i++)
		m[i] = load(block + 8 * i);
	memcpy(v, h, sizeof(iv));
	memcpy(v + 8, iv, sizeof(iv));
	v[12] ^= done;
	if (is_last)
		v[14] = ~v[14];
	for (round = 0; round < 12; round++) {
		s = sigma[round % 10];
		for (i = 0; i < 4; i++)
			mix(&v[i], &v[4 + i], &v[8 + i], &v[12 + i],
			    m[s[2 * i]], m[s[2 * i + 1]]);
		for (i = 0; i < 4; i++)
			mix(&v[i], &v[4 + (i + 1) % 4], &v[8 + (i + 2) % 4],
			    &v[12 + (i + 3) % 4], m[s[8 + 2 * i]],
			    m[s[9 + 2 * i]]);
	}
	for (i = 0; i < 8; i++)
		h[i] ^= v[i] ^ v[8 + i];
}

EXPORT int expiry_id_of(const void *name, size_t size, const void *key,
			size_t key_size, uint64_t *id, uint64_t *ret_check)
{
	const unsigned char *bytes = name;
	unsigned char block[BLOCK] = { 0 };
	uint64_t h[8], done = BLOCK;

	if (key_size < KEY_MIN || key_size > KEY_MAX)
		return -EINVAL;
	memcpy(h, iv, sizeof(h));
	h[0] ^= 0x01010000 ^ key_size << 8 ^ DIGEST;
	memcpy(block, key, key_size);
	compress(h, block, done, !size);
	for (; size > BLOCK; size -= BLOCK, bytes += BLOCK) {
		done += BLOCK;
		compress(h, bytes, done, false);
	}
	if (size) {
		memset(block, 0, sizeof(block));
		memcpy(block, bytes, size);
		compress(h, block, done + size, true);
	}
	*id = h[0] ?: 1;
	if (ret_check)
		*ret_check = h[1];
	return 0;
}
