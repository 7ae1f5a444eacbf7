// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expiry/wire.h>

#include "daemon/util/config.h"
#include "daemon/util/group.h"
#include "daemon/util/key-file.h"
#include "daemon/util/log.h"
#include "daemon/util/socket-default.h"
#include "daemon/util/util.h"

/* Greatest setting in bytes or timers. It is more than possible, and sums of
 * several such values still fit in 64 bits.
 */
#define MOST	(1ULL << 48)

/* Longest time between flushes of the journal. */
#define COMMIT_MS_MAX	60000

/**
 * struct config_key - a setting
 * @name: in the file
 * @offset: in struct config
 * @text: size of a string, 0 = a number
 * @value: default of a number; likewise @min, @max
 * @string: default of a string
 * @base: of a number; 0 = 10
 * @start: read at the start only, not on a reload
 * @derived: 0, below @min, lets the daemon derive it
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
	bool start;
	bool derived;
};

#define TEXT(key, preset, at_start) { \
	.name = #key, \
	.offset = offsetof(struct config, key), \
	.text = sizeof(((struct config *)NULL)->key), \
	.string = (preset), \
	.start = (at_start), \
}

#define LIMIT(key, preset, least, most) NUMBER(key, preset, least, most, false)
#define FIXED(key, preset, least, most) NUMBER(key, preset, least, most, true)
#define NUMBER(key, preset, least, most, at_start) { \
	.name = #key, \
	.offset = offsetof(struct config, key), \
	.value = (preset), \
	.min = (least), \
	.max = (most), \
	.start = (at_start), \
}

/* All limits with their defaults. */
static const struct config_key config_keys[] = {
	TEXT(socket, EXPIRY_SOCKET_DEFAULT, true),
	TEXT(device, "/dev/expiry", true),
	TEXT(engine, "auto", true),
	TEXT(loop, "auto", true),
	TEXT(layout, "auto", false),
	TEXT(log_level, "info", false),
	TEXT(journal, "none", true),
	TEXT(commit, "flushed", true),
	TEXT(queue_files, CONFIG_QUEUE_FILES, false),
	TEXT(undeclared, "anybody", false),
	TEXT(undeclared_group, "expiry", false),
	{
		.name = "socket_mode",
		.offset = offsetof(struct config, socket_mode),
		.value = 0666,
		.max = 0777,
		.base = 8,
		.start = true,
	},
	FIXED(journal_size, 8589934592, 0, MOST),
	FIXED(threads, 1, 1, THREADS_MAX),
	LIMIT(connections, 16384, 1, 1 << 20),
	LIMIT(connections_per_user, 4096, 1, 1 << 20),
	LIMIT(queues, 32768, 1, 1 << 20),
	LIMIT(queues_per_user, 16384, 1, 1 << 20),
	LIMIT(timers_per_queue, 1 << 24, 1, 1 << 30),
	LIMIT(timers_per_user, 1 << 25, 1, MOST),
	FIXED(memory, 0, 0, MOST),
	FIXED(records_in_flight, 4096, 64, 1 << 16),
	{
		.name = "backlog_memory",
		.offset = offsetof(struct config, backlog_memory),
		.min = 1 << 20,
		.max = MOST,
		.derived = true,
	},
	LIMIT(credit_max, 1 << 20, 1, UINT32_MAX),
	LIMIT(hello_timeout, 10000, 0, 3600000),
	LIMIT(busy_after, 4000, 0, 3600000),
	LIMIT(observers_per_queue, 16, 0, 1 << 16),
	LIMIT(observer_memory, 1 << 20, 1 << 12, 1 << 30),
	LIMIT(kept_queues, 3000, 0, 1 << 20),
	LIMIT(kept_queues_per_user, 1500, 0, 1 << 20),
	FIXED(buffers, 256, 4, 1 << 14),
	FIXED(buffer_size, 16384, 2048, 1 << 20),
};

static void *field(struct config *config, const struct config_key *key)
{
	return (char *)config + key->offset;
}

void config_init(struct config *config)
{
	const char *state;
	size_t i;

	memset(config, 0, sizeof(*config));
	for (i = 0; i < ARRAY_SIZE(config_keys); i++) {
		const struct config_key *key = &config_keys[i];

		if (key->text)
			strncpy(field(config, key), key->string, key->text);
		else
			*(uint64_t *)field(config, key) = key->value;
	}
	/* Clear all of it, as config_set() does. */
	memset(config->socket, 0, sizeof(config->socket));
	socket_default(config->socket, sizeof(config->socket));
	/* The service manager's StateDirectory=. */
	state = getenv("STATE_DIRECTORY");
	if (state && *state && strlen(state) < sizeof(config->journal)) {
		memset(config->journal, 0, sizeof(config->journal));
		strcpy(config->journal, state);
	}
}

