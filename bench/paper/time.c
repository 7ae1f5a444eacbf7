// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The processor time of the experiment when every page is resident: the same
 * code as in trace, unwatched. Rounds are interleaved. One JSON object a
 * layout.
 */
#include "bench/bench.h"
#include "experiment.h"

#define ROUNDS		5U
#define LAYOUTS_MAX	8U

static double processor_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

int main(void)
{
	struct experiment experiment = { .records = EXPERIMENT_RECORDS };
	double took[LAYOUTS_MAX][ROUNDS], start;
	struct bench_figure figure;
	struct arena arena;
	u32 round, i;

	arena_init(&arena, experiment.records);
	experiment.arena = &arena;
	experiment.keys = experiment_keys(experiment.records);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; experiment_layouts[i]; i++) {
			if (i == LAYOUTS_MAX)
				die("more layouts than LAYOUTS_MAX");
			experiment.layout = experiment_layouts[i];
			start = processor_seconds();
			experiment_run(&experiment);
			took[i][round] = processor_seconds() - start;
		}
	}
	for (i = 0; experiment_layouts[i]; i++) {
		figure = bench_median(took[i], ROUNDS);
		printf("{\"layout\":\"%s\",\"element\":%zu,\"records\":%u,"
		       "\"seconds\":%.3f,\"seconds_min\":%.3f,"
		       "\"seconds_max\":%.3f}\n",
		       experiment_layouts[i]->name, sizeof(struct bheap_node),
		       experiment.records, figure.median, figure.min,
		       figure.max);
	}
	free(experiment.keys);
	arena_deinit(&arena);
	return 0;
}
