// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "daemon/journal/crc32c.h"

/* The polynomial, its bits reversed. */
#define CRC32C_POLYNOMIAL	0x82f63b78U

static uint32_t table[256];

static uint32_t crc_table(uint32_t crc, const unsigned char *byte, size_t len)
{
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *byte++) & 0xff];
	return crc;
}

#ifdef __x86_64__

/* The processor's instruction takes three cycles, and one can begin each cycle. So three
 * lanes of as many bytes are summed side by side.
 */
#define LANE	512U

/* By each byte of a sum: its part of the sum behind LANE zeros. */
static uint32_t behind_lane[4][256];

static uint32_t pass_lane(uint32_t crc)
{
	return behind_lane[0][crc & 0xff] ^ behind_lane[1][crc >> 8 & 0xff] ^
	       behind_lane[2][crc >> 16 & 0xff] ^ behind_lane[3][crc >> 24];
}

static void lanes_init(void)
{
	static const unsigned char zeros[LANE];
	uint32_t byte, i, bit;

	for (byte = 0; byte < 4; byte++)
		for (bit = 0; bit < 8; bit++) {
			uint32_t *part = behind_lane[byte];

			part[1U << bit] = crc_table(1U << (8 * byte + bit),
						    zeros, LANE);
			/* A sum is linear. */
			for (i = 1; i < 1U << bit; i++)
				part[1U << bit | i] = part[1U << bit] ^ part[i];
		}
}

static inline uint64_t word_at(const unsigned char *byte)
{
	uint64_t word;

	memcpy(&word, byte, sizeof(word));
	return word;
}

__attribute__((target("sse4.2")))
static uint32_t crc_sse42(uint32_t crc, const unsigned char *byte, size_t len)
{
	const size_t size = sizeof(uint64_t);
	uint64_t sum = crc, second, third;
	size_t i;

	for (; len >= 3 * LANE; len -= 3 * LANE, byte += 3 * LANE) {
		second = 0;
		third = 0;
		for (i = 0; i < LANE; i += size) {
			sum = __builtin_ia32_crc32di(sum, word_at(byte + i));
			second = __builtin_ia32_crc32di(second,
					word_at(byte + LANE + i));
			third = __builtin_ia32_crc32di(third,
					word_at(byte + 2 * LANE + i));
		}
		sum = pass_lane(pass_lane(sum) ^ second) ^ third;
	}
	for (; len >= size; len -= size, byte += size)
		sum = __builtin_ia32_crc32di(sum, word_at(byte));
	crc = sum;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *byte++);
	return crc;
}
#endif

static uint32_t (*best)(uint32_t crc, const unsigned char *byte, size_t len) =
	crc_table;

/* Runs before main(), so that no thread sees a half-made table. */
__attribute__((constructor))
static void crc_init(void)
{
	uint32_t crc;
	int i, bit;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
		table[i] = crc;
	}
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2")) {
		lanes_init();
		best = crc_sse42;
	}
#endif
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	return ~best(~crc, data, len);
}
