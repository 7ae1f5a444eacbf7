// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/bench.h"
#include "bench/mix.h"

#define SPREAD_NS	(3600 * NSEC_PER_SEC)

static uint64_t random_deadline(struct mix *mix)
{
	return mix->from_ns + bench_below(&mix->random, SPREAD_NS);
}

void mix_arm(struct mix *mix, struct expiry_record *record)
{
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		/* An odd factor: every key once, and none near the last. */
		.id = mix->keyed ? ++mix->key * 0x9e3779b97f4a7c15 : 0,
		.deadline_ns = random_deadline(mix),
	};
}

static void refresh_one_of(struct mix *mix, uint32_t nr,
			   struct expiry_record *record)
{
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_REFRESH,
		.id = mix->ids[bench_below(&mix->random, nr)],
		.deadline_ns = random_deadline(mix),
	};
}

void mix_refresh(struct mix *mix, struct expiry_record *record)
{
	refresh_one_of(mix, mix->nr, record);
}

/* Cancels one of the last @nr. */
static void cancel_one_of(struct mix *mix, uint32_t nr,
			  struct expiry_record *record)
{
	uint32_t i = mix->nr - nr + bench_below(&mix->random, nr);

	*record = (struct expiry_record) {
		.op = EXPIRY_OP_CANCEL,
		.id = mix->ids[i],
	};
	mix->ids[i] = mix->ids[--mix->nr];
}

void mix_cancel(struct mix *mix, struct expiry_record *record)
{
	cancel_one_of(mix, mix->nr, record);
}

void mix_even(struct mix *mix, struct expiry_record *record)
{
	switch (bench_random(&mix->random) >> 62) {
	case 0:
		mix_arm(mix, record);
		break;
	case 1:
		cancel_one_of(mix, mix->nr / 8, record);
		break;
	default:
		refresh_one_of(mix, mix->nr / 4 * 3, record);
	}
}

void mix_any(struct mix *mix, struct expiry_record *record)
{
	switch (bench_random(&mix->random) >> 62) {
	case 0:
		mix_refresh(mix, record);
		break;
	case 1:
		mix_cancel(mix, record);
		break;
	default:
		mix_arm(mix, record);
	}
}

void mix_answers(struct mix *mix, const struct expiry_record *records,
		 uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (records[i].status)
			die("op %u was refused: %d", records[i].op,
			    records[i].status);
		if (records[i].op == EXPIRY_OP_ARM)
			mix->ids[mix->nr++] = records[i].id;
	}
}
