// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl queues: print each queue, its owner and its first deadline.
 */
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/output/time-text.h"
#include "tools/process.h"
#include "tools/queue-list.h"
#include "tools/session.h"

#define NAMES_MS	1000	/* longest wait of a shell that completes a name */
#define ACCESS_TEXT	8	/* bytes for three digits */
#define OWNER_TEXT	80	/* bytes for two names */

/**
 * struct widths - columns as wide as their longest cell
 */
struct widths {
	int name;
	int owner;
};

static const char *user_name(const struct expiry_queue *row)
{
	const struct passwd *user = getpwuid(row->daemon.uid);

	return user ? user->pw_name : NULL;
}

static bool has_group(const struct expiry_queue *row)
{
	return row->daemon.access && row->daemon.gid != EXPIRY_NO_GROUP;
}

static const char *group_name(const struct expiry_queue *row)
{
	const struct group *group;

	group = has_group(row) ? getgrgid(row->daemon.gid) : NULL;
	return group ? group->gr_name : NULL;
}

/* Writes USER or USER:GROUP; a user or group without a name as a number. */
static const char *owner_text(char *text, const struct expiry_queue *row)
{
	const char *user = user_name(row), *group = group_name(row);
	int used;

	if (user)
		used = snprintf(text, OWNER_TEXT, "%s", user);
	else
		used = snprintf(text, OWNER_TEXT, "%" PRIu32,
				(uint32_t)row->daemon.uid);
	if (used >= OWNER_TEXT || !has_group(row))
		return text;
	if (group)
		snprintf(text + used, OWNER_TEXT - used, ":%s", group);
	else
		snprintf(text + used, OWNER_TEXT - used, ":%" PRIu32,
			 (uint32_t)row->daemon.gid);
	return text;
}

/* Returns the queue's mode as three octal digits, or NULL from an older daemon. */
static const char *access_text(char *text, const struct expiry_queue *row)
{
	snprintf(text, ACCESS_TEXT, "%03o", row->daemon.access & 0777);
	return row->daemon.access ? text : NULL;
}

/* Returns the queue's mode. A durable one is keyed and acknowledging. */
static const char *mode_text(const struct expiry_queue *row)
{
	if (row->daemon.access & EXPIRY_QUEUE_DURABLE)
		return "durable";
	switch (row->stat.mode & EXPIRY_MODE_ALL) {
	case EXPIRY_MODE_KEYED:
		return "keyed";
	case EXPIRY_MODE_ACK:
		return "ack";
	case EXPIRY_MODE_ALL:
		return "keyed,ack";
	}
	return "plain";
}

static void print_consumer(const struct expiry_queue *row)
{
	const uint32_t pid = row->daemon.consumer_pid;
	char name[PROCESS_TEXT];

	if (!row->daemon.consumers)
		puts("none");
	else if (process_name(name, pid))
		printf("%" PRIu32 " %s\n", pid, name);
	else
		printf("%" PRIu32 "\n", pid);
}

static void print_row(const struct expiry_queue *row,
		      const struct widths *widths)
{
	const struct expiry_stat *stat = &row->stat;
	char name[QUEUE_LABEL], owner[OWNER_TEXT], digits[ACCESS_TEXT];
	char next[DISTANCE_TEXT];
	const char *access = access_text(digits, row);

	printf("%-*s  %-*s  %-6s  %-9s  %-9s  %10" PRIu64 "  %11s  ",
	       widths->name, queue_label(name, row), widths->owner,
	       owner_text(owner, row), access ? access : "-",
	       mode_text(row), clock_name(stat->clock_id),
	       (uint64_t)stat->armed,
	       distance_text(next, stat->next_ns, stat->now_ns));
	print_consumer(row);
}

static void print_head(const struct ctl *ctl, const struct widths *widths)
{
	if (isatty(STDOUT_FILENO))
		printf("%s%-*s  %-*s  %-6s  %-9s  %-9s  %10s  %11s  %s%s\n",
		       bold(ctl), widths->name, "QUEUE", widths->owner, "OWNER",
		       "ACCESS", "MODE", "CLOCK", "TIMERS", "NEXT", "CONSUMER",
		       plain(ctl));
}

