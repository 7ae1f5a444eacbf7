// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl top: show the activity of the daemon and its queues, once a second.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tools/commands/command.h"
#include "tools/commands/top-sample.h"
#include "tools/commands/top-table.h"
#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/json.h"
#include "tools/output/screen.h"
#include "tools/output/span.h"
#include "tools/session.h"

#define LOW	14	/* a window with fewer lines gets a short head */
#define PIECE	80	/* bytes for any piece of the first lines */

/**
 * struct top - a running command
 * @samples: what is shown
 * @order: sort order of the rows
 * @first: number of the screen's first row
 * @page: number of rows on the screen
 */
struct top {
	struct samples samples;
	enum top_order order;
	size_t first;
	size_t page;
};

static void print_json(const struct row *row)
{
	const struct expiry_stat *stat = &row->is->stat;
	const struct expiry_queue_stat *daemon = &row->is->daemon;
	struct json json;

	json_begin(&json);
	json_text(&json, "queue", row->is->name);
	json_u32(&json, "uid", daemon->uid);
	json_rate(&json, "requests_per_second", row->requests);
	json_rate(&json, "expirations_per_second", row->expirations);
	json_u64(&json, "armed", stat->armed);
	json_bool(&json, "due", row->overdue_ns);
	json_u64(&json, "unacked", stat->unacked);
	json_u64(&json, "overdue_ns", row->overdue_ns);
	json_u64(&json, "lateness_p99_ns", row->lateness_ns);
	json_u32(&json, "connections", daemon->connections);
	json_bool(&json, "consumer", daemon->consumers);
	json_u32(&json, "consumer_pid", daemon->consumer_pid);
	json_u32(&json, "credit", daemon->credit);
	json_end(&json);
}

static const char *p99_text(char *text, const __u64 *now, const __u64 *before)
{
	uint64_t ns = samples_p99(now, before);

	return ns && ns != UINT64_MAX ? span_text(text, ns) : "-";
}

/* Writes pieces on as few lines as the width allows. Each but the first begins with
 * a separator of two characters. A line begins without a separator.
 */
static void print_pieces(struct frame *frame, char pieces[][PIECE], size_t nr)
{
	char line[4 * PIECE] = "";
	size_t i;

	for (i = 0; i < nr; i++) {
		if (*line && frame->width &&
		    strlen(line) + strlen(pieces[i]) > (size_t)frame->width) {
			frame_line(frame, "", line, "");
			*line = '\0';
		}
		strcat(line, pieces[i] + (i && !*line ? 2 : 0));
	}
	frame_line(frame, "", line, "");
}

static void print_head(struct frame *frame, const struct top *top)
{
	const struct expiry_server_stat *is = &top->samples.now.server;
	const struct expiry_server_stat *was = &top->samples.before.server;
	uint64_t ns = is->uptime_ns - was->uptime_ns;
	char span[SPAN_TEXT];
	char counts[4][PIECE], times[3][PIECE];

	snprintf(counts[0], PIECE, "%" PRIu64 " timers in %" PRIu64 " queues",
		 (uint64_t)is->timers, (uint64_t)is->queues);
	snprintf(counts[1], PIECE, ", %" PRIu64 " connections",
		 (uint64_t)is->connections);
	snprintf(counts[2], PIECE, "; %.0f requests/s",
		 samples_rate(is->records, was->records, ns));
	snprintf(counts[3], PIECE, ", %.0f expired/s",
		 samples_rate(is->expirations, was->expirations, ns));
	print_pieces(frame, counts, 4);
	/* Keep a low window for the queues. */
	if (frame->lines < LOW)
		return;
	snprintf(times[0], PIECE, "99 %% of turns below %s",
		 p99_text(span, is->turn_ns, was->turn_ns));
	snprintf(times[1], PIECE, ", of requests below %s",
		 p99_text(span, is->request_ns, was->request_ns));
	snprintf(times[2], PIECE, "; worst lateness %s",
		 span_text(span, is->lateness_max_ns));
	print_pieces(frame, times, 3);
}

/* Returns the number of rows that the command line allows. */
static size_t rows_wanted(const struct top *top)
{
	const struct samples *samples = &top->samples;
	const struct ctl *ctl = samples->ctl;

	return ctl->given & CTL_LIMIT && ctl->limit < samples->nr ?
	       ctl->limit : samples->nr;
}

/* Writes the visible part of the list, the sort order and the keys. */
static void print_keys(struct frame *frame, const struct top *top, size_t shown)
{
	char line[2 * PIECE];

	snprintf(line, sizeof(line),
		 "%zu-%zu of %zu by %s; q: quit, s: sort, arrows: scroll",
		 top->first + !!shown, top->first + shown, rows_wanted(top),
		 top_order_name(top->order));
	frame_line(frame, "", line, "");
}

