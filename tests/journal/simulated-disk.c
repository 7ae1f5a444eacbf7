// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/util.h"
#include "tests/journal/simulated-disk.h"

/* Steele, Lea, Flood: SplitMix64 (2014). */
uint64_t sim_random(uint64_t *random, uint64_t limit)
{
	uint64_t z = *random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % limit;
}

static struct sim_disk *sim(struct disk *disk)
{
	return container_of(disk, struct sim_disk, disk);
}

/* ------------------------------------------------------------------- names */

static struct sim_name *find(struct sim_name *names, const char *name)
{
	uint32_t i;

	for (i = 0; i < SIM_FILES; i++)
		if (names[i].name[0] && !strcmp(names[i].name, name))
			return &names[i];
	return NULL;
}

static void set_name(struct sim_name *names, const char *name, int file)
{
	struct sim_name *at = find(names, name);
	uint32_t i;

	for (i = 0; !at && i < SIM_FILES; i++)
		if (!names[i].name[0])
			at = &names[i];
	assert(at);
	strcpy(at->name, name);
	at->file = file;
}

static void apply(struct sim_name *names, const struct sim_change *change)
{
	struct sim_name *from = find(names, change->from);

	if (change->kind != SIM_ADD && from)
		from->name[0] = '\0';
	if (change->kind != SIM_UNLINK)
		set_name(names, change->to, change->file);
}

static void change_name(struct sim_disk *disk, enum sim_change_kind kind,
			const char *from, const char *to, int file)
{
	struct sim_change *change = &disk->changes[disk->nr_changes++];

	assert(disk->nr_changes <= SIM_NAMES);
	*change = (struct sim_change) { .kind = kind, .file = file };
	strcpy(change->from, from);
	strcpy(change->to, to);
	apply(disk->names, change);
}

/* Frees files without a name, now or after a crash. */
static void collect(struct sim_disk *disk)
{
	bool used[SIM_FILES] = { false };
	uint32_t i;

	for (i = 0; i < SIM_FILES; i++) {
		if (disk->names[i].name[0])
			used[disk->names[i].file] = true;
		if (disk->durable[i].name[0])
			used[disk->durable[i].file] = true;
	}
	for (i = 0; i < disk->nr_changes; i++)
		if (disk->changes[i].kind != SIM_UNLINK)
			used[disk->changes[i].file] = true;
	for (i = 0; i < SIM_FILES; i++)
		disk->files[i].used = used[i];
}

/* -------------------------------------------------------------- operations */

/* Begins a call that changes something. Returns what it fails with, or 0. */
static int begin(struct sim_disk *disk)
{
	if (disk->operations++ >= disk->crash_at)
		disk->is_dead = true;
	if (disk->is_dead)
		return -EIO;
	if (disk->operations == disk->fail_at)
		return disk->fail_with;
	return 0;
}

static int sim_open(struct disk *base, const char *name, enum disk_how how)
{
	struct sim_disk *disk = sim(base);
	struct sim_name *at = find(disk->names, name);
	int i, r;

	if (how != DISK_MAKE)
		return at ? at->file : -ENOENT;
	r = begin(disk);
	if (r < 0)
		return r;
	collect(disk);
	for (i = 0; i < (int)SIM_FILES && disk->files[i].used; i++)
		;
	assert(i < (int)SIM_FILES);
	memset(&disk->files[i], 0, sizeof(disk->files[i]));
	disk->files[i].used = true;
	change_name(disk, SIM_ADD, "", name, i);
	return i;
}

static void sim_close(struct disk *base, int fd)
{
	(void)base;
	(void)fd;
}

static int64_t sim_size(struct disk *base, int fd)
{
	return sim(base)->files[fd].size * SECTOR;
}

static ssize_t sim_read(struct disk *base, int fd, void *data, size_t len,
			uint64_t offset)
{
	const struct sim_disk *disk = sim(base);
	const struct sim_file *file = &disk->files[fd];
	size_t done = 0;

	assert(!(offset % SECTOR) && !(len % SECTOR));
	while (done < len && (offset + done) / SECTOR < file->size) {
		uint32_t sector = file->now[(offset + done) / SECTOR];

		memcpy((char *)data + done,
		       disk->store + (size_t)sector * SECTOR, SECTOR);
		done += SECTOR;
	}
	return done;
}

