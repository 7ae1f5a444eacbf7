// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/commands/top-table.h"
#include "tools/ctl.h"
#include "tools/output/print.h"
#include "tools/output/screen.h"
#include "tools/output/span.h"
#include "tools/queue-list.h"

#define NAME_LEAST	12	/* least width of names beside a column */
#define CELL		32	/* bytes for any cell */
#define LINE		256	/* bytes for any line */
#define NR_COLUMNS	8

/**
 * struct column - a column after the name
 * @rank: columns with the highest rank are hidden first
 * @write: writes a cell, in @width characters unless 0
 */
struct column {
	const char *title;
	int width;
	int rank;
	void (*write)(char *text, int width, const struct row *row);
};

/* Writes a number; one that is too long is rounded to three figures: 9.01P. */
static void write_number(char *text, int width, double value, uint64_t exact)
{
	static const char suffixes[] = "kMGTPE";
	const char *suffix = suffixes;

	snprintf(text, CELL, "%" PRIu64, exact);
	if (!width || (int)strlen(text) <= width)
		return;
	for (value /= 1000; value >= 999.5; value /= 1000)
		suffix++;
	snprintf(text, CELL, "%.*f%c",
		 value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, *suffix);
}

static void write_count(char *text, int width, uint64_t count)
{
	write_number(text, width, count, count);
}

static void write_rate(char *text, int width, double rate)
{
	write_number(text, width, rate, rate + 0.5);
}

static void write_span(char *text, uint64_t ns)
{
	if (ns)
		span_text(text, ns);
	else
		snprintf(text, CELL, "-");
}

static void write_requests(char *text, int width, const struct row *row)
{
	write_rate(text, width, row->requests);
}

static void write_expirations(char *text, int width, const struct row *row)
{
	write_rate(text, width, row->expirations);
}

static void write_armed(char *text, int width, const struct row *row)
{
	write_count(text, width, row->is->stat.armed);
}

static void write_unacked(char *text, int width, const struct row *row)
{
	write_count(text, width, row->is->stat.unacked);
}

static void write_overdue(char *text, int width, const struct row *row)
{
	(void)width;
	write_span(text, row->overdue_ns);
}

static void write_lateness(char *text, int width, const struct row *row)
{
	(void)width;
	write_span(text, row->lateness_ns);
}

static void write_credit(char *text, int width, const struct row *row)
{
	if (row->is->daemon.consumers)
		write_count(text, width, row->is->daemon.credit);
	else
		snprintf(text, CELL, "-");
}

static void write_consumer(char *text, int width, const struct row *row)
{
	(void)width;
	if (row->is->daemon.consumers)
		snprintf(text, CELL, "%" PRIu32,
			 (uint32_t)row->is->daemon.consumer_pid);
	else
		snprintf(text, CELL, "none");
}

static const struct column columns[NR_COLUMNS] = {
	{ "requests/s", 10, 2, write_requests },
	{ "expired/s", 9, 4, write_expirations },
	{ "armed", 8, 0, write_armed },
	{ "unacked", 8, 6, write_unacked },
	{ "overdue", 8, 1, write_overdue },
	{ "late p99", 8, 5, write_lateness },
	{ "credit", 8, 7, write_credit },
	{ "consumer", 8, 3, write_consumer },
};

/**
 * struct layout - the columns that fit
 * @name: width of the name
 * @shown: visible columns
 */
struct layout {
	int name;
	bool shown[NR_COLUMNS];
};

static int line_width(const struct layout *layout)
{
	int i, width = layout->name;

	for (i = 0; i < NR_COLUMNS; i++) {
		if (layout->shown[i])
			width += 1 + columns[i].width;
	}
	return width;
}

/* Hides the visible column of the highest rank. Returns false if there is none. */
static bool hide_column(struct layout *layout)
{
	int i, worst = -1;

	for (i = 0; i < NR_COLUMNS; i++) {
		if (layout->shown[i] &&
		    (worst < 0 || columns[i].rank > columns[worst].rank))
			worst = i;
	}
	if (worst < 0)
		return false;
	layout->shown[worst] = false;
	return true;
}

