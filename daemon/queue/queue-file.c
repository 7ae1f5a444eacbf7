// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The file of one declared queue: its keys and their values.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <linux/expiry.h>

#include "daemon/queue/access.h"
#include "daemon/queue/queue-file.h"
#include "daemon/queue/queue.h"
#include "daemon/util/group.h"
#include "daemon/util/key-file.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

#define LIMIT_MAX	(1ULL << 30)

/* The keys that the file had, as far as other keys depend on them. */
struct reader {
	struct declaration *to;
	bool has_owner;
	bool has_group;
};

/* Reads a whole number of @base that is at most @max. Returns false if @value
 * is none.
 */
static bool parse_number(const char *value, int base, uint64_t max,
			 uint64_t *number)
{
	const char *end = key_file_number(value, base, number);

	return end && !*end && *number <= max;
}

static const char *set_owner(struct reader *reader, const char *value)
{
	struct declaration *to = reader->to;
	const struct passwd *user;
	uint64_t number;

	if (parse_number(value, 10, UINT32_MAX - 1, &number)) {
		to->uid = number;
		user = getpwuid(to->uid);
	} else {
		user = getpwnam(value);
		if (!user)
			return "is not a user";
		to->uid = user->pw_uid;
	}
	if (!reader->has_group)
		to->gid = user ? user->pw_gid : GROUP_NONE;
	reader->has_owner = true;
	return NULL;
}

static const char *set_group(struct reader *reader, const char *value)
{
	reader->has_group = true;
	return group_find(value, &reader->to->gid) ? NULL : "is not a group";
}

static const char *set_mode(struct reader *reader, const char *value)
{
	uint64_t number;

	if (!parse_number(value, 8, 0777, &number) || strlen(value) < 3)
		return "is not three octal digits";
	reader->to->access = number;
	return NULL;
}

static const char *set_clock(struct reader *reader, const char *value)
{
	if (!strcmp(value, "realtime"))
		reader->to->clock_id = CLOCK_REALTIME;
	else if (!strcmp(value, "monotonic"))
		reader->to->clock_id = CLOCK_MONOTONIC;
	else if (!strcmp(value, "boottime"))
		reader->to->clock_id = CLOCK_BOOTTIME;
	else
		return "is not realtime, monotonic or boottime";
	return NULL;
}

static const char *set_flag(struct reader *reader, uint32_t flag,
			    const char *value)
{
	if (!strcmp(value, "yes"))
		reader->to->mode |= flag;
	else if (!strcmp(value, "no"))
		reader->to->mode &= ~flag;
	else
		return "is not yes or no";
	return NULL;
}

static const char *set_keyed(struct reader *reader, const char *value)
{
	return set_flag(reader, EXPIRY_MODE_KEYED, value);
}

static const char *set_ack(struct reader *reader, const char *value)
{
	return set_flag(reader, EXPIRY_MODE_ACK, value);
}

static const char *set_durable(struct reader *reader, const char *value)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return "is not yes or no";
	reader->to->is_durable = !strcmp(value, "yes");
	return NULL;
}

static const char *set_limit(struct reader *reader, const char *value)
{
	uint64_t number;

	if (!parse_number(value, 10, LIMIT_MAX, &number) || !number)
		return "is not in 1 to 1073741824";
	reader->to->limit = number;
	return NULL;
}

/* Sets slack_ns from a number with its unit, up to an hour. */
static const char *set_slack(struct reader *reader, const char *value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 },
		{ "s", 1000000000 },
	};
	const uint64_t most_ns = 3600000000000;
	const char *unit;
	uint64_t number;
	size_t i;

	if (!strcmp(value, "0")) {
		reader->to->slack_ns = 0;
		return NULL;
	}
	unit = key_file_number(value, 10, &number);
	for (i = 0; unit && i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].name) ||
		    number > most_ns / units[i].ns)
			continue;
		reader->to->slack_ns = number * units[i].ns;
		return NULL;
	}
	return "is not a time with its unit, such as 500us, 10ms or 1s";
}

static const char *set_layout(struct reader *reader, const char *value)
{
	if (!strcmp(value, "sorted"))
		reader->to->layout = EXPIRY_LAYOUT_SORTED;
	else if (!strcmp(value, "subtree"))
		reader->to->layout = EXPIRY_LAYOUT_SUBTREE;
	else if (!strcmp(value, "radix"))
		reader->to->layout = EXPIRY_LAYOUT_RADIX;
	else
		return "is not radix, sorted or subtree";
	return NULL;
}

static const struct {
	const char *name;
	const char *(*set)(struct reader *reader, const char *value);
} queue_keys[] = {
	{ "owner", set_owner },
	{ "group", set_group },
	{ "mode", set_mode },
	{ "clock", set_clock },
	{ "keyed", set_keyed },
	{ "ack", set_ack },
	{ "durable", set_durable },
	{ "limit", set_limit },
	{ "slack", set_slack },
	{ "layout", set_layout },
};

static const char *set_key(void *data, const char *key, const char *value)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(queue_keys); i++)
		if (!strcmp(queue_keys[i].name, key))
			return queue_keys[i].set(data, value);
	return key_file_unknown;
}

static int read_keys(struct declaration *to, FILE *file)
{
	struct reader reader = { .to = to };
	int r = key_file_read(file, to->path, set_key, &reader);

	if (!r && !reader.has_owner) {
		log_err("%s: owner is missing", to->path);
		r = -EINVAL;
	}
	if (!r && to->is_durable && to->mode != EXPIRY_MODE_ALL) {
		log_err("%s: durable needs keyed = yes and ack = yes", to->path);
		r = -EINVAL;
	}
	return r;
}

/* Returns whether a file is a mask, as for systemd: empty, or a link to
 * /dev/null.
 */
static bool is_mask(const struct stat *st)
{
	return (S_ISREG(st->st_mode) && !st->st_size) ||
	       (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3));
}

int queue_file_read(struct declaration *declaration)
{
	/* O_NONBLOCK: a FIFO must not block the daemon. */
	int fd = open(declaration->path,
		      O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	FILE *file;
	int r = 0;

	declaration->gid = GROUP_NONE;
	declaration->access = ACCESS_OWNER_ALL;
	declaration->clock_id = CLOCK_REALTIME;
	declaration->layout = LAYOUT_CONFIGURED;
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		log_err("%s: %s", declaration->path, strerror(-r));
	} else if (is_mask(&st)) {
		declaration->is_mask = true;
	} else if (!S_ISREG(st.st_mode)) {
		r = -EINVAL;
		log_err("%s: is not a file", declaration->path);
	} else {
		file = fdopen(fd, "r");
		if (file) {
			r = read_keys(declaration, file);
			fclose(file);
			fd = -1;
		} else {
			r = -ENOMEM;
			log_err("%s: %s", declaration->path, strerror(-r));
		}
	}
	if (fd >= 0)
		close(fd);
	declaration->is_good = !r;
	return r;
}
