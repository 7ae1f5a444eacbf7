// SPDX-License-Identifier: LGPL-2.1-or-later
/* The journal's checksum, by the processor's instruction where there is one, against one
 * that takes bit by bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/journal/crc32c.h"

#define SIZE	5000U	/* several lanes, and a rest */

static unsigned char data[SIZE];

/* Returns the sum of more bytes, whose earlier ones have @crc. */
static uint32_t bit_by_bit(uint32_t crc, const unsigned char *byte, size_t len)
{
	int bit;

	crc = ~crc;
	while (len--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
	}
	return ~crc;
}

static int fill(void **state)
{
	uint32_t i, random = 1;

	(void)state;
	for (i = 0; i < SIZE; i++) {
		random = random * 1103515245 + 12345;
		data[i] = random >> 16;
	}
	return 0;
}

static void known_sum(void **state)
{
	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283U);
	assert_int_equal(crc32c(0, "", 0), 0);
}

static void every_length(void **state)
{
	uint32_t len, wanted = 0;

	(void)state;
	for (len = 0; len < SIZE; len++) {
		assert_int_equal(crc32c(0, data, len), wanted);
		wanted = bit_by_bit(wanted, &data[len], 1);
	}
}

/* A sum goes on from any place, at any address. */
static void in_two_parts(void **state)
{
	uint32_t wanted = bit_by_bit(0, data, SIZE), i;

	(void)state;
	for (i = 0; i <= SIZE; i++)
		assert_int_equal(crc32c(crc32c(0, data, i), data + i, SIZE - i),
				 wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_sum),
		cmocka_unit_test(every_length),
		cmocka_unit_test(in_two_parts),
	};

	return cmocka_run_group_tests_name("crc32c", tests, fill, NULL);
}