static sim_sector_t store(struct sim_disk *disk, const void *data)
{
	static const unsigned char zeros[SECTOR];

	if (!memcmp(data, zeros, SECTOR))
		return 0;
	if (disk->nr_store == disk->max_store) {
		disk->max_store *= 2;
		disk->store = realloc(disk->store,
				      (size_t)disk->max_store * SECTOR);
		assert(disk->store);
	}
	memcpy(disk->store + (size_t)disk->nr_store * SECTOR, data, SECTOR);
	return disk->nr_store++;
}

uint32_t sim_disk_used(const struct sim_disk *disk)
{
	uint32_t i, nr = 0;

	for (i = 0; i < SIM_FILES; i++)
		if (disk->names[i].name[0])
			nr += disk->files[disk->names[i].file].size;
	return nr;
}

static void write_sector(struct sim_disk *disk, struct sim_file *file,
			 uint32_t sector, const void *data)
{
	uint32_t nr = file->nr_versions[sector];

	assert(sector < SIM_SECTORS);
	file->now[sector] = store(disk, data);
	if (nr == SIM_VERSIONS)
		memmove(&file->versions[sector][0], &file->versions[sector][1],
			--nr * sizeof(sim_sector_t));
	file->versions[sector][nr] = file->now[sector];
	file->nr_versions[sector] = nr + 1;
	if (sector >= file->size)
		file->size = sector + 1;
}

static int sim_write(struct disk *base, int fd, const void *data, size_t len,
		     uint64_t offset)
{
	struct sim_disk *disk = sim(base);
	struct sim_file *file = &disk->files[fd];
	uint32_t end = (offset + len) / SECTOR;
	size_t done;
	int r = begin(disk);

	assert(!(offset % SECTOR) && !(len % SECTOR) && len);
	if (!r && end > file->size && disk->limit &&
	    sim_disk_used(disk) + end - file->size > disk->limit)
		r = -ENOSPC;
	/* A write that fails may have written a part, as may one at the crash.
	 */
	for (done = 0; done < (r ? len / 2 / SECTOR * SECTOR : len) &&
	     r != -ENOSPC && (!disk->is_dead ||
			      disk->operations == disk->crash_at + 1);
	     done += SECTOR)
		write_sector(disk, file, (offset + done) / SECTOR,
			     (const char *)data + done);
	return r;
}

static int sim_sync(struct disk *base, int fd)
{
	struct sim_disk *disk = sim(base);
	struct sim_file *file = &disk->files[fd];
	int r = begin(disk);
	uint32_t i;

	if (disk->is_dead)
		return r;
	/* A sync that fails leaves pages clean which never reached the disk: a
	 * second one succeeds without them.
	 */
	for (i = 0; i < SIM_SECTORS && !r; i++) {
		if (file->nr_versions[i])
			file->durable[i] = file->now[i];
	}
	memset(file->nr_versions, 0, sizeof(file->nr_versions));
	file->durable_size = file->size;
	return r;
}

static int sim_rename(struct disk *base, const char *from, const char *to)
{
	struct sim_disk *disk = sim(base);
	const struct sim_name *at = find(disk->names, from);
	int r = begin(disk);

	if (!r && !at)
		r = -ENOENT;
	if (!r)
		change_name(disk, SIM_RENAME, from, to, at->file);
	return r;
}

static int sim_unlink(struct disk *base, const char *name)
{
	struct sim_disk *disk = sim(base);
	int r = begin(disk);

	if (!r && !find(disk->names, name))
		r = -ENOENT;
	if (!r)
		change_name(disk, SIM_UNLINK, name, "", -1);
	return r;
}

static int sim_sync_names(struct disk *base)
{
	struct sim_disk *disk = sim(base);
	int r = begin(disk);

	if (r < 0)
		return r;
	memcpy(disk->durable, disk->names, sizeof(disk->durable));
	disk->nr_changes = 0;
	return 0;
}

static int sim_list(struct disk *base, disk_visit_t visit, void *data)
{
	struct sim_disk *disk = sim(base);
	struct sim_name names[SIM_FILES];
	uint32_t i;
	int r = 0;

	memcpy(names, disk->names, sizeof(names));
	for (i = 0; !r && i < SIM_FILES; i++)
		if (names[i].name[0])
			r = visit(data, names[i].name);
	return r;
}

