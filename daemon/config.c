// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expiry/wire.h>

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/util.h"

/**
 * struct config_key - a setting
 * @name: in the file
 * @offset: in struct config
 * @text: room for a string there, 0 = it is a number
 * @value: default of a number; likewise @min, @max
 * @string: default of a string
 * @base: of a number; 0 = 10
 */
struct config_key {
	const char *name;
	size_t offset;
	size_t text;
	uint64_t value;
	uint64_t min;
	uint64_t max;
	const char *string;
	int base;
};

#define TEXT(key, preset) { \
	.name = #key, \
	.offset = offsetof(struct config, key), \
	.text = sizeof(((struct config *)NULL)->key), \
	.string = (preset), \
}

#define NUMBER(key, preset, least, most) { \
	.name = #key, \
	.offset = offsetof(struct config, key), \
	.value = (preset), \
	.min = (least), \
	.max = (most), \
}

/* Every limit there is, with its default. */
static const struct config_key config_keys[] = {
	TEXT(socket, EXPIRY_SOCKET_DEFAULT),
	TEXT(device, "/dev/expiry"),
	TEXT(engine, "auto"),
	TEXT(layout, "sorted"),
	{
		.name = "socket_mode",
		.offset = offsetof(struct config, socket_mode),
		.value = 0666,
		.max = 0777,
		.base = 8,
	},
	NUMBER(connections, 16384, 1, 1 << 20),
	NUMBER(connections_per_user, 15360, 1, 1 << 20),
	NUMBER(queues, 32768, 1, 1 << 20),
	NUMBER(queues_per_user, 16384, 1, 1 << 20),
	NUMBER(timers_per_queue, 1 << 24, 1, 1 << 30),
	NUMBER(timers_per_user, 1 << 25, 1, UINT64_MAX),
	NUMBER(memory, 0, 0, UINT64_MAX),
	NUMBER(records_in_flight, 4096, 64, 1 << 16),
	NUMBER(credit_max, 1 << 20, 1, UINT32_MAX),
	NUMBER(buffers, 256, 4, 1 << 14),
	NUMBER(buffer_size, 16384, 1024, 1 << 20),
};

static void *field(struct config *config, const struct config_key *key)
{
	return (char *)config + key->offset;
}

void config_init(struct config *config)
{
	size_t i;

	memset(config, 0, sizeof(*config));
	for (i = 0; i < ARRAY_SIZE(config_keys); i++) {
		const struct config_key *key = &config_keys[i];

		if (key->text)
			strcpy(field(config, key), key->string);
		else
			*(uint64_t *)field(config, key) = key->value;
	}
}

uint32_t config_layout(const struct config *config)
{
	return strcmp(config->layout, "subtree") ? EXPIRY_LAYOUT_SORTED :
						   EXPIRY_LAYOUT_SUBTREE;
}

static const char *set_number(struct config *config,
			      const struct config_key *key, const char *value)
{
	static char range[80];
	unsigned long long number;
	char *end;

	if (!isdigit((unsigned char)*value))
		return "is not a number";
	errno = 0;
	number = strtoull(value, &end, key->base ? key->base : 10);
	if (*end)
		return "is not a number";
	if (errno || number < key->min || number > key->max) {
		snprintf(range, sizeof(range), "is not in %llu to %llu",
			 (unsigned long long)key->min,
			 (unsigned long long)key->max);
		return range;
	}
	*(uint64_t *)field(config, key) = number;
	return NULL;
}

const char *config_set(struct config *config, const char *name,
		       const char *value)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(config_keys); i++) {
		const struct config_key *key = &config_keys[i];

		if (strcmp(key->name, name))
			continue;
		if (!key->text) {
			const char *why = set_number(config, key, value);

			if (why || strcmp(name, "buffer_size") ||
			    !(config->buffer_size % 64))
				return why;
			return "is not a multiple of 64";
		}
		if (!*value)
			return "is empty";
		if (strlen(value) >= key->text)
			return "is too long";
		if (!strcmp(name, "engine") && strcmp(value, "auto") &&
		    strcmp(value, "kernel") && strcmp(value, "embedded"))
			return "is not auto, kernel or embedded";
		if (!strcmp(name, "layout") && strcmp(value, "sorted") &&
		    strcmp(value, "subtree"))
			return "is not sorted or subtree";
		strcpy(field(config, key), value);
		return NULL;
	}
	return "is not a key";
}

/* Cut white space off both ends. */
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

static int config_line(struct config *config, const char *path, int number,
		       char *line)
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
	why = config_set(config, key, value);
	if (!why)
		return 0;
	if (!strcmp(why, "is not a key"))
		log_err("%s:%d: '%s' %s", path, number, key, why);
	else
		log_err("%s:%d: %s: '%s' %s", path, number, key, value, why);
	return -EINVAL;
}

int config_read(struct config *config, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	int number = 0, r = 0;

	if (!file) {
		r = -errno;
		log_err("%s: %s", path, strerror(errno));
		return r;
	}
	while (!r && fgets(line, sizeof(line), file)) {
		number++;
		if (strlen(line) == sizeof(line) - 1) {
			log_err("%s:%d: line too long", path, number);
			r = -EINVAL;
			break;
		}
		r = config_line(config, path, number, line);
	}
	if (!r && ferror(file)) {
		log_err("%s: cannot be read", path);
		r = -EIO;
	}
	fclose(file);
	return r;
}
