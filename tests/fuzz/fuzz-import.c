// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lines for `expiryctl journal import`. Refused ones leave nothing; what is taken is
 * exported, and imported once more, the same.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "fuzz.h"
#include "journals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_disk *disk = malloc(sizeof(*disk));
	int i;

	fuzz_abort_on_failure();
	assert_non_null(disk);
	memory_disk_init(disk);
	if (journals_import(disk, (const char *)data, size))
		journals_check(disk);
	else
		for (i = 0; i < MEMORY_FILES; i++)
			assert_string_equal(disk->files[i].name, "");
	memory_disk_free(disk);
	free(disk);
	return 0;
}
