/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The requests of the benchmarks: for timers chosen at random among the live
 * ones, with deadlines at random within an hour.
 */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

/**
 * struct mix - a queue's timers, by name
 * @keyed: the names are the client's own
 * @from_ns: when the hour of the deadlines begins
 * @ids: of the @nr live timers, in no order
 * @key: names given so far on a keyed queue
 * @random: state of the random numbers
 */
struct mix {
	bool keyed;
	uint64_t from_ns;
	uint64_t *ids;
	uint32_t nr;
	uint64_t key;
	uint64_t random;
};

typedef void mix_make_t(struct mix *mix, struct expiry_record *record);

mix_make_t mix_arm;
mix_make_t mix_refresh;

/* Makes a CANCEL and removes its timer from the list at once, so that no later
 * request names it.
 */
mix_make_t mix_cancel;

/* Makes half ARM, a quarter REFRESH, a quarter CANCEL. */
mix_make_t mix_any;

/* Makes a quarter ARM, half REFRESH, a quarter CANCEL: as many timers afterwards. A
 * CANCEL is of one of the last eighth, a REFRESH of one before the last quarter: so
 * no request in flight on another connection names the timer that ends.
 */
mix_make_t mix_even;

/* Checks @count answers and stores the names of armed timers. */
void mix_answers(struct mix *mix, const struct expiry_record *records,
		 uint32_t count);

#endif /* BENCH_MIX_H */
