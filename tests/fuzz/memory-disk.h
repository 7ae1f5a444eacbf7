/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A disk in memory for the fuzzers, with few files. */
#ifndef TESTS_FUZZ_MEMORY_DISK_H
#define TESTS_FUZZ_MEMORY_DISK_H

#include "daemon/journal/disk.h"
#include "daemon/journal/format.h"

#define MEMORY_FILES	32

struct memory_file {
	char name[JOURNAL_NAME];	/* "" = free */
	char *data;
	size_t size;
	size_t room;
};

/**
 * struct memory_disk - a disk; a descriptor is the number of a file
 */
struct memory_disk {
	struct disk disk;
	struct memory_file files[MEMORY_FILES];
};

void memory_disk_init(struct memory_disk *disk);
void memory_disk_free(struct memory_disk *disk);

#endif /* TESTS_FUZZ_MEMORY_DISK_H */
