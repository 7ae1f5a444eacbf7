/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by expiryctl's commands: the checked command line, the connection,
 * refusals and printing.
 */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <expiry/expiry.h>

#include "tools/output/json.h"
#include "tools/input/parse-time.h"
#include "tools/output/span.h"

#define EXIT_REFUSED	1
#define EXIT_USAGE	2

/* Options that a command accepts besides the global ones. */
#define CTL_ID		0x01
#define CTL_PERIOD	0x02
#define CTL_NEW		0x04
#define CTL_LATER	0x08
#define CTL_COUNT	0x10
#define CTL_LIMIT	0x20
#define CTL_IDS		0x40
#define CTL_IN		0x1000
#define CTL_AT		0x2000
#define CTL_CREATE	0x8000
#define CTL_NAMES	0x10000

/**
 * struct ctl - the command line, checked
 * @address: "unix:PATH" or "device:PATH"
 * @path: the path in @address
 * @device: @address is a device
 * @queue: the queue's name, NULL if none was given
 * @clock_id: clock, as given; likewise @keyed, @ack
 * @clock_given: --clock was given
 * @mode_given: EXPIRY_MODE_* that were given
 * @json: one JSON object a line
 * @colour: output is a terminal that accepts colours
 * @given: CTL_* that were given
 * @id: value of --id, 0 if not given
 * @period_ms: likewise of --period
 * @count: likewise of --count
 * @limit: likewise of --limit
 * @in: value of --in, NULL if not given
 * @at: likewise of --at
 * @timeout_ms: longest silence of the daemon; 0: a minute
 * @handle: set by ctl_open()
 *
 * A queue with another clock than a given one, or without a given mode, is refused.
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
 * struct command - one subcommand, in tools/commands/NAME.c
 * @name: name on the command line
 * @args: arguments in the usage line
 * @summary: one line
 * @examples: whole lines, each with a line feed
 * @min: least number of arguments
 * @max: most arguments; negative: no limit
 * @options: accepted CTL_*
 * @device: also works on a device
 * @run: returns the exit status; arguments are NULL-terminated
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

/* Returns the longest silence of the daemon before a request fails. */
uint32_t ctl_timeout_ms(const struct ctl *ctl);

/* Flag of ctl_open(): create the queue if it does not exist. */
#define CTL_OPEN_CREATE	0x80000000

/* Attaches to the queue @name with EXPIRY_OPEN_* @flags and credit for @credit
 * expirations. Takes the queue's clock and mode, unless the command line names
 * another. Without CTL_OPEN_CREATE no queue is created. Without a name the
 * connection reads only the daemon's state. EXPIRY_OPEN_RECONNECT has an effect on
 * acknowledging queues. Returns 0, or an exit status with the reason printed.
 */
int ctl_open(struct ctl *ctl, const char *name, unsigned int flags,
	     uint32_t credit);

/* Returns the queue's name as given, or CTL_QUEUE_DEFAULT. */
const char *ctl_queue(const struct ctl *ctl);

bool ctl_is_keyed(const struct ctl *ctl);
bool ctl_is_ack(const struct ctl *ctl);
uint32_t ctl_clock(const struct ctl *ctl);

/* Converts a deadline for a record. Returns its flags, EXPIRY_F_RELATIVE or 0, or
 * -EINVAL with *why if the queue's clock has no dates.
 */
int ctl_deadline(const struct ctl *ctl, const struct deadline *deadline,
		 const char **why);

/* input/arguments.c: arguments of several commands. The parsers return 0, or EXIT_USAGE
 * with the reason printed.
 */
int ctl_parse_deadline(const char *text, struct deadline *deadline);
/* Checks that @next, the argument after a time, is not the rest of that time. */
int ctl_check_quoted(const char *time_text, const char *next);
/* Parses the value of --in: a span, or a time with its date or weekday. */
int ctl_parse_in(const char *text, struct deadline *deadline);

/* The name at the head of messages. Each program defines it. */
extern const char ctl_program[];

/* Print a line on stderr and return EXIT_REFUSED or EXIT_USAGE. */
__attribute__((format(printf, 1, 2)))
int ctl_error(const char *format, ...);
__attribute__((format(printf, 1, 2)))
int ctl_usage(const char *format, ...);

/* refusals.c: each function prints one cause and its remedy, and returns
 * EXIT_REFUSED
 */

/* Reports a refusal as "PROGRAM: WHAT: cause and remedy". */
int ctl_refused(const char *what, int error, unsigned int op);

/* Reports a refused request to the command line's queue. @what: the id, or NULL. */
int ctl_request_refused(const struct ctl *ctl, const char *what, int error,
			unsigned int op);

/* Reports a failed ctl_open(). @name: NULL without a queue. */
int ctl_open_failed(const struct ctl *ctl, const char *name,
		    unsigned int flags, int error);

/* Reports that the clock or mode differs, and the user may not see the queue's. */
int ctl_unseen(const char *name);

/* Reports that the queue was created again with another clock or mode. */
int ctl_remade(const char *name);

/* Reports a command line that names another clock or mode than the queue has.
 * Returns 0 if both match.
 */
int ctl_contradiction(const struct ctl *ctl, const struct expiry_queue *row);

/* output/print.c: the output's format */

#define TIME_TEXT	40	/* bytes for any time on a clock */

/* Writes a time on a clock: RFC 3339 in UTC with @digits decimals, or @SECONDS. */
const char *time_text(char *text, uint64_t ns, uint32_t clock_id, int digits);
const char *clock_name(uint32_t clock_id);

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

#endif /* TOOLS_CTL_H */
