// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/key-file.h"
#include "daemon/util/log.h"

const char key_file_unknown[] = "is not a key";

/* Cuts white space off both ends. */
static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

static int read_line(char *line, const char *path, int number,
		     key_file_set_t set, void *data)
{
	char *comment = strchr(line, '#'), *key, *value;
	const char *why;

	if (comment)
		*comment = '\0';
	key = trim(line);
	if (!*key)
		return 0;
	value = strchr(key, '=');
	if (!value) {
		log_err("%s:%d: '%s' is not 'key = value'", path, number, key);
		return -EINVAL;
	}
	*value++ = '\0';
	key = trim(key);
	value = trim(value);
	why = set(data, key, value);
	if (!why)
		return 0;
	if (why == key_file_unknown)
		log_err("%s:%d: '%s' %s", path, number, key, why);
	else
		log_err("%s:%d: %s: '%s' %s", path, number, key, value, why);
	return -EINVAL;
}

int key_file_read(FILE *file, const char *path, key_file_set_t set, void *data)
{
	char line[1024];
	int number = 0, r = 0;

	while (fgets(line, sizeof(line), file)) {
		number++;
		if (strlen(line) == sizeof(line) - 1) {
			log_err("%s:%d: line too long", path, number);
			return -EINVAL;
		}
		if (read_line(line, path, number, set, data))
			r = -EINVAL;
	}
	if (ferror(file)) {
		log_err("%s: cannot be read", path);
		r = -EIO;
	}
	return r;
}

const char *key_file_number(const char *value, int base, uint64_t *number)
{
	char *end;

	/* strtoull() would take a sign. */
	if (!isdigit((unsigned char)*value))
		return NULL;
	*number = strtoull(value, &end, base);
	return end;
}

static int is_drop_in(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t len = strlen(name);

	return name[0] != '.' && len > 5 && !strcmp(name + len - 5, ".conf");
}

static int visit_file(const char *folder, const char *name,
		      key_file_visit_t visit, void *data)
{
	char *path;
	int r;

	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		log_err("%s/%s: %s", folder, name, strerror(ENOMEM));
		return -ENOMEM;
	}
	r = visit(data, path);
	free(path);
	return r;
}

int key_file_visit_folder(const char *folder, key_file_visit_t visit,
			  void *data)
{
	struct dirent **entries;
	int i, nr, r = 0;

	nr = scandir(folder, &entries, is_drop_in, alphasort);
	if (nr < 0 && errno != ENOENT && errno != ENOTDIR) {
		r = -errno;
		log_err("%s: %s", folder, strerror(-r));
	}
	for (i = 0; i < nr; i++) {
		if (!r)
			r = visit_file(folder, entries[i]->d_name, visit, data);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
	return r;
}
