// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bounds.h"

/* An odd number: products with it do not repeat. */
#define KEY_FACTOR	0x9e3779b97f4a7c15ULL

#define DROP_STEPS	512U	/* as the embedded engine */

const char *const op_names[OP_NR] = {
	"nothing", "arm", "refresh-later", "refresh-earlier", "cancel",
	"deliver", "drop stale",
};

void bounds_init(struct bounds *bounds, const struct bheap_layout *layout,
		 bool keyed, u32 nr_max)
{
	u32 i;

	memset(bounds, 0, sizeof(*bounds));
	subject_init(&bounds->subject, layout, keyed, nr_max);
	/* Populate the memory: page faults are not the queue's cost. */
	bench_populate(bounds->subject.memory, bounds->subject.size);
	bounds->nr_max = nr_max;
	bounds->ids = bench_map(sizeof(*bounds->ids) * (nr_max + 1));
	bounds->deadlines = bench_map(sizeof(*bounds->deadlines) *
				      (nr_max + 1));
	bounds->random = 1;
	for (i = 1; i <= nr_max; i++)
		bounds->deadlines[i] = i + 1;
	bounds->free = 1;
	increments_init(&bounds->increments);
	measure_open(&bounds->subject);
}

void bounds_deinit(struct bounds *bounds)
{
	measure_close();
	bench_unmap(bounds->ids, sizeof(*bounds->ids) * (bounds->nr_max + 1));
	bench_unmap(bounds->deadlines,
		    sizeof(*bounds->deadlines) * (bounds->nr_max + 1));
	subject_deinit(&bounds->subject);
}

/* ------------------------------------------------------------------------
 * Who is live
 */

static u32 any_live(struct bounds *bounds)
{
	u32 who;

	do {
		who = 1 + bench_below(&bounds->random, bounds->nr_max);
	} while (!bounds->ids[who]);
	return who;
}

static void is_dead(struct bounds *bounds, u32 who)
{
	bounds->ids[who] = 0;
	bounds->deadlines[who] = bounds->free;
	bounds->free = who;
	bounds->nr--;
}

static void is_live(struct bounds *bounds, const struct expiry_record *record)
{
	u32 who = record->cookie;

	bounds->ids[who] = record->id;
	bounds->deadlines[who] = record->deadline_ns;
	bounds->nr++;
}

/* ------------------------------------------------------------------------
 * Requests
 */

static void make_arm(struct bounds *bounds, struct expiry_record *record)
{
	u32 who = bounds->free;

	*record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = bounds->now_ns + 1 +
			       increments_next(&bounds->increments,
					       &bounds->random),
		.id = bounds->subject.keyed ? who * KEY_FACTOR : 0,
		.cookie = who,
	};
	bounds->free = bounds->deadlines[who];
}

static void make_cancel(struct bounds *bounds, struct expiry_record *record)
{
	u32 who = any_live(bounds);

	*record = (struct expiry_record) {
		.op = EXPIRY_OP_CANCEL,
		.id = bounds->ids[who],
	};
	is_dead(bounds, who);
}

static void make_refresh(struct bounds *bounds, struct expiry_record *record,
			 bool later)
{
	u64 *deadline, from_ns = bounds->now_ns;
	u32 who;

	do {
		who = any_live(bounds);
		deadline = &bounds->deadlines[who];
	} while (!later && *deadline <= from_ns);
	if (later)
		*deadline += 1 + increments_next(&bounds->increments,
						 &bounds->random);
	else
		*deadline = from_ns + bench_below(&bounds->random,
						  *deadline - from_ns);
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_REFRESH,
		.id = bounds->ids[who],
		.deadline_ns = *deadline,
	};
}

static void make(struct bounds *bounds, enum op op,
		 struct expiry_record *record)
{
	switch (op) {
	case OP_ARM:
		make_arm(bounds, record);
		break;
	case OP_CANCEL:
		make_cancel(bounds, record);
		break;
	default:
		make_refresh(bounds, record, op == OP_LATER);
	}
}

static void check(struct bounds *bounds, const struct expiry_record *records,
		  u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		if (records[i].status)
			die("op %u was refused: %d", records[i].op,
			    records[i].status);
		if (records[i].op == EXPIRY_OP_ARM)
			is_live(bounds, &records[i]);
	}
}

static void delivered(struct bounds *bounds,
		      const struct expiry_record *records, int count)
{
	int i;

	if (count < 0)
		die("timers_deliver() failed: %d", count);
	for (i = 0; i < count; i++) {
		u32 who = records[i].cookie;

		if (records[i].id != bounds->ids[who] ||
		    records[i].deadline_ns < bounds->now_ns ||
		    records[i].deadline_ns != bounds->deadlines[who])
			die("delivered out of order, or another timer");
		bounds->now_ns = records[i].deadline_ns;
		is_dead(bounds, who);
	}
}

/* ------------------------------------------------------------------------ */

static void count(struct bounds *bounds, enum op op)
{
	uint32_t values[MEASURES_MAX], i;

	if (!measure_end(values))
		return;
	for (i = 0; measure_units[i]; i++)
		tally_add(&bounds->seen[op][i], values[i]);
}

void bounds_do(struct bounds *bounds, enum op op, bool measured)
{
	struct timers *timers = &bounds->subject.timers;
	struct expiry_record record;
	u32 done = 1;
	int ret = 0;

	if (op >= OP_ARM && op <= OP_CANCEL)
		make(bounds, op, &record);
	if (measured)
		measure_begin();
	switch (op) {
	case OP_NOTHING:
		break;
	case OP_DELIVER:
		ret = timers_deliver(timers, &record, 1, EXPIRY_NEVER - 1,
				     false);
		break;
	case OP_SETTLE:
		ret = timers_drop_stale(timers, DROP_STEPS);
		break;
	default:
		done = timers_submit(timers, &record, 1, 0);
	}
	if (measured)
		count(bounds, op);
	if (done != 1 || ret < 0)
		die("%s failed: %d", op_names[op], ret);
	if (op == OP_DELIVER)
		delivered(bounds, &record, ret);
	else if (op >= OP_ARM && op <= OP_CANCEL)
		check(bounds, &record, 1);
}

static void submit(struct bounds *bounds, struct expiry_record *records,
		   u32 nr)
{
	if (timers_submit(&bounds->subject.timers, records, nr, 0) != nr)
		die("a batch was cut short");
	check(bounds, records, nr);
}

void bounds_batch(struct bounds *bounds, enum op op, u32 nr)
{
	struct expiry_record records[BATCH];
	u32 i;

	if (op == OP_DELIVER) {
		delivered(bounds, records,
			  timers_deliver(&bounds->subject.timers, records, nr,
					 EXPIRY_NEVER - 1, false));
		return;
	}
	for (i = 0; i < nr; i++)
		make(bounds, op, &records[i]);
	submit(bounds, records, nr);
}

void bounds_pairs(struct bounds *bounds, u32 nr)
{
	struct expiry_record records[BATCH];
	u32 i;

	for (i = 0; i + 1 < nr; i += 2) {
		make_cancel(bounds, &records[i]);
		make_arm(bounds, &records[i + 1]);
	}
	submit(bounds, records, i);
}
