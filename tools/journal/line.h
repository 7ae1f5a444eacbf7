/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of `expiryctl journal export`: JSON objects. A line is about a thread's
 * journal, a queue in it, or a timer of that queue.
 */
#ifndef TOOLS_JOURNAL_LINE_H
#define TOOLS_JOURNAL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/format.h"
#include "tools/journal/contents.h"

/* The format's version, in the line of a journal. */
#define LINE_VERSION	1

/* Bytes for the reason why a line is refused. */
#define LINE_WHY	200

enum line_kind {
	LINE_JOURNAL,
	LINE_QUEUE,
	LINE_TIMER,
};

/**
 * struct line - a parsed line
 * @thread: of a journal; likewise @boot_id, @clock
 * @name: of a queue, or of the timer's
 * @number: of a queue; likewise @clock_id, @uid
 * @timer: as in struct contents_queue
 */
struct line {
	enum line_kind kind;
	uint16_t thread;
	uint8_t boot_id[16];
	struct journal_clock clock;
	char name[25];
	uint64_t number;
	uint32_t clock_id;
	uint32_t uid;
	struct expiry_record timer;
};

/* Print a line. */
void line_print_journal(const struct contents *contents);
void line_print_queue(const struct contents_queue *queue);
void line_print_timer(const struct contents_queue *queue,
		      const struct expiry_record *timer);

/* Parses a line of @len bytes. Returns 0, or -EINVAL with the reason in @why,
 * LINE_WHY bytes.
 */
int line_parse(const char *text, size_t len, struct line *line, char *why);

#endif /* TOOLS_JOURNAL_LINE_H */
