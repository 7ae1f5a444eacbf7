// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/lives.h"
#include "tests/sim/wrap.h"

#define LIVES_MOST	40
#define LIFE_LIMIT_S	60
#define STORE_MAX	(1U << 17)	/* contents of sectors in one life */

/* How a process ends. */
#define EXIT_CRASHED	70

/**
 * struct estate - left by a life to the next one
 * @sim: where the run is
 * @disk: with contents in @store
 */
struct estate {
	struct sim sim;
	struct sim_disk disk;
	unsigned char store[STORE_MAX * (size_t)SECTOR];
};

static struct estate *estate;
static struct sim_disk disk;

static void bequeath(void)
{
	if (disk.nr_store > STORE_MAX)
		sim_fail("a life writes %u sectors", disk.nr_store);
	estate->sim = sim;
	estate->disk.store = estate->store;
	estate->disk.max_store = STORE_MAX;
	sim_disk_copy(&estate->disk, &disk);
	fflush(stdout);
}

void life_end(void)
{
	bool has_power = rng_hits(&sim.kernel, 300);

	trace("%s", has_power ? "the daemon is killed" :
				"the machine loses power");
	/* Replies that reached a socket count as read. */
	if (sim.phase != SIM_START)
		peers_read_last();
	rings_write_some(&sim.kernel);
	past_ends(false, has_power);
	sim.has_power = has_power;
	bequeath();
	_exit(EXIT_CRASHED);
}

/* Runs a life. Returns whether it has ended by itself. */
static bool live(void (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		sim_fail("no process for life %u: %s", sim.life, strerror(errno));
	if (!pid) {
		alarm(LIFE_LIMIT_S);
		disk_insert(&disk);
		run();
		past_ends(true, true);
		bequeath();
		sim_disk_deinit(&disk);
		/* With the checker for leaks. */
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status))
		sim_fail("life %u ends by signal %d", sim.life, WTERMSIG(status));
	if (WEXITSTATUS(status) && WEXITSTATUS(status) != EXIT_CRASHED)
		_exit(WEXITSTATUS(status));
	sim = estate->sim;
	sim_disk_copy(&disk, &estate->disk);
	return !WEXITSTATUS(status);
}

/* Prepares the next life. */
static void revive(bool has_ended)
{
	sim.life++;
	sim.phase = SIM_START;
	sim.io = 0;
	sim.shield = 0;
	sim.steal_in = 0;
	sim.has_failed = false;
	sim.mono_ns += rng_below(&sim.kernel, 5 * SIM_S);
	if (has_ended || sim.has_power) {
		/* Written blocks stay, and are not synced yet. */
		disk.operations = 0;
		disk.crash_at = UINT64_MAX;
		disk.fail_at = 0;
		disk.is_dead = false;
	} else {
		sim_disk_crash(&disk, &sim.kernel.state, false);
	}
	/* A disk may still be full. */
	if (rng_hits(&sim.kernel, 300))
		disk.limit = 0;
}

void lives_run(void (*run)(void))
{
	bool has_ended;

	estate = __real_mmap(NULL, sizeof(*estate), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	past_init();
	sim_disk_init(&disk);
	do {
		has_ended = live(run);
		revive(has_ended);
	} while (!has_ended && sim.life < LIVES_MOST);
	/* All of it is there after a clean end. */
	if (has_ended)
		live(run);
	sim_disk_deinit(&disk);
}
