// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The files of declared queues. They appear, change and go before a reload, and some
 * have faults. What the daemon makes of them is held against what they said when it
 * read them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/queue/declaration.h"
#include "daemon/queue/queue-file.h"
#include "daemon/util/group.h"
#include "daemon/util/key-file.h"
#include "tests/sim/sim.h"

#define FILES		7	/* the first five are names that clients use */

int __wrap_key_file_visit_folder(const char *folder, key_file_visit_t visit,
				 void *data);
int __wrap_queue_file_read(struct declaration *declaration);

/* The files now, and as they were last read. */
static struct declaration files[FILES], read_files[FILES];
static bool is_there[FILES], was_there[FILES];

static void change(uint32_t i, struct rng *rng)
{
	static const uid_t uids[] = { 0, 1000, 1001 };
	/* Some may produce or consume, and not look. */
	static const uint32_t accesses[] = { 0700, 0770, 0333, 0733, 0337,
					     0704, 0007, 0722 };
	struct declaration *file = &files[i];

	*file = (struct declaration) {
		.is_good = !rng_hits(rng, 100),
		.is_mask = rng_hits(rng, 50),
		.uid = uids[rng_below(rng, 3)],
		.gid = rng_hits(rng, 500) ? uids[rng_below(rng, 3)] :
					    GROUP_NONE,
		.access = accesses[rng_below(rng, 8)],
		.clock_id = CLOCK_MONOTONIC,
		.limit = rng_hits(rng, 300) ? 1 + rng_below(rng, 50) : 0,
		.layout = rng_hits(rng, 500) ? EXPIRY_LAYOUT_SORTED :
					       LAYOUT_CONFIGURED,
	};
	topic_kind('a' + i, &file->clock_id, &file->mode);
	is_there[i] = rng_hits(rng, 600);
}

void declared_init(struct rng *rng)
{
	uint32_t i;

	sim.declares = rng_hits(rng, 400) && !sim.crashes;
	for (i = 0; sim.declares && i < FILES; i++)
		if (rng_hits(rng, 300))
			change(i, rng);
}

void declared_step(struct rng *rng)
{
	if (sim.declares)
		change(rng_below(rng, FILES), rng);
}

/* Lets the daemon read all files, by name. */
int __wrap_key_file_visit_folder(const char *folder, key_file_visit_t visit,
				 void *data)
{
	char path[32];
	uint32_t i;
	int r = 0;

	(void)folder;
	memcpy(read_files, files, sizeof(files));
	memcpy(was_there, is_there, sizeof(is_there));
	for (i = 0; !r && i < FILES; i++) {
		if (!is_there[i])
			continue;
		snprintf(path, sizeof(path), "/queues/%c.conf", 'a' + i);
		r = visit(data, path);
	}
	return r;
}

int __wrap_queue_file_read(struct declaration *declaration)
{
	struct declaration *file = &files[declaration->name[0] - 'a'];
	struct declaration read = *file;

	memcpy(read.name, declaration->name, sizeof(read.name));
	read.path = declaration->path;
	*declaration = read;
	return read.is_good || read.is_mask ? 0 : -EINVAL;
}

const struct declaration *declared_find(const char *name)
{
	uint32_t i = name[0] - 'a';

	if (name[1] || i >= FILES || !was_there[i] || read_files[i].is_mask)
		return NULL;
	return &read_files[i];
}