static void choose_layout(struct layout *layout, int width,
			  const struct row *rows, size_t nr)
{
	int longest = strlen("queue"), len, spare;
	char label[QUEUE_LABEL];
	size_t i;

	layout->name = EXPIRY_NAME_MAX;
	for (i = 0; i < NR_COLUMNS; i++)
		layout->shown[i] = true;
	if (!width)
		return;
	for (i = 0; i < nr; i++) {
		len = strlen(queue_label(label, rows[i].is));
		if (len > longest)
			longest = len;
	}
	layout->name = longest < NAME_LEAST ? longest : NAME_LEAST;
	while (line_width(layout) > width && hide_column(layout))
		;
	spare = width - line_width(layout);
	layout->name += spare < longest - layout->name ? spare :
			longest - layout->name;
	if (layout->name < 1)
		layout->name = 1;
}

/* Writes a name in @width characters; a longer one without its middle. */
static void write_name(char *text, int width, const char *label)
{
	const int len = strlen(label), head = (width - 1) / 2;

	if (len <= width || width < 5)
		snprintf(text, QUEUE_LABEL, "%.*s", width, label);
	else
		snprintf(text, QUEUE_LABEL, "%.*s..%s", head, label,
			 label + len - (width - 2 - head));
}

static void print_head(struct frame *frame, const struct ctl *ctl,
		       const struct layout *layout)
{
	char line[LINE];
	int i, used;

	used = snprintf(line, sizeof(line), "%-*.*s", layout->name,
			layout->name, "queue");
	for (i = 0; i < NR_COLUMNS; i++) {
		if (layout->shown[i])
			used += snprintf(line + used, sizeof(line) - used,
					 " %*s", columns[i].width,
					 columns[i].title);
	}
	frame_line(frame, bold(ctl), line, plain(ctl));
}

static void print_row(struct frame *frame, const struct layout *layout,
		      const struct row *row)
{
	char line[LINE], cell[CELL], label[QUEUE_LABEL], name[QUEUE_LABEL];
	int i, used;

	write_name(name, layout->name, queue_label(label, row->is));
	used = snprintf(line, sizeof(line), "%-*s", layout->name, name);
	for (i = 0; i < NR_COLUMNS; i++) {
		if (!layout->shown[i])
			continue;
		columns[i].write(cell, frame->width ? columns[i].width : 0,
				 row);
		used += snprintf(line + used, sizeof(line) - used, " %*s",
				 columns[i].width, cell);
	}
	frame_line(frame, "", line, "");
}

void top_table(struct frame *frame, const struct ctl *ctl,
	       const struct row *rows, size_t nr, size_t first, size_t shown)
{
	struct layout layout;
	size_t i;

	choose_layout(&layout, frame->width, rows, nr);
	print_head(frame, ctl, &layout);
	for (i = 0; i < shown; i++)
		print_row(frame, &layout, &rows[first + i]);
}

const char *top_order_name(enum top_order order)
{
	static const char *const names[NR_ORDERS] = {
		[ORDER_ACTIVITY] = "activity",
		[ORDER_ARMED] = "armed",
		[ORDER_OVERDUE] = "overdue",
		[ORDER_LATENESS] = "late p99",
		[ORDER_NAME] = "name",
	};

	return names[order];
}

/* Compares for qsort(), in descending order. */
static int larger_first(uint64_t x, uint64_t y)
{
	return (x < y) - (x > y);
}

static int busier_first(const struct row *x, const struct row *y)
{
	const double rate_x = x->requests + x->expirations;
	const double rate_y = y->requests + y->expirations;

	return (rate_x < rate_y) - (rate_x > rate_y);
}

static int compare_rows(const void *a, const void *b, void *argument)
{
	const enum top_order *order = argument;
	const struct row *x = a, *y = b;
	int result = 0;

	switch (*order) {
	case ORDER_ARMED:
		result = larger_first(x->is->stat.armed, y->is->stat.armed);
		break;
	case ORDER_OVERDUE:
		result = larger_first(x->overdue_ns, y->overdue_ns);
		break;
	case ORDER_LATENESS:
		result = larger_first(x->lateness_ns, y->lateness_ns);
		break;
	case ORDER_NAME:
		result = strcmp(x->is->name, y->is->name);
		break;
	default:
		break;
	}
	if (!result)
		result = busier_first(x, y);
	if (!result)
		result = larger_first(x->is->stat.armed, y->is->stat.armed);
	if (!result)
		result = larger_first(y->is->daemon.number,
				      x->is->daemon.number);
	return result;
}

void top_sort(struct row *rows, size_t nr, enum top_order order)
{
	if (nr)
		qsort_r(rows, nr, sizeof(*rows), compare_rows, &order);
}