static void widen(int *width, const char *text)
{
	const int len = strlen(text);

	if (len > *width)
		*width = len;
}

static void print_table(const struct ctl *ctl, const struct queues *queues)
{
	struct widths widths = { strlen("QUEUE"), strlen("OWNER") };
	char name[QUEUE_LABEL], owner[OWNER_TEXT];
	size_t i;

	for (i = 0; i < queues->nr; i++) {
		widen(&widths.name, queue_label(name, &queues->rows[i]));
		widen(&widths.owner, owner_text(owner, &queues->rows[i]));
	}
	print_head(ctl, &widths);
	for (i = 0; i < queues->nr; i++)
		print_row(&queues->rows[i], &widths);
}

static void print_json(const struct expiry_queue *row)
{
	const struct expiry_queue_stat *daemon = &row->daemon;
	const struct expiry_stat *stat = &row->stat;
	char name[PROCESS_TEXT], digits[ACCESS_TEXT];
	const char *consumer = NULL;
	struct json json;

	if (daemon->consumers && process_name(name, daemon->consumer_pid))
		consumer = name;
	json_begin(&json);
	json_text(&json, "queue", row->name);
	json_u32(&json, "uid", daemon->uid);
	json_text(&json, "user", user_name(row));
	json_text(&json, "group", group_name(row));
	json_text(&json, "access", access_text(digits, row));
	json_bool(&json, "declared", daemon->access & EXPIRY_QUEUE_DECLARED);
	json_text(&json, "clock", clock_name(stat->clock_id));
	json_bool(&json, "keyed", stat->mode & EXPIRY_MODE_KEYED);
	json_bool(&json, "ack", stat->mode & EXPIRY_MODE_ACK);
	json_bool(&json, "durable", daemon->access & EXPIRY_QUEUE_DURABLE);
	json_u64(&json, "armed", stat->armed);
	json_u64(&json, "unacked", stat->unacked);
	json_time(&json, "next", stat->next_ns, stat->clock_id);
	json_time(&json, "now", stat->now_ns, stat->clock_id);
	json_u32(&json, "connections", daemon->connections);
	json_u32(&json, "observers", daemon->observers);
	json_bool(&json, "consumer", daemon->consumers);
	json_u32(&json, "consumer_pid", daemon->consumer_pid);
	json_text(&json, "consumer_name", consumer);
	json_end(&json);
}

static void print(const struct ctl *ctl, const struct queues *queues)
{
	size_t i;

	if (!ctl->json && !(ctl->given & CTL_NAMES)) {
		print_table(ctl, queues);
		return;
	}
	for (i = 0; i < queues->nr; i++) {
		if (ctl->json)
			print_json(&queues->rows[i]);
		else
			puts(queues->rows[i].name);
	}
}

static int run_queues(struct ctl *ctl, char **args)
{
	struct queues queues = { 0 };
	int ret;

	(void)args;
	if (ctl->given & CTL_NAMES)
		ctl->timeout_ms = NAMES_MS;
	ret = ctl_open(ctl, NULL, 0, 0);
	if (!ret)
		ret = queues_ask(ctl, &queues);
	if (!ret) {
		queues_choose(ctl, &queues, ctl->given & CTL_NAMES);
		if (ctl->queue && !queues.nr)
			ret = ctl_error("%s: you have no such queue",
					ctl->queue);
		else
			print(ctl, &queues);
	}
	queues_free(&queues);
	return ret;
}

const struct command cmd_queues = {
	.name = "queues",
	.args = "",
	.summary = "list the queues: owner, mode, timers, consumer",
	.examples =
		"  expiryctl queues\n"
		"  expiryctl queues --names\n"
		"  expiryctl queues --json | jq -r .user\n",
	.options = CTL_NAMES,
	.run = run_queues,
};
