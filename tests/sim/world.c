// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The world: which thread runs, what completes and what clients do next.
 */
#include <signal.h>
#include <string.h>

#include "daemon/server/server.h"
#include "daemon/util/config.h"
#include "daemon/util/log.h"
#include "daemon/util/notify.h"
#include "tests/sim/lives.h"
#include "tests/sim/program.h"

/* Jumps of the clock to the next timeout, at the end. */
#define JUMPS	60

/* Times that clients read all and give credit, at the end. */
#define ROUNDS	200

/* The age of the daemon at the first step. */
#define OLD_NS		(3600 * SIM_S)

/* A journal is mended in that time, once its disk takes all. */
#define MENDED_NS	(3600 * SIM_S)

/* Turns without any news after which the daemon has hung. */
#define BUSY_MOST	100000

static const struct config *world_config;
static int (*world_configure)(struct config *config);
static int result;

/* -------------------------------------------------------------------- the phases */

static void *first_thread(void *data)
{
	(void)data;
	if (log_init() < 0)
		sim_fail("the log does not start");
	notify_init();
	result = server_run(world_config, world_configure);
	notify_deinit();
	log_deinit();
	return NULL;
}

static void check_idle(void)
{
	engine_check_idle();
	peers_check_idle();
	manager_check_idle();
	inside_check_declared();
}

static bool is_kept(uint32_t step)
{
	return !sim.keep || sim.keep[step];
}

/* Does the next step that is kept. Returns false after the last. */
static bool next_step(void)
{
	struct rng rng;

	while (sim.step < sim.steps && !is_kept(sim.step))
		sim.step++;
	if (sim.step == sim.steps)
		return false;
	rng.state = sim.seed * 0x2545f4914f6cdd1d + sim.step;
	rng_next(&rng);
	peers_step(&rng);
	sim.step++;
	return true;
}

/* Moves the clock to the next timeout; false: there is none, or enough of it. */
static bool jump(void)
{
	static uint32_t jumps;
	uint64_t next_ns = rings_next_ns();

	if (next_ns > threads_next_ns())
		next_ns = threads_next_ns();
	if (next_ns > files_next_ns())
		next_ns = files_next_ns();

	if ((jumps++ >= JUMPS && sim.phase == SIM_DRAIN) ||
	    next_ns == EXPIRY_NEVER ||
	    next_ns > sim.mono_ns + 100 * SIM_S)
		return false;
	if (next_ns > sim.mono_ns)
		sim.mono_ns = next_ns;
	return true;
}

static uint32_t busy, rounds;
static uint64_t closed_ns;

/* Begins the next phase, when the daemon sleeps and nobody wants anything. */
static void next_phase(void)
{
	busy = 0;
	switch (sim.phase) {
	case SIM_DRAIN:
		check_idle();
		/* A periodic timer has no end. */
		if (rounds++ < ROUNDS && (peers_drain() || jump()))
			return;
		sim.phase = SIM_CLOSE;
		trace("all clients close");
		closed_ns = sim.mono_ns;
		peers_close();
		programs_close();
		break;
	case SIM_CLOSE:
		if (!programs_close()) {
			if (!jump())
				programs_fail();
			return;
		}
		/* Replies may wait for the journal. */
		if (inside_journal_fails() && jump()) {
			if (sim.mono_ns > closed_ns + MENDED_NS)
				sim_fail("a journal is not mended");
			return;
		}
		/* The engine ends its operations first. */
		if (sim.io && jump())
			return;
		inside_check_empty();
		sim.phase = SIM_STOP;
		file_signal(SIGTERM);
		break;
	default:
		/* The log's reader is slow. */
		if (threads_next_ns() == EXPIRY_NEVER)
			sim_fail("the daemon was told to stop, and sleeps");
		sim.mono_ns = threads_next_ns();
	}
}

static void run(void)
{
	struct rng *rng = &sim.kernel;

	if (sim.phase != SIM_RUN) {
		if (!thread_run_one(rng) && !rings_progress(rng, true))
			next_phase();
		else if (++busy > BUSY_MOST)
			sim_fail("the daemon does not sleep");
		return;
	}
	switch (rng_below(rng, 4)) {
	case 0:
		if (next_step())
			return;
		sim.phase = SIM_DRAIN;
		trace("the steps are done");
		if (sim.crashes)
			disk_heal();
		return;
	case 1:
		rings_progress(rng, false);
		return;
	default:
		if (thread_run_one(rng))
			return;
		if (!rings_progress(rng, true))
			check_idle();
	}
}


void world_run(const struct config *config,
	       int (*configure)(struct config *config))
{
	world_config = config;
	world_configure = configure;
	thread_start(first_thread, NULL);
	/* Until all threads wait for the first time. */
	while (thread_run_one(&sim.kernel) || rings_progress(&sim.kernel, true))
		;
	if (threads_ended())
		sim_fail("the daemon does not start: %s", strerror(-result));
	if (sim.crashes)
		past_check();
	/* An answer that comes late says that a young daemon is another one. */
	if (!sim.life)
		sim.mono_ns += OLD_NS;
	sim.phase = SIM_RUN;
	manager_began();
	log_began();
	programs_start(&sim.kernel);
	while (!threads_ended())
		run();
	if (result)
		sim_fail("the daemon ends with %s", strerror(-result));
	engine_check_ended();
	log_check_ended();
	manager_check_ended();
	files_check_closed();
}
