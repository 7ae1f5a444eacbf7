// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/queue-list.h"

#define PAGE	64	/* rows of one request */

/* Makes room for another page. */
static int grow(struct queues *queues)
{
	size_t room = queues->room ? 2 * queues->room : PAGE;
	struct expiry_queue *rows;

	if (queues->room - queues->nr >= PAGE)
		return 0;
	rows = reallocarray(queues->rows, room, sizeof(*rows));
	if (!rows)
		return ctl_error("no memory for %zu queues", room);
	queues->rows = rows;
	queues->room = room;
	return 0;
}

int queues_ask(struct ctl *ctl, struct queues *queues)
{
	uint64_t cursor = 0;
	int ret;

	queues->nr = 0;
	do {
		ret = grow(queues);
		if (ret)
			return ret;
		ret = expiry_queues(ctl->handle, &cursor,
				    queues->rows + queues->nr, PAGE);
		if (ret < 0)
			return ctl_refused(ctl->path, ret, EXPIRY_OP_QUEUES);
		queues->nr += ret;
	} while (cursor);
	return 0;
}

int queue_find(const struct ctl *ctl, const char *name,
	       struct expiry_queue *row)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_EXISTING,
		.timeout_ms = ctl_timeout_ms(ctl),
	};
	struct expiry_queue rows[PAGE];
	struct expiry *handle;
	uint64_t cursor = 0;
	int i, nr, ret;

	ret = expiry_open(&handle, ctl->address, &options);
	if (ret)
		return ret;
	do {
		nr = expiry_queues(handle, &cursor, rows, PAGE);
		if (nr < 0)
			ret = nr;
		for (i = 0; i < nr && !ret; i++) {
			if (strcmp(rows[i].name, name))
				continue;
			*row = rows[i];
			ret = 1;
		}
	} while (cursor && !ret);
	expiry_close(handle);
	return ret;
}

void queues_free(struct queues *queues)
{
	free(queues->rows);
	*queues = (struct queues) { 0 };
}

static int compare_names(const void *a, const void *b)
{
	const struct expiry_queue *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	return (x->daemon.number > y->daemon.number) -
	       (x->daemon.number < y->daemon.number);
}

bool is_queue_name(const char *text)
{
	const size_t len = strspn(text, EXPIRY_NAME_CHARACTERS);

	return len && len <= EXPIRY_NAME_MAX && !text[len];
}

void queues_choose(const struct ctl *ctl, struct queues *queues, bool named)
{
	size_t i, nr = 0;

	for (i = 0; i < queues->nr; i++) {
		if (queue_meant(ctl, &queues->rows[i]) &&
		    (!named || is_queue_name(queues->rows[i].name)))
			queues->rows[nr++] = queues->rows[i];
	}
	queues->nr = nr;
	if (nr)
		qsort(queues->rows, nr, sizeof(*queues->rows), compare_names);
}

const char *queue_label(char *text, const struct expiry_queue *row)
{
	char *c;

	snprintf(text, QUEUE_LABEL, "%s",
		 *row->name ? row->name : "(no name)");
	for (c = text; *c; c++) {
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	}
	return text;
}

bool queue_meant(const struct ctl *ctl, const struct expiry_queue *row)
{
	return !ctl->queue || !strcmp(ctl->queue, row->name);
}