static const struct disk_ops sim_ops = {
	.open = sim_open,
	.close = sim_close,
	.size = sim_size,
	.read = sim_read,
	.write = sim_write,
	.sync = sim_sync,
	.rename = sim_rename,
	.unlink = sim_unlink,
	.sync_names = sim_sync_names,
	.list = sim_list,
};

/* ------------------------------------------------------------------ crashes */

void sim_disk_init(struct sim_disk *disk)
{
	*disk = (struct sim_disk) {
		.disk = { .ops = &sim_ops, .align = SECTOR },
		.max_store = 4096,
		.nr_store = 1,
		.crash_at = UINT64_MAX,
	};
	disk->store = calloc(disk->max_store, SECTOR);
	assert(disk->store);
}

void sim_disk_deinit(struct sim_disk *disk)
{
	free(disk->store);
}

void sim_disk_copy(struct sim_disk *to, const struct sim_disk *from)
{
	unsigned char *memory = to->store;
	uint32_t max = to->max_store;

	if (max < from->max_store) {
		max = from->max_store;
		memory = realloc(memory, (size_t)max * SECTOR);
		assert(memory);
	}
	*to = *from;
	to->store = memory;
	to->max_store = max;
	memcpy(to->store, from->store, (size_t)from->nr_store * SECTOR);
}

static void crash_file(struct sim_file *file, uint64_t *random)
{
	/* Each file leans another way, so that all and nothing come, too. */
	uint32_t keep = sim_random(random, 5), i, nr;

	for (i = 0; i < SIM_SECTORS; i++) {
		nr = file->nr_versions[i];
		if (!nr)
			continue;
		file->nr_versions[i] = 0;
		if (sim_random(random, 4) < keep)
			file->now[i] =
				file->versions[i][sim_random(random, nr)];
		else
			file->now[i] = file->durable[i];
		file->durable[i] = file->now[i];
	}
	if (file->size != file->durable_size && !sim_random(random, 2))
		file->size = file->durable_size;
	file->durable_size = file->size;
}

static void keep_file(struct sim_file *file)
{
	memcpy(file->durable, file->now, sizeof(file->durable));
	memset(file->nr_versions, 0, sizeof(file->nr_versions));
	file->durable_size = file->size;
}

/* Keeps only the contents that some file has. */
static void compact(struct sim_disk *disk)
{
	unsigned char *memory = calloc(disk->max_store, SECTOR);
	uint32_t nr = 1, i, k;

	assert(memory);
	for (i = 0; i < SIM_FILES; i++) {
		for (k = 0; disk->files[i].used && k < SIM_SECTORS; k++) {
			sim_sector_t *now = &disk->files[i].now[k];

			if (!*now)
				continue;
			memcpy(memory + (size_t)nr * SECTOR,
			       disk->store + (size_t)*now * SECTOR, SECTOR);
			*now = nr++;
		}
		memcpy(disk->files[i].durable, disk->files[i].now,
		       sizeof(disk->files[i].durable));
	}
	free(disk->store);
	disk->store = memory;
	disk->nr_store = nr;
}

void sim_disk_crash(struct sim_disk *disk, uint64_t *random, bool all)
{
	uint32_t keep = sim_random(random, 5), i;

	for (i = 0; !all && i < disk->nr_changes; i++)
		if (sim_random(random, 4) < keep)
			apply(disk->durable, &disk->changes[i]);
	if (all)
		memcpy(disk->durable, disk->names, sizeof(disk->durable));
	memcpy(disk->names, disk->durable, sizeof(disk->names));
	disk->nr_changes = 0;
	collect(disk);
	for (i = 0; i < SIM_FILES; i++) {
		if (all)
			keep_file(&disk->files[i]);
		else
			crash_file(&disk->files[i], random);
	}
	compact(disk);
	disk->operations = 0;
	disk->crash_at = UINT64_MAX;
	disk->fail_at = 0;
	disk->is_dead = false;
}

void sim_disk_damage(struct sim_disk *disk, const char *name, uint32_t sector,
		     uint64_t *random)
{
	struct sim_name *at = find(disk->names, name);
	unsigned char data[SECTOR];
	uint32_t i;

	assert(at);
	for (i = 0; i < SECTOR; i++)
		data[i] = sim_random(random, 256);
	disk->files[at->file].now[sector] = store(disk, data);
}
