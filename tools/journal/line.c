// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/util/config.h"
#include "tools/input/digits.h"
#include "tools/journal/line.h"
#include "tools/output/json.h"
#include "tools/output/time-text.h"
#include "tools/queue-list.h"

#define BOOT_ID_TEXT	33
#define STRING(number)	STRING_(number)
#define STRING_(number)	#number

/* ----------------------------------------------------------------- printing */

static void boot_id_text(char *text, const uint8_t *boot_id)
{
	int i;

	for (i = 0; i < 16; i++)
		sprintf(text + 2 * i, "%02x", boot_id[i]);
}

void line_print_journal(const struct contents *contents)
{
	const struct recovery *recovery = &contents->recovery;
	const uint64_t *ns = recovery->clock.ns;
	char boot_id[BOOT_ID_TEXT];
	struct json json;

	boot_id_text(boot_id, recovery->boot_id);
	json_begin(&json);
	json_u32(&json, "journal", LINE_VERSION);
	json_u32(&json, "thread", recovery->thread);
	json_text(&json, "boot_id", boot_id);
	json_bool(&json, "clean",
		  recovery->clock.flags & JOURNAL_CLOCK_CLEAN);
	json_time(&json, "realtime", ns[0], CLOCK_REALTIME);
	json_u64(&json, "monotonic_ns", ns[1]);
	json_u64(&json, "boottime_ns", ns[2]);
	json_end(&json);
}

void line_print_queue(const struct contents_queue *queue)
{
	struct json json;

	json_begin(&json);
	json_text(&json, "queue", queue->name);
	json_u64(&json, "number", queue->number);
	json_text(&json, "clock", clock_name(queue->clock_id));
	json_u32(&json, "uid", queue->uid);
	json_end(&json);
}

void line_print_timer(const struct contents_queue *queue,
		      const struct expiry_record *timer)
{
	struct json json;

	json_begin(&json);
	json_text(&json, "queue", queue->name);
	json_u64(&json, "id", timer->id);
	json_time(&json, "deadline", timer->deadline_ns, queue->clock_id);
	json_u64(&json, "cookie", timer->cookie);
	json_u32(&json, "period_ms", timer->period_ms);
	json_bool(&json, "delivered", timer->flags & EXPIRY_F_REDELIVERED);
	json_bool(&json, "cancelled", timer->op == EXPIRY_OP_CANCEL);
	json_end(&json);
}

/* ------------------------------------------------------------------ parsing */

static int reject(char *why, const char *member, const char *expected)
{
	snprintf(why, LINE_WHY, "%s: expected %s", member, expected);
	return -EINVAL;
}

/* Reads a 64-bit number, which is a string. */
static int take_u64(const char *text, const char *member, uint64_t *number,
		    char *why)
{
	if (read_number(&text, number) && !*text)
		return 0;
	return reject(why, member, "a string of digits, below 2^64");
}

static int take_positive(const char *text, const char *member, uint64_t *number,
			 char *why)
{
	int r = take_u64(text, member, number, why);

	return r || *number ? r : reject(why, member, "a number from 1 on");
}

static int take_u32(json_int_t value, const char *member, uint32_t *number,
		    char *why)
{
	if (value < 0 || value > UINT32_MAX)
		return reject(why, member, "a number below 2^32");
	*number = value;
	return 0;
}

static int take_boot_id(const char *text, uint8_t boot_id[16], char *why)
{
	static const char digits[] = "0123456789abcdef";
	int i;

	memset(boot_id, 0, 16);
	if (strlen(text) == 32 && strspn(text, digits) == 32) {
		for (i = 0; i < 32; i++)
			boot_id[i / 2] |= (strchr(digits, text[i]) - digits)
					  << (i % 2 ? 0 : 4);
		return 0;
	}
	return reject(why, "boot_id", "32 hexadecimal digits");
}

static int take_name(const char *text, struct line *line, char *why)
{
	if (!is_queue_name(text))
		return reject(why, "queue", "1 to 24 of A-Z a-z 0-9 . _ -");
	strcpy(line->name, text);
	return 0;
}

/* Reports what jansson missed. It quotes bytes of the line, which are not for a
 * terminal.
 */