uint32_t config_layout(const struct config *config)
{
	if (!strcmp(config->layout, "subtree"))
		return EXPIRY_LAYOUT_SUBTREE;
	if (!strcmp(config->layout, "sorted"))
		return EXPIRY_LAYOUT_SORTED;
	if (!strcmp(config->layout, "radix"))
		return EXPIRY_LAYOUT_RADIX;
	return 0;
}

/* Returns the milliseconds of a setting `commit`, 0 = it is none. */
static uint64_t commit_ms(const char *value)
{
	uint64_t ms;

	value = key_file_number(value, 10, &ms);
	return value && !strcmp(value, "ms") && ms <= COMMIT_MS_MAX ? ms : 0;
}

uint64_t config_commit_ns(const struct config *config)
{
	return commit_ms(config->commit) * NSEC_PER_MSEC;
}

static const char *set_number(struct config *config,
			      const struct config_key *key, const char *value)
{
	static char range[80];
	uint64_t number;

	value = key_file_number(value, key->base ? key->base : 10, &number);
	if (!value || *value)
		return "is not a number";
	if (number > key->max ||
	    (number < key->min && (number || !key->derived))) {
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
		if (!strcmp(name, "loop") && strcmp(value, "auto") &&
		    strcmp(value, "io_uring") && strcmp(value, "epoll"))
			return "is not auto, io_uring or epoll";
		if (!strcmp(name, "layout") && strcmp(value, "auto") &&
		    strcmp(value, "radix") && strcmp(value, "sorted") &&
		    strcmp(value, "subtree"))
			return "is not auto, radix, sorted or subtree";
		if (!strcmp(name, "log_level") && strcmp(value, "err") &&
		    strcmp(value, "warning") && strcmp(value, "info"))
			return "is not err, warning or info";
		if (!strcmp(name, "undeclared") && strcmp(value, "anybody") &&
		    strcmp(value, "group") && strcmp(value, "nobody"))
			return "is not anybody, group or nobody";
		if (!strcmp(name, "commit") && strcmp(value, "flushed") &&
		    !commit_ms(value))
			return "is not flushed, or a time of 1ms to 60000ms";
		/* strncpy() clears the rest, so that settings can be compared.
		 */
		strncpy(field(config, key), value, key->text);
		return NULL;
	}
	return key_file_unknown;
}

static const char *set_key(void *data, const char *key, const char *value)
{
	return config_set(data, key, value);
}

static int read_file(struct config *config, const char *path, bool needed)
{
	FILE *file = fopen(path, "re");
	int r;

	if (!file) {
		r = -errno;
		if (r == -ENOENT && !needed)
			return 0;
		log_err("%s: %s", path, strerror(errno));
		return r;
	}
	r = key_file_read(file, path, set_key, config);
	fclose(file);
	return r;
}

static int read_drop_in(void *data, const char *path)
{
	return read_file(data, path, true);
}

int config_read(struct config *config, const char *path, bool needed)
{
	char *dir;
	int r;

	r = read_file(config, path, needed);
	if (r)
		return r;
	if (asprintf(&dir, "%s.d", path) < 0) {
		log_err("%s.d: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	r = key_file_visit_folder(dir, read_drop_in, config);
	free(dir);
	return r;
}

int config_resolve(struct config *config)
{
	config->undeclared_gid = GROUP_NONE;
	if (strcmp(config->undeclared, "group") ||
	    group_find(config->undeclared_group, &config->undeclared_gid))
		return 0;
	log_err("undeclared_group: '%s' is not a group",
		config->undeclared_group);
	return -EINVAL;
}

void config_update(struct config *config, const struct config *from)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(config_keys); i++) {
		const struct config_key *key = &config_keys[i];
		void *to = field(config, key);
		const void *value = (const char *)from + key->offset;
		size_t size = key->text ? key->text : sizeof(uint64_t);

		if (!memcmp(to, value, size))
			continue;
		if (key->start)
			log_warning("%s: changes with the next start",
				    key->name);
		else
			memcpy(to, value, size);
	}
	config->undeclared_gid = from->undeclared_gid;
}
