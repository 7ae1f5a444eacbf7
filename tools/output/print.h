/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers and expirations, as rows of a table or as JSON.
 */
#ifndef TOOLS_PRINT_H
#define TOOLS_PRINT_H

#include "tools/ctl.h"
#include "tools/output/json.h"
#include "tools/output/span.h"

#define DISTANCE_TEXT	(SPAN_TEXT + 5)

/* Writes the time until a deadline, the time since then, or "-" for never. */
const char *distance_text(char *text, uint64_t ns, uint64_t now_ns);

/* Print a timer as a table's row that ends with a word, or as JSON. The table's head
 * is printed only on a terminal.
 */
void print_timer_head(const struct ctl *ctl);
void print_timer(const struct ctl *ctl, const struct expiry_record *timer,
		 uint64_t now_ns, const char *note);
/* Print an expiration with its lateness, or a step of the clock, likewise. */
void print_expired_head(const struct ctl *ctl);
void print_expired(const struct ctl *ctl, const struct expiry_record *event,
		   uint64_t now_ns);
void print_clock_set(const struct ctl *ctl, const struct expiry_record *event);

/* Writes a timer's members into its JSON object. */
void json_timer(struct json *json, const struct ctl *ctl,
		const struct expiry_record *timer);

/* Return the escape sequences around emphasized text; "" without colours. */
const char *bold(const struct ctl *ctl);
const char *yellow(const struct ctl *ctl);
const char *plain(const struct ctl *ctl);

#endif /* TOOLS_PRINT_H */
