/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * SipHash-1-3 of 64-bit words: J.-P. Aumasson and D. J. Bernstein, "SipHash:
 * a fast short-input PRF" (2012), with the shorter rounds of hash tables. The
 * kernel's own is not available in userspace.
 */
#ifndef CORE_SIPHASH_H
#define CORE_SIPHASH_H

#include "core.h"

static inline u64 siphash_rotate(u64 x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void siphash_round(u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotate(v[1], 13) ^ v[0];
	v[3] = siphash_rotate(v[3], 16) ^ v[2];
	v[0] = siphash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotate(v[1], 17) ^ v[2];
	v[3] = siphash_rotate(v[3], 21) ^ v[0];
	v[2] = siphash_rotate(v[2], 32);
}

/* Hashes @nr words as a message of 8 * @nr bytes on a little-endian machine; @nr is
 * at most 31.
 */
static inline u64 siphash_words(const u64 *words, u32 nr, const u64 key[2])
{
	const u64 length = (u64)nr << 59;
	u64 v[4] = {
		key[0] ^ 0x736f6d6570736575ULL,
		key[1] ^ 0x646f72616e646f6dULL,
		key[0] ^ 0x6c7967656e657261ULL,
		key[1] ^ 0x7465646279746573ULL,
	};
	u32 i;

	for (i = 0; i < nr; i++) {
		v[3] ^= words[i];
		siphash_round(v);
		v[0] ^= words[i];
	}
	v[3] ^= length;
	siphash_round(v);
	v[0] ^= length;
	v[2] ^= 0xff;
	siphash_round(v);
	siphash_round(v);
	siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static inline u64 siphash_word(u64 word, const u64 key[2])
{
	return siphash_words(&word, 1, key);
}

#endif /* CORE_SIPHASH_H */
