// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>

#include "daemon/util/util.h"
#include "tests/journal/simulated-runner.h"

static struct sim_runner *sim(struct journal_runner *runner)
{
	return container_of(runner, struct sim_runner, runner);
}

static void on_start(struct journal_runner *runner, struct journal_job *job)
{
	struct journal_job **last = &sim(runner)->jobs;

	while (*last)
		last = &(*last)->next;
	job->next = NULL;
	*last = job;
}

static void on_commit(struct journal_runner *runner,
		      struct journal_write *write)
{
	assert(!sim(runner)->commit);
	sim(runner)->commit = write;
}

static void on_flush(struct journal_runner *runner,
		     struct journal_write *write)
{
	assert(!sim(runner)->flush);
	sim(runner)->flush = write;
}

void sim_runner_init(struct sim_runner *runner)
{
	*runner = (struct sim_runner) {
		.runner = {
			.start = on_start,
			.commit = on_commit,
			.flush = on_flush,
		},
	};
}

struct journal_job *sim_runner_take_job(struct sim_runner *runner)
{
	struct journal_job *job = runner->jobs;

	if (job)
		runner->jobs = job->next;
	return job;
}

struct journal_write *sim_runner_take_commit(struct sim_runner *runner)
{
	struct journal_write *write = runner->commit;

	runner->commit = NULL;
	return write;
}

struct journal_job *sim_runner_take_flush(struct sim_runner *runner)
{
	struct journal_write *write = runner->flush;

	runner->flush = NULL;
	return write ? &write->job : NULL;
}
