// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "report.h"

bool report_interleaved;

static void report_begin(const struct load *load, const char *workload,
			 uint32_t round)
{
	printf("{\"bench\":\"timers\",\"subject\":\"%s\",\"workload\":\"%s\","
	       "\"timers\":%u,\"round\":%u", load->peer->name, workload,
	       load->nr, round);
	if (!report_interleaved)
		printf(",\"interleaved\":false");
}

static void report_cost(const struct load *load, const char *workload,
			uint32_t round, const char *work,
			const struct load_cost *cost)
{
	report_begin(load, workload, round);
	printf(",\"work\":\"%s\",\"ops\":%llu,\"ns\":%.1f", work,
	       (unsigned long long)cost->nr, (double)cost->ns / cost->nr);
}

static void report_bytes(const struct load *load)
{
	printf(",\"bytes\":%.1f", (double)load_bytes(load) / load->nr);
}

static void report_end(void)
{
	puts("}");
	fflush(stdout);
}

static struct load_cost all_costs(const struct load *load, uint32_t nr)
{
	struct load_cost all = { .nr = nr };
	int op;

	for (op = 0; op < (int)LOAD_OPS; op++)
		all.ns += load->costs[op].ns;
	return all;
}

void report_round(const struct load *load, const struct workload *workload,
		  uint32_t round, uint32_t ops)
{
	static const char *const names[LOAD_OPS] = {
		[PEER_ARM] = "arm",
		[PEER_REFRESH] = "refresh",
		[PEER_CANCEL] = "cancel",
		[LOAD_DELIVER] = "deliver",
	};
	struct load_cost all = all_costs(load, ops);
	int op;

	report_cost(load, workload->name, round, workload->work,
		    workload->delivery ? &load->costs[LOAD_DELIVER] : &all);
	printf(",\"main\":true");
	report_bytes(load);
	report_end();
	for (op = 0; op < (int)LOAD_OPS; op++) {
		/* One or two operations are no figure. */
		if (load->costs[op].nr <= ops / 10 ||
		    (workload->delivery && op == LOAD_DELIVER))
			continue;
		report_cost(load, workload->name, round, names[op],
			    &load->costs[op]);
		report_end();
	}
}

void report_fill(const struct load *load, const struct family *family)
{
	struct load_cost all = all_costs(load, load->nr);

	report_cost(load, family->name, 0, "fill", &all);
	report_bytes(load);
	report_end();
}

void report_version(const struct peer *peer)
{
	if (peer->version)
		printf("{\"bench\":\"timers\",\"subject\":\"%s\","
		       "\"version\":\"%s\"}\n", peer->name, peer->version());
}
