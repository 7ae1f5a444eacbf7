// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/queue/declaration.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/util/config.h"
#include "daemon/util/key-file.h"
#include "daemon/util/log.h"
#include "daemon/util/name.h"
#include "daemon/util/util.h"

#define SUFFIX	(sizeof(".conf") - 1)

/* The set that is read, and the number of faults so far. */
struct reader {
	struct declarations *set;
	uint32_t faults;
};

/* Derives a queue's name from its file's. Returns false if it is not valid. */
static bool parse_name(const char *path, char *name)
{
	const char *file = strrchr(path, '/') + 1;
	size_t len = strlen(file) - SUFFIX;

	if (len > EXPIRY_NAME_MAX)
		return false;
	memset(name, 0, EXPIRY_NAME_MAX);
	memcpy(name, file, len);
	return name_is_valid(name);
}

static bool has_name(const struct declarations *set, const char *name)
{
	uint32_t i;

	for (i = 0; i < set->nr; i++)
		if (!memcmp(set->all[i].name, name, EXPIRY_NAME_MAX))
			return true;
	return false;
}

/* Adds a declaration with only @path and @name. NULL: no memory. */
static struct declaration *add(struct declarations *set, const char *path,
			       const char *name)
{
	struct declaration *all;

	/* Double the array at each power of two. */
	if (!(set->nr & (set->nr - 1))) {
		all = realloc(set->all, (set->nr ? 2 * set->nr : 1) *
					sizeof(*all));
		if (!all)
			return NULL;
		set->all = all;
	}
	all = &set->all[set->nr];
	*all = (struct declaration) { .path = strdup(path) };
	if (!all->path)
		return NULL;
	set->nr++;
	memcpy(all->name, name, EXPIRY_NAME_MAX);
	return all;
}

/* Adds the file's declaration to the set. Returns 0 or -ENOMEM. */
static int read_one(void *data, const char *path)
{
	struct reader *reader = data;
	struct declaration *one;
	char name[EXPIRY_NAME_MAX];

	if (!parse_name(path, name)) {
		log_err("%s: a queue's name is up to %d of A-Z a-z 0-9 . _ -",
			path, EXPIRY_NAME_MAX);
		reader->faults++;
		return 0;
	}
	if (has_name(reader->set, name))
		return 0;
	one = add(reader->set, path, name);
	if (!one)
		return -ENOMEM;
	reader->faults += queue_file_read(one) < 0;
	return 0;
}

/* Adds the declarations of a folder. Returns 0 or -ENOMEM. */
static int read_folder(struct reader *reader, const char *folder)
{
	int r = key_file_visit_folder(folder, read_one, reader);

	if (r == -ENOMEM)
		return r;
	reader->faults += r < 0;
	return 0;
}

static int compare(const void *one, const void *other)
{
	const struct declaration *a = one, *b = other;

	return memcmp(a->name, b->name, EXPIRY_NAME_MAX);
}

/* Drops the masks, which only hide other files, and sorts the rest. */
static void tidy(struct declarations *set)
{
	uint32_t i, nr = 0;

	for (i = 0; i < set->nr; i++) {
		if (set->all[i].is_mask)
			free(set->all[i].path);
		else
			set->all[nr++] = set->all[i];
	}
	set->nr = nr;
	if (nr)
		qsort(set->all, nr, sizeof(*set->all), compare);
}

int declarations_place(struct declarations *set, struct directory *directory)
{
	uint32_t i;

	set->directory = directory;
	for (i = 0; i < set->nr; i++) {
		struct declaration *one = &set->all[i];

		one->in_directory = directory_get(directory, one->name);
		if (!one->in_directory) {
			log_err("declared queues: %s", strerror(ENOMEM));
			return -ENOMEM;
		}
	}
	return 0;
}

struct declarations *declarations_read(const struct config *config,
				       uint32_t *faults)
{
	struct declarations *set = calloc(1, sizeof(*set));
	struct reader reader = { .set = set };
	char folders[sizeof(config->queue_files)], *next = folders, *folder;
	int r = set ? 0 : -ENOMEM;

	memcpy(folders, config->queue_files, sizeof(folders));
	while (!r && (folder = strsep(&next, ":")))
		if (*folder)
			r = read_folder(&reader, folder);
	*faults = r ? 1 : reader.faults;
	if (!r) {
		tidy(set);
		return set;
	}
	log_err("declared queues: %s", strerror(-r));
	declarations_free(set);
	return NULL;
}

void declarations_free(struct declarations *set)
{
	uint32_t i;

	if (!set)
		return;
	for (i = 0; i < set->nr; i++) {
		free(set->all[i].path);
		directory_unref(set->directory, set->all[i].in_directory);
	}
	free(set->all);
	free(set);
}

const struct declaration *declarations_find(const struct declarations *set,
					    const char *name)
{
	struct declaration key;

	if (!set || !set->nr)
		return NULL;
	memcpy(key.name, name, EXPIRY_NAME_MAX);
	return bsearch(&key, set->all, set->nr, sizeof(key), compare);
}

uint64_t declaration_limit(const struct declaration *file,
			   const struct config *config)
{
	uint64_t most = config->timers_per_queue;

	return file && file->limit ? min_u64(file->limit, most) : most;
}

void declaration_apply(const struct declaration *file, const struct config *config,
		       struct queue_plan *plan)
{
	bool has_layout = file && file->layout != LAYOUT_CONFIGURED;

	plan->config.limit = declaration_limit(file, config);
	plan->config.slack_ns = file ? file->slack_ns : 0;
	plan->layout = has_layout ? file->layout : config_layout(config);
}
