// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>

#include "tools/output/histogram.h"
#include "tools/output/time-text.h"

#define BAR	40	/* length of the longest bar */

_Static_assert(BUCKETS == EXPIRY_LATENESS_BUCKETS, "one kind of histogram");

uint64_t histogram_total(const __u64 *counts)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < BUCKETS; i++)
		total += counts[i];
	return total;
}

uint64_t histogram_below(const __u64 *counts, double share)
{
	uint64_t total = histogram_total(counts), seen = 0;
	int i;

	for (i = 0; total && i < BUCKETS - 1; i++) {
		seen += counts[i];
		if (seen >= total * share)
			return 1ULL << i;
	}
	return total ? UINT64_MAX : 0;
}

void histogram_since(__u64 *counts, const __u64 *now,
		     const __u64 *before)
{
	int i;

	for (i = 0; i < BUCKETS; i++)
		counts[i] = now[i] > before[i] ? now[i] - before[i] : 0;
}

void histogram_print(const __u64 *counts,
		     const char *(*text)(char *text, uint64_t value))
{
	uint64_t total = histogram_total(counts), most = 0;
	int first = -1, last = -1, i, bar;
	char end[TIME_TEXT];

	for (i = 0; i < BUCKETS; i++) {
		if (!counts[i])
			continue;
		if (first < 0)
			first = i;
		last = i;
		if (counts[i] > most)
			most = counts[i];
	}
	for (i = first; i >= 0 && i <= last; i++) {
		/* A count above 0 has at least one character. */
		bar = counts[i] ?
		      1 + (int)((BAR - 1) * ((double)counts[i] / most)) : 0;
		if (i == BUCKETS - 1)
			printf("  %-10s", "more");
		else
			printf("  < %-8s", text(end, 1ULL << i));
		printf(" %12" PRIu64 " %5.1f%%%s", (uint64_t)counts[i],
		       100.0 * counts[i] / total, bar ? " " : "");
		while (bar--)
			putchar('#');
		putchar('\n');
	}
}
