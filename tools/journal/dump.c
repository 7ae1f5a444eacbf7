// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <expiry/expiry.h>

#include "tools/journal/dump.h"
#include "tools/output/time-text.h"

static void dump_segment(const struct expiry_record *record)
{
	struct journal_segment segment;
	int i;

	memcpy(&segment, record, sizeof(segment));
	printf("segment %016" PRIx64 ", thread %u, boot ", segment.number,
	       segment.thread);
	for (i = 0; i < 16; i++)
		printf("%02x", segment.boot_id[i]);
	putchar('\n');
}

static void dump_clock(const struct expiry_record *record)
{
	char realtime[TIME_TEXT], monotonic[TIME_TEXT], boottime[TIME_TEXT];
	struct journal_clock clock;

	memcpy(&clock, record, sizeof(clock));
	printf("clock realtime %s monotonic %s boottime %s%s\n",
	       time_text(realtime, clock.ns[0], CLOCK_REALTIME, 9),
	       time_text(monotonic, clock.ns[1], CLOCK_MONOTONIC, 9),
	       time_text(boottime, clock.ns[2], CLOCK_BOOTTIME, 9),
	       clock.flags & JOURNAL_CLOCK_CLEAN ? ", the daemon stopped" : "");
}

static void dump_shift(const struct expiry_record *record)
{
	struct journal_shift shift;

	memcpy(&shift, record, sizeof(shift));
	printf("shift monotonic %+" PRId64 " ns boottime %+" PRId64 " ns\n",
	       shift.by_ns[0], shift.by_ns[1]);
}

static void dump_mark(const char *name, const char *count,
		      const struct expiry_record *record)
{
	struct journal_mark mark;

	memcpy(&mark, record, sizeof(mark));
	printf("%s, the journal goes on with block %" PRIu64
	       " in segment %016" PRIx64 ", %s %" PRIu64 "\n",
	       name, mark.lsn, mark.number, count, mark.count);
}

static void dump_make(const struct expiry_record *record)
{
	char name[sizeof(((struct journal_make *)0)->name) + 1];
	struct journal_make make;
	char *c;

	memcpy(&make, record, sizeof(make));
	memcpy(name, make.name, sizeof(make.name));
	name[sizeof(make.name)] = '\0';
	for (c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	printf("make %s clock %s mode %u uid %" PRIu32 "\n", name,
	       clock_name(make.clock_id), make.mode, make.uid);
}

static void dump_timer(const char *name, const struct expiry_record *record)
{
	printf("%s id %" PRIu64 " deadline %" PRIu64 " cookie %" PRIu64
	       " period %" PRIu32 "%s\n",
	       name, (uint64_t)record->id, (uint64_t)record->deadline_ns,
	       (uint64_t)record->cookie, (uint32_t)record->period_ms,
	       record->flags & EXPIRY_F_REDELIVERED ? " delivered" : "");
}

int dump_record(void *data, const struct recovery_place *place,
		const struct expiry_record *record)
{
	static const char *const timers[] = {
		[EXPIRY_OP_ARM] = "arm",       [EXPIRY_OP_REFRESH] = "refresh",
		[EXPIRY_OP_CANCEL] = "cancel", [EXPIRY_OP_ACK] = "ack",
		[EXPIRY_OP_QUERY] = "timer",   [EXPIRY_OP_CLEAR] = "clear",
	};
	char name[JOURNAL_NAME];

	(void)data;
	if (record->op == JOURNAL_OP_QUEUE)
		return 0;
	journal_name(name, &place->file, false);
	printf("%s:%" PRIu64 " block %" PRIu64 " ", name, place->offset,
	       place->lsn);
	if (place->queue)
		printf("queue %" PRIu64 " ", place->queue);
	if (record->op >= EXPIRY_OP_ARM && record->op <= EXPIRY_OP_CLEAR) {
		dump_timer(timers[record->op], record);
		return 0;
	}
	switch (record->op) {
	case JOURNAL_OP_SEGMENT:
		dump_segment(record);
		break;
	case JOURNAL_OP_SHIFT:
		dump_shift(record);
		break;
	case JOURNAL_OP_START:
		dump_mark("checkpoint begins", "at byte", record);
		break;
	case JOURNAL_OP_END:
		dump_mark("checkpoint ends", "records", record);
		break;
	case JOURNAL_OP_CLOCK:
		dump_clock(record);
		break;
	case JOURNAL_OP_MAKE:
		dump_make(record);
		break;
	case JOURNAL_OP_DROP:
		puts("drop");
		break;
	default:
		printf("unknown record %u\n", record->op);
	}
	return 0;
}