/* Draws the rows that fit the screen, from top->first on. */
static int draw(struct top *top)
{
	const size_t wanted = rows_wanted(top);
	struct frame frame;
	size_t shown;

	frame_begin(&frame, true);
	print_head(&frame, top);
	/* One line for the keys, and one for the table's head. */
	top->page = frame.lines > 2 ? frame.lines - 2 : 1;
	if (top->first + top->page > wanted)
		top->first = wanted > top->page ? wanted - top->page : 0;
	shown = wanted - top->first < top->page ? wanted - top->first :
		top->page;
	print_keys(&frame, top, shown);
	top_table(&frame, top->samples.ctl, top->samples.rows, wanted,
		  top->first, shown);
	return frame_end(&frame);
}

/* Prints all rows that the command line allows. */
static int print(const struct top *top)
{
	const size_t wanted = rows_wanted(top);
	struct frame frame;
	size_t i;

	frame_begin(&frame, false);
	if (!top->samples.ctl->json) {
		print_head(&frame, top);
		top_table(&frame, top->samples.ctl, top->samples.rows, wanted, 0, wanted);
	}
	for (i = 0; i < wanted && top->samples.ctl->json; i++)
		print_json(&top->samples.rows[i]);
	return frame_end(&frame);
}

static void scroll(struct top *top, int key)
{
	/* draw() limits top->first to the end of the list. */
	switch (key) {
	case SCREEN_UP:
		top->first -= top->first > 0;
		break;
	case SCREEN_DOWN:
		top->first++;
		break;
	case SCREEN_PAGE_UP:
		top->first -= top->first < top->page ? top->first : top->page;
		break;
	case SCREEN_PAGE_DOWN:
		top->first += top->page;
		break;
	case SCREEN_HOME:
		top->first = 0;
		break;
	case SCREEN_LAST:
		top->first = top->samples.nr;
		break;
	}
}

/* Takes a sample and computes the rows from it. */
static int update(struct top *top)
{
	int ret;

	ret = samples_take(&top->samples);
	if (!ret)
		ret = samples_make_rows(&top->samples);
	if (!ret)
		top_sort(top->samples.rows, top->samples.nr, top->order);
	return ret;
}

/* Draws a frame each second until a key ends the command. Returns 0, an exit status
 * with the reason printed, or -errno of the output.
 */
static int show_on_screen(struct top *top, uint64_t count)
{
	struct screen screen;
	int key, ret;

	ret = screen_open(&screen);
	if (ret)
		return ret;
	while (!ret && count) {
		key = screen_wait(&screen);
		if (key == 'q' || key == 'Q' || key == SCREEN_END)
			break;
		if (key == SCREEN_TICK) {
			ret = update(top);
			count--;
		} else if (key == 's') {
			top->order = (top->order + 1) % NR_ORDERS;
			top_sort(top->samples.rows, top->samples.nr, top->order);
		} else {
			scroll(top, key);
		}
		/* Rates need two samples. */
		if (!ret && top->samples.rows)
			ret = draw(top);
	}
	screen_close(&screen);
	return ret;
}

static int show_lines(struct top *top, uint64_t count)
{
	static const struct timespec second = { .tv_sec = 1 };
	int ret = 0;

	while (!ret && count--) {
		nanosleep(&second, NULL);
		ret = update(top);
		if (!ret)
			ret = print(top);
	}
	return ret;
}

static int show(struct top *top, uint64_t count)
{
	int ret;

	ret = samples_take(&top->samples);
	if (!ret)
		ret = samples_check_names(&top->samples);
	if (ret)
		return ret;
	if (screen_usable() && !top->samples.ctl->json)
		ret = show_on_screen(top, count);
	else
		ret = show_lines(top, count);
	return ret < 0 ? ctl_error("output: %s", strerror(-ret)) : ret;
}

static int run_top(struct ctl *ctl, char **args)
{
	uint64_t count = ctl->given & CTL_COUNT ? ctl->count : UINT64_MAX;
	struct top top = { .samples = { .ctl = ctl, .names = args } };
	int ret;

	ret = ctl_open(ctl, NULL, 0, 0);
	if (!ret)
		ret = show(&top, count);
	samples_free(&top.samples);
	return ret;
}

const struct command cmd_top = {
	.name = "top",
	.args = "[QUEUE...]",
	.summary = "show what queues do, once a second",
	.examples =
		"  expiryctl top\n"
		"  expiryctl top leases sessions\n"
		"  expiryctl top --limit 10 --count 60 --json\n",
	.max = -1,
	.options = CTL_COUNT | CTL_LIMIT,
	.run = run_top,
};