static int unpack_failed(const json_error_t *error, char *why)
{
	char *c;

	snprintf(why, LINE_WHY, "%s", error->text);
	for (c = why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return -EINVAL;
}

static int parse_journal(json_t *root, struct line *line, char *why)
{
	const char *boot_id, *realtime, *monotonic, *boottime;
	json_int_t version, thread;
	json_error_t error;
	json_t *comment;
	int clean, r;

	line->kind = LINE_JOURNAL;
	if (json_unpack_ex(root, &error, JSON_STRICT,
			   "{s:I, s:I, s:s, s:b, s:s, s?o, s:s, s:s}",
			   "journal", &version, "thread", &thread,
			   "boot_id", &boot_id, "clean", &clean,
			   "realtime_ns", &realtime, "realtime", &comment,
			   "monotonic_ns", &monotonic,
			   "boottime_ns", &boottime))
		return unpack_failed(&error, why);
	if (version != LINE_VERSION)
		return reject(why, "journal", "1, the version of the format");
	if (thread < 0 || thread >= THREADS_MAX)
		return reject(why, "thread",
			      "a number below " STRING(THREADS_MAX));
	line->thread = thread;
	line->clock.op = JOURNAL_OP_CLOCK;
	line->clock.flags = clean ? JOURNAL_CLOCK_CLEAN : 0;
	r = take_boot_id(boot_id, line->boot_id, why);
	if (!r)
		r = take_u64(realtime, "realtime_ns", &line->clock.ns[0], why);
	if (!r)
		r = take_u64(monotonic, "monotonic_ns", &line->clock.ns[1],
			     why);
	if (!r)
		r = take_u64(boottime, "boottime_ns", &line->clock.ns[2], why);
	return r;
}

static int parse_queue(json_t *root, struct line *line, char *why)
{
	const char *name, *number, *clock;
	json_error_t error;
	json_int_t uid;
	int r;

	line->kind = LINE_QUEUE;
	if (json_unpack_ex(root, &error, JSON_STRICT, "{s:s, s:s, s:s, s:I}",
			   "queue", &name, "number", &number, "clock", &clock,
			   "uid", &uid))
		return unpack_failed(&error, why);
	r = take_name(name, line, why);
	if (!r)
		r = take_positive(number, "number", &line->number, why);
	if (!r && clock_parse(clock, &line->clock_id))
		r = reject(why, "clock", "realtime, monotonic or boottime");
	return r ? r : take_u32(uid, "uid", &line->uid, why);
}

static int parse_timer(json_t *root, struct line *line, char *why)
{
	struct expiry_record *timer = &line->timer;
	const char *name, *id, *deadline, *cookie;
	int delivered, cancelled, r;
	json_int_t period_ms;
	json_error_t error;
	uint64_t numbers[3];
	json_t *comment;

	line->kind = LINE_TIMER;
	if (json_unpack_ex(root, &error, JSON_STRICT,
			   "{s:s, s:s, s:s, s?o, s:s, s:I, s:b, s:b}",
			   "queue", &name, "id", &id, "deadline_ns", &deadline,
			   "deadline", &comment, "cookie", &cookie,
			   "period_ms", &period_ms, "delivered", &delivered,
			   "cancelled", &cancelled))
		return unpack_failed(&error, why);
	r = take_name(name, line, why);
	if (!r)
		r = take_positive(id, "id", &numbers[0], why);
	if (!r)
		r = take_u64(deadline, "deadline_ns", &numbers[1], why);
	if (!r)
		r = take_u64(cookie, "cookie", &numbers[2], why);
	if (!r)
		r = take_u32(period_ms, "period_ms", &timer->period_ms, why);
	if (!r && delivered && !timer->period_ms && !cancelled)
		r = reject(why, "delivered", "false without a period");
	if (!r && cancelled && !delivered)
		r = reject(why, "cancelled", "false without a delivery");
	if (r)
		return r;
	timer->op = cancelled ? EXPIRY_OP_CANCEL : EXPIRY_OP_ARM;
	timer->flags = delivered ? EXPIRY_F_REDELIVERED : 0;
	timer->id = numbers[0];
	timer->deadline_ns = numbers[1];
	timer->cookie = numbers[2];
	return 0;
}

int line_parse(const char *text, size_t len, struct line *line, char *why)
{
	json_error_t error;
	json_t *root;
	int r;

	memset(line, 0, sizeof(*line));
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return unpack_failed(&error, why);
	if (json_object_get(root, "id"))
		r = parse_timer(root, line, why);
	else if (json_object_get(root, "journal"))
		r = parse_journal(root, line, why);
	else
		r = parse_queue(root, line, why);
	json_decref(root);
	return r;
}
