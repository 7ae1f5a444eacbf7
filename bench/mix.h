/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The requests that the benchmarks make: of timers chosen at random among the
 * live ones, for deadlines at random within an hour.
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
 * @ids: of the @nr live timers, in no order; the benchmark's memory
 * @key: how many timers of a keyed queue were named so far
 * @random: state of chance
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

/* What is cancelled leaves the list at once, so that no request behind it
 * names it again.
 */
mix_make_t mix_cancel;

/* Half ARM, a quarter REFRESH, a quarter CANCEL. */
mix_make_t mix_any;

/* Check @count answers and learn the names of what was armed. */
void mix_answers(struct mix *mix, const struct expiry_record *records,
		 uint32_t count);

#endif /* BENCH_MIX_H */
