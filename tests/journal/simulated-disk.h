/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A disk in memory that loses power. Until a file is synced each of its sectors
 * may keep any content that it had since the last sync. Until names are synced
 * each change of a name may be lost, whatever else is kept.
 */
#ifndef TESTS_JOURNAL_SIMULATED_DISK_H
#define TESTS_JOURNAL_SIMULATED_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/disk.h"
#include "daemon/journal/format.h"

#define SECTOR		512U
#define SIM_SECTORS	128U	/* of the largest file */
#define SIM_FILES	64U
#define SIM_NAMES	256U	/* changes of names that are not synced */
#define SIM_VERSIONS	4U	/* contents of a sector that are not synced */

/* A sector's contents: an offset into the disk's store. */
typedef uint32_t sim_sector_t;

struct sim_file {
	bool used;
	uint32_t size;		/* in sectors */
	uint32_t durable_size;
	sim_sector_t now[SIM_SECTORS];
	sim_sector_t durable[SIM_SECTORS];
	sim_sector_t versions[SIM_SECTORS][SIM_VERSIONS];
	uint8_t nr_versions[SIM_SECTORS];
};

/* A name and its file, -1 = none. */
struct sim_name {
	char name[JOURNAL_NAME];
	int file;
};

enum sim_change_kind {
	SIM_ADD,
	SIM_RENAME,
	SIM_UNLINK,
};

struct sim_change {
	enum sim_change_kind kind;
	char from[JOURNAL_NAME];
	char to[JOURNAL_NAME];
	int file;
};

/**
 * struct sim_disk - the disk
 * @store: contents of sectors; number 0 is zeros
 * @names: now; @durable: after a loss of power without @changes
 * @operations: calls so far that change something
 * @crash_at: the power is lost before that one; @is_dead from then on
 * @fail_at: that operation fails with @fail_with, and a sync loses what it should
 *	have synced
 * @limit: of sectors in files, beyond it -ENOSPC
 */
struct sim_disk {
	struct disk disk;
	unsigned char *store;
	uint32_t nr_store;
	uint32_t max_store;
	struct sim_file files[SIM_FILES];
	struct sim_name names[SIM_FILES];
	struct sim_name durable[SIM_FILES];
	struct sim_change changes[SIM_NAMES];
	uint32_t nr_changes;
	uint64_t operations;
	uint64_t crash_at;
	uint64_t fail_at;
	int fail_with;
	uint32_t limit;
	bool is_dead;
};

void sim_disk_init(struct sim_disk *disk);
void sim_disk_deinit(struct sim_disk *disk);

/* Copies @from to @to, which was initialized. */
void sim_disk_copy(struct sim_disk *to, const struct sim_disk *from);

/* Turns the disk into one after a loss of power: what was not synced is kept or
 * not, by @random. @all: the process was killed, and all is kept.
 */
void sim_disk_crash(struct sim_disk *disk, uint64_t *random, bool all);

/* Overwrites one sector of the named file. */
void sim_disk_damage(struct sim_disk *disk, const char *name, uint32_t sector,
		     uint64_t *random);

/* Returns the sectors of all files. */
uint32_t sim_disk_used(const struct sim_disk *disk);

/* Returns a random number below @limit. */
uint64_t sim_random(uint64_t *random, uint64_t limit);

#endif /* TESTS_JOURNAL_SIMULATED_DISK_H */
