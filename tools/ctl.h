/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by expiryctl's commands: the command line, the connection, and
 * printing.
 */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <expiry/expiry.h>

#include "json.h"
#include "parse-time.h"
#include "span.h"

#define EXIT_REFUSED	1
#define EXIT_USAGE	2

/* Options a command takes besides the global ones. */
#define CTL_ID		0x01
#define CTL_PERIOD	0x02
#define CTL_NEW		0x04
#define CTL_LATER	0x08
#define CTL_COUNT	0x10
#define CTL_LIMIT	0x20
#define CTL_IDS		0x40
#define CTL_IN		0x1000
#define CTL_AT		0x2000
#define CTL_HTTP	0x4000
#define CTL_CREATE	0x8000
#define CTL_NAMES	0x10000

/**
 * struct ctl - the command line, checked
 * @address: "unix:PATH" or "device:PATH"
 * @path: of it
 * @device: it is a device
 * @queue: the queue's name, NULL if none was given
 * @clock_id: likewise @keyed, @ack, as given
 * @clock_given: --clock was there: no other will do; likewise @mode_given, the
 *	EXPIRY_MODE_* that were
 * @json: one JSON object a line
 * @colour: the output is a terminal and nobody minds
 * @given: CTL_* that were there
 * @id, @period_ms, @count, @limit: their values, 0 if not given
 * @in, @at: likewise, NULL if not given
 * @timeout_ms: a daemon that says nothing for so long is stopped; 0: a minute
 * @handle: set by ctl_open()
 */
struct ctl {
	char *address;
	const char *path;
	bool device;
	const char *queue;
	uint32_t clock_id;
	bool clock_given;
	uint32_t mode_given;
	bool json;
	bool colour;
	unsigned int given;
	uint64_t id;
	uint32_t period_ms;
	uint64_t count;
	uint64_t limit;
	const char *in;
	const char *at;
	uint32_t timeout_ms;
	struct expiry *handle;
};

/**
 * struct command - one subcommand, in tools/cmd-NAME.c
 * @args: of the usage line
 * @summary: one line
 * @examples: whole lines, each with its end
 * @min, @max: number of arguments; @max < 0 = any
 * @options: CTL_* it takes
 * @device: works on a device, too
 * @run: returns the exit status; args end with NULL
 */
struct command {
	const char *name;
	const char *args;
	const char *summary;
	const char *examples;
	int min;
	int max;
	unsigned int options;
	bool device;
	int (*run)(struct ctl *ctl, char **args);
};

extern const struct command cmd_arm;
extern const struct command cmd_cancel;
extern const struct command cmd_drop;
extern const struct command cmd_list;
extern const struct command cmd_load;
extern const struct command cmd_metrics;
extern const struct command cmd_query;
extern const struct command cmd_queues;
extern const struct command cmd_refresh;
extern const struct command cmd_run;
extern const struct command cmd_stats;
extern const struct command cmd_status;
extern const struct command cmd_tail;
extern const struct command cmd_top;
extern const struct command cmd_watch;

/* session.c: the connection */

#define CTL_QUEUE_DEFAULT	"default"

/* The longest tolerated silence of the daemon. */
uint32_t ctl_timeout_ms(const struct ctl *ctl);

/* For ctl_open(): make the queue where there is none. */
#define CTL_OPEN_CREATE	0x80000000

/* Attach to the queue @name with EXPIRY_OPEN_* @flags and credit for @credit
 * expirations, in whatever clock and mode it has as far as the command line leaves
 * that open. Without CTL_OPEN_CREATE no queue is made; without a name the
 * connection only looks at the daemon. EXPIRY_OPEN_RECONNECT counts on
 * acknowledging queues. 0, or an exit status with the reason printed.
 */
int ctl_open(struct ctl *ctl, const char *name, unsigned int flags,
	     uint32_t credit);

/* The queue's name as given, or CTL_QUEUE_DEFAULT. */
const char *ctl_queue(const struct ctl *ctl);

bool ctl_is_keyed(const struct ctl *ctl);
bool ctl_is_ack(const struct ctl *ctl);
uint32_t ctl_clock(const struct ctl *ctl);

/* A deadline as the record wants it: EXPIRY_F_RELATIVE or 0, or -EINVAL with
 * *why when the queue's clock knows no dates.
 */
int ctl_deadline(const struct ctl *ctl, const struct deadline *deadline,
		 const char **why);

/* arguments.c: what several commands take. 0, or EXIT_USAGE with the reason
 * printed.
 */
int ctl_parse_deadline(const char *text, struct deadline *deadline);
/* Returns whether @next, which stands where something else should, continues
 * the time before it.
 */
int ctl_check_quoted(const char *time_text, const char *next);
/* Parses the value of --in: a span, or a date as --at takes it. */
int ctl_parse_in(const char *text, struct deadline *deadline);

/* Prints a line on stderr; returns EXIT_REFUSED or EXIT_USAGE. */
__attribute__((format(printf, 1, 2)))
int ctl_error(const char *format, ...);
__attribute__((format(printf, 1, 2)))
int ctl_usage(const char *format, ...);

/* refusals.c: each prints one cause and what to do about it, and returns
 * EXIT_REFUSED
 */

/* "expiryctl: WHAT: why and what to do" */
int ctl_refused(const char *what, int error, unsigned int op);

/* A request of the command line's queue; @what: the id, or NULL. */
int ctl_request_refused(const struct ctl *ctl, const char *what, int error,
			unsigned int op);

/* ctl_open() with EXPIRY_OPEN_* @flags; @name: NULL = no queue's name. */
int ctl_open_failed(const struct ctl *ctl, const char *name,
		    unsigned int flags, int error);

/* The queue has another clock or mode, and the user may not see which. */
int ctl_unseen(const char *name);

/* The queue has got another clock or mode since it was looked at. */
int ctl_remade(const char *name);

/* Whether the command line asks for another clock or mode than the queue has: 0 =
 * no.
 */
int ctl_contradiction(const struct ctl *ctl, const struct expiry_queue *row);

/* print.c: how things look */

#define TIME_TEXT	40	/* bytes that hold any time on a clock */

/* A time on a clock: RFC 3339 in UTC with @digits decimals, or @seconds. */
const char *time_text(char *text, uint64_t ns, uint32_t clock_id, int digits);
const char *clock_name(uint32_t clock_id);

#define DISTANCE_TEXT	(SPAN_TEXT + 5)

/* Writes how far away a deadline is, how late it is, or "-" for never. */
const char *distance_text(char *text, uint64_t ns, uint64_t now_ns);

/* A timer as a table's row with a word behind it, or as JSON; the table's head
 * goes to a terminal only.
 */
void print_timer_head(const struct ctl *ctl);
void print_timer(const struct ctl *ctl, const struct expiry_record *timer,
		 uint64_t now_ns, const char *note);
/* Likewise an expiration, with how late it came; and a step of the clock. */
void print_expired_head(const struct ctl *ctl);
void print_expired(const struct ctl *ctl, const struct expiry_record *event,
		   uint64_t now_ns);
void print_clock_set(const struct ctl *ctl, const struct expiry_record *event);

/* Writes a timer's members into its JSON object. */
void json_timer(struct json *json, const struct ctl *ctl,
		const struct expiry_record *timer);

/* Around what is to stand out on a terminal; "" elsewhere. */
const char *bold(const struct ctl *ctl);
const char *yellow(const struct ctl *ctl);
const char *plain(const struct ctl *ctl);

#endif /* TOOLS_CTL_H */
