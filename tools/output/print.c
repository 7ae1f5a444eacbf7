// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <unistd.h>

#include "tools/ctl.h"
#include "tools/output/json.h"
#include "tools/output/print.h"
#include "tools/output/span.h"
#include "tools/output/time-text.h"

#define COUNT_TEXT	sizeof("4294967295")

static void print_head(const struct ctl *ctl, const char *distance,
		       const char *period)
{
	if (!ctl->json && isatty(STDOUT_FILENO))
		printf("%s%-20s  %-24s  %12s  %10s  %s%s\n", bold(ctl), "ID",
		       "DEADLINE", distance, period, "COOKIE", plain(ctl));
}

void print_timer_head(const struct ctl *ctl)
{
	print_head(ctl, "IN", "PERIOD");
}

void print_expired_head(const struct ctl *ctl)
{
	print_head(ctl, "LATE", "TIMES");
}

const char *distance_text(char *text, uint64_t ns, uint64_t now_ns)
{
	char span[SPAN_TEXT];

	if (ns == EXPIRY_NEVER)
		return "-";
	if (ns >= now_ns)
		return span_text(text, ns - now_ns);
	snprintf(text, DISTANCE_TEXT, "late %s", span_text(span, now_ns - ns));
	return text;
}

static void print_row(const struct ctl *ctl, const struct expiry_record *timer,
		      const char *distance, const char *period,
		      const char *note)
{
	char when[TIME_TEXT];

	printf("%-20" PRIu64 "  %-24s  %12s  %10s  %" PRIu64 "%s%s\n",
	       (uint64_t)timer->id,
	       time_text(when, timer->deadline_ns, ctl_clock(ctl), 3),
	       distance, period,
	       (uint64_t)timer->cookie,
	       *note ? "  " : "", note);
}

/* Prints the members that a timer and its expiration have alike. */
static void json_id(struct json *json, const struct ctl *ctl,
		    const struct expiry_record *timer)
{
	json_u64(json, "id", timer->id);
	json_time(json, "deadline", timer->deadline_ns, ctl_clock(ctl));
	json_u64(json, "cookie", timer->cookie);
}

void print_timer(const struct ctl *ctl, const struct expiry_record *timer,
		 uint64_t now_ns, const char *note)
{
	char distance[DISTANCE_TEXT], period[SPAN_TEXT];
	struct json json;

	if (!ctl->json) {
		print_row(ctl, timer,
			  distance_text(distance, timer->deadline_ns, now_ns),
			  timer->period_ms ?
			  span_text(period, timer->period_ms * 1000000ULL) :
			  "-", note);
		return;
	}
	json_begin(&json);
	json_timer(&json, ctl, timer);
	json_end(&json);
}

/* Returns what the flags of an expiration say. */
static const char *expired_note(const struct expiry_record *event)
{
	const bool again = event->flags & EXPIRY_F_REDELIVERED;

	if (event->flags & EXPIRY_F_LATE)
		return again ? "redelivered, due before the start" :
			       "due before the start";
	return again ? "redelivered" : "";
}

void print_expired(const struct ctl *ctl, const struct expiry_record *event,
		   uint64_t now_ns)
{
	char late[DISTANCE_TEXT], span[SPAN_TEXT], count[COUNT_TEXT] = "-";
	uint64_t ns = event->deadline_ns;
	struct json json;

	if (ctl->json) {
		json_begin(&json);
		json_text(&json, "event", "expired");
		json_id(&json, ctl, event);
		json_u32(&json, "count", event->count);
		json_s64(&json, "late_ns", now_ns - ns);
		json_bool(&json, "redelivered",
			  event->flags & EXPIRY_F_REDELIVERED);
		json_bool(&json, "before_start", event->flags & EXPIRY_F_LATE);
		json_end(&json);
		return;
	}
	/* The deadline may be in the future again if the clock was set back. */
	snprintf(late, sizeof(late), "late %s",
		 span_text(span, ns < now_ns ? now_ns - ns : 0));
	if (event->count)
		snprintf(count, sizeof(count), "%" PRIu32,
			 (uint32_t)event->count);
	print_row(ctl, event, late, count, expired_note(event));
}

void print_clock_set(const struct ctl *ctl, const struct expiry_record *event)
{
	char text[TIME_TEXT];
	struct json json;

	if (ctl->json) {
		json_begin(&json);
		json_text(&json, "event", "clock-set");
		json_time(&json, "now", event->deadline_ns, ctl_clock(ctl));
		json_end(&json);
	} else {
		printf("%sthe clock was set: it is now %s%s\n", yellow(ctl),
		       time_text(text, event->deadline_ns, ctl_clock(ctl), 3),
		       plain(ctl));
	}
}

void json_timer(struct json *json, const struct ctl *ctl,
		const struct expiry_record *timer)
{
	json_id(json, ctl, timer);
	json_u32(json, "period_ms", timer->period_ms);
}

const char *bold(const struct ctl *ctl)
{
	return ctl->colour ? "\033[1m" : "";
}

const char *yellow(const struct ctl *ctl)
{
	return ctl->colour ? "\033[33m" : "";
}

const char *plain(const struct ctl *ctl)
{
	return ctl->colour ? "\033[0m" : "";
}
