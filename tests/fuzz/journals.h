/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Journals of the fuzzers: what is exported is imported, and is the same then. */
#ifndef TESTS_FUZZ_JOURNALS_H
#define TESTS_FUZZ_JOURNALS_H

#include <stdbool.h>
#include <stddef.h>

#include "memory-disk.h"

/* Returns the lines of all journals of the disk, to be freed; NULL: one of them is
 * refused, with a reason that is checked.
 */
char *journals_export(struct memory_disk *disk);

/* Makes journals of lines. Returns false if a line is refused; the disk is empty then. */
bool journals_import(struct memory_disk *disk, const char *lines, size_t len);

/* Exports, imports and exports again, and compares. */
void journals_check(struct memory_disk *disk);

#endif /* TESTS_FUZZ_JOURNALS_H */
