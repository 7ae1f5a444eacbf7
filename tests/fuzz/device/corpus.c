// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus.h"
#include "cover.h"
#include "report.h"

#define PATH_SIZE	512

struct input *corpus[CORPUS_MAX];
unsigned int corpus_nr;

struct input *corpus_add(const void *data, size_t size)
{
	struct input *input;

	if (corpus_nr == CORPUS_MAX)
		return NULL;
	input = calloc(1, sizeof(*input));
	if (!input)
		die("calloc");
	if (size > PROGRAM_MAX)
		size = PROGRAM_MAX;
	memcpy(input->data, data, size);
	input->size = size;
	corpus[corpus_nr++] = input;
	return input;
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

unsigned int corpus_load(const char *dir)
{
	struct dirent **entries;
	uint8_t data[PROGRAM_MAX];
	char path[PATH_SIZE];
	unsigned int before = corpus_nr;
	int i, fd, nr;
	ssize_t size;

	nr = scandir(dir, &entries, is_file, alphasort);
	for (i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		free(entries[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		size = fd < 0 ? -1 : read(fd, data, sizeof(data));
		if (size >= (ssize_t)PROGRAM_MIN)
			corpus_add(data, size);
		close(fd);
	}
	if (nr >= 0)
		free(entries);
	return corpus_nr - before;
}

/* FNV-1a. */
static uint64_t hash(const uint8_t *data, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325;

	while (size--)
		hash = (hash ^ *data++) * 0x100000001b3;
	return hash;
}

void corpus_name(char name[NAME_SIZE], const void *data, size_t size)
{
	snprintf(name, NAME_SIZE, "%012llx",
		 (unsigned long long)hash(data, size) >> 16);
}

bool corpus_save(const char *dir, const void *data, size_t size)
{
	char name[NAME_SIZE], path[PATH_SIZE];
	ssize_t ret;
	int fd;

	corpus_name(name, data, size);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return false;
	ret = write(fd, data, size);
	close(fd);
	return ret == (ssize_t)size;
}

/* Returns how many of its edges are not yet in @covered. */
static unsigned int adds(const struct input *input, const uint8_t *covered)
{
	unsigned int i, nr = 0;

	for (i = 0; i < input->nr_marks; i++)
		nr += !covered[input->marks[i]];
	return nr;
}

void corpus_cover(const char *dir, unsigned int most)
{
	static uint8_t covered[COVER_EDGES];
	unsigned int i, best, most_added, added, nr, edges = 0;

	for (nr = 0; nr < most; nr++) {
		for (i = 0, most_added = 0, best = 0; i < corpus_nr; i++) {
			added = adds(corpus[i], covered);
			if (added > most_added) {
				most_added = added;
				best = i;
			}
		}
		if (!most_added)
			break;
		edges += most_added;
		for (i = 0; i < corpus[best]->nr_marks; i++)
			covered[corpus[best]->marks[i]] = 1;
		if (!corpus_save(dir, corpus[best]->data, corpus[best]->size))
			die(dir);
	}
	printf("# %u programs of %u go along %u edges of %u\n", nr, corpus_nr,
	       edges, cover_edges());
}
