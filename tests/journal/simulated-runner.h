/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A runner whose jobs wait until the test takes them and runs them, in any order that the
 * journal may meet.
 */
#ifndef TESTS_JOURNAL_SIMULATED_RUNNER_H
#define TESTS_JOURNAL_SIMULATED_RUNNER_H

#include <stdbool.h>

#include "daemon/journal/runner.h"

/**
 * struct sim_runner - the runner
 * @jobs: started and not taken; likewise @commit, @flush
 */
struct sim_runner {
	struct journal_runner runner;
	struct journal_job *jobs;
	struct journal_write *commit;
	struct journal_write *flush;
};

void sim_runner_init(struct sim_runner *runner);

static inline bool sim_runner_is_idle(const struct sim_runner *runner)
{
	return !runner->jobs && !runner->commit && !runner->flush;
}

/* Takes the next job, or NULL; likewise the commit, and the flush. */
struct journal_job *sim_runner_take_job(struct sim_runner *runner);
struct journal_write *sim_runner_take_commit(struct sim_runner *runner);
struct journal_job *sim_runner_take_flush(struct sim_runner *runner);

#endif /* TESTS_JOURNAL_SIMULATED_RUNNER_H */
