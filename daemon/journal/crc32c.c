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
/* Uses the processor's instruction, eight bytes at a time. */
__attribute__((target("sse4.2")))
static uint32_t crc_sse42(uint32_t crc, const unsigned char *byte, size_t len)
{
	uint64_t sum = crc, word;

	for (; len >= sizeof(word); len -= sizeof(word)) {
		memcpy(&word, byte, sizeof(word));
		sum = __builtin_ia32_crc32di(sum, word);
		byte += sizeof(word);
	}
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
	if (__builtin_cpu_supports("sse4.2"))
		best = crc_sse42;
#endif
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	return ~best(~crc, data, len);
}
