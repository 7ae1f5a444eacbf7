// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "daemon/util/config.h"
#include "daemon/util/memory-limit.h"
#include "daemon/util/util.h"

#define PATH_SIZE	4096

/* Most memory for records that clients do not read, unless configured
 * otherwise.
 */
#define BACKLOG_DEFAULT	(256ULL << 20)

/* Mount points of control groups: version 2 alone or beside version 1, version
 * 1.
 */
static const struct hierarchy {
	const char *controller;	/* in /proc/self/cgroup */
	const char *mount;
	const char *files[2];
} hierarchies[] = {
	{ "", "/sys/fs/cgroup", { "memory.max", "memory.high" } },
	{ "", "/sys/fs/cgroup/unified", { "memory.max", "memory.high" } },
	{ "memory", "/sys/fs/cgroup/memory", { "memory.limit_in_bytes" } },
};

/* Returns the number in a file; UINT64_MAX: there is none, or "max". */
static uint64_t read_limit(const char *path)
{
	unsigned long long limit;
	FILE *file = fopen(path, "re");
	int n;

	if (!file)
		return UINT64_MAX;
	n = fscanf(file, "%llu", &limit);
	fclose(file);
	return n == 1 ? limit : UINT64_MAX;
}

/* Returns the least limit of the group @group and of all groups above it. */
static uint64_t group_limit(const char *root, const struct hierarchy *hierarchy,
			    const char *group)
{
	char dir[PATH_SIZE], path[PATH_SIZE + 32];
	uint64_t limit = UINT64_MAX;
	size_t i, top;
	char *slash;
	int len;

	len = snprintf(dir, sizeof(dir), "%s%s%s", root, hierarchy->mount,
		       group);
	/* A path with ".." is a group outside this namespace. */
	if (len >= (int)sizeof(dir) || *group != '/' || strstr(group, "/.."))
		return UINT64_MAX;
	top = strlen(root) + strlen(hierarchy->mount);
	while (strlen(dir) > top && dir[strlen(dir) - 1] == '/')
		dir[strlen(dir) - 1] = '\0';
	for (;;) {
		for (i = 0; i < ARRAY_SIZE(hierarchy->files); i++) {
			if (!hierarchy->files[i])
				continue;
			snprintf(path, sizeof(path), "%s/%s", dir,
				 hierarchy->files[i]);
			limit = min_u64(limit, read_limit(path));
		}
		if (strlen(dir) <= top)
			return limit;
		slash = strrchr(dir, '/');
		*slash = '\0';
	}
}

static bool has_controller(char *controllers, const char *wanted)
{
	char *rest = NULL, *name;

	if (!*wanted || !*controllers)
		return !*wanted && !*controllers;
	for (name = strtok_r(controllers, ",", &rest); name;
	     name = strtok_r(NULL, ",", &rest))
		if (!strcmp(name, wanted))
			return true;
	return false;
}

/* Returns the least limit of the groups that a line of /proc/self/cgroup names.
 */
static uint64_t line_limit(const char *root, const char *line)
{
	const char *controllers = strchr(line, ':');
	const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	uint64_t limit = UINT64_MAX;
	char names[256];
	size_t i;

	if (!group || group - controllers > (int)sizeof(names))
		return UINT64_MAX;
	for (i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		memcpy(names, controllers + 1, group - controllers - 1);
		names[group - controllers - 1] = '\0';
		if (has_controller(names, hierarchies[i].controller))
			limit = min_u64(limit, group_limit(root,
							   &hierarchies[i],
							   group + 1));
	}
	return limit;
}

static uint64_t groups_limit(const char *root)
{
	uint64_t limit = UINT64_MAX;
	char path[PATH_SIZE], line[PATH_SIZE];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		limit = min_u64(limit, line_limit(root, line));
	}
	fclose(file);
	return limit;
}

uint64_t memory_limit(const char *root, bool *is_groupp)
{
	uint64_t machine = UINT64_MAX, group = groups_limit(root);
	struct sysinfo info;

	if (!sysinfo(&info))
		machine = (uint64_t)info.totalram * info.mem_unit;
	*is_groupp = group < machine;
	return min_u64(group, machine);
}

/* Reserves at least a sixteenth for the rest: queues and clients without
 * timers, and the kernel's charges for sockets and page tables.
 */
void memory_plan_init(struct memory_plan *plan, const struct config *config,
		      const char *root)
{
	uint64_t buffers = config->threads * config->buffers *
			   config->buffer_size * 3 / 2;
	uint64_t other;

	plan->limit = memory_limit(root, &plan->is_group);
	plan->backlog = config->backlog_memory;
	if (!plan->backlog)
		plan->backlog = min_u64(BACKLOG_DEFAULT, plan->limit / 8);
	plan->timers = config->memory;
	if (plan->timers)
		return;
	other = plan->backlog + buffers + plan->limit / 16;
	plan->timers = plan->limit / 4 * 3;
	if (other > plan->limit - plan->timers)
		plan->timers = other < plan->limit ? plan->limit - other : 0;
	/* If the settings leave nothing, timers get an eighth all the same: the
	 * administrator must correct the settings.
	 */
	if (plan->timers < plan->limit / 8)
		plan->timers = plan->limit / 8;
}
