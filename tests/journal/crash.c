// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The journal on a disk that loses power, at any of its operations.
 *
 * A life writes random requests, checkpoints and segments by the daemon's own code.
 * At a random operation the disk dies, or an operation fails with -EIO or -ENOSPC.
 * Each of several random states that the disk may have then is recovered. The timers
 * must be those after some number of the requests in their order, not fewer than were
 * answered. The machine may be started anew between two lives: deadlines on BOOTTIME
 * move then. One such state begins the next life. Files of a good state are damaged,
 * too: recovery must refuse them.
 *
 * usage: crash [SEED [STATES]]; prints TAP.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/journal/checkpoint.h"
#include "daemon/journal/journal.h"
#include "daemon/journal/recovery.h"
#include "daemon/util/util.h"
#include "tests/journal/model.h"
#include "tests/journal/recovered.h"
#include "tests/journal/simulated-disk.h"
#include "tests/journal/simulated-runner.h"

#define OPS_MAX		4096U	/* requests of a life */
#define LIFE_STEPS	500U
#define VARIANTS	12U	/* states of the disk for each crash */
#define BATCH		5U
#define LIVES		12U	/* after which a new disk is begun */
#define CHECKPOINT_SECTORS	12U	/* enough for one, not for a segment */

/* The state after one more request, and the block of its reply. */
struct step {
	uint64_t lsn;
	uint64_t hash;
};

/**
 * struct life - from one start of the daemon to its end
 * @scan_queue: where the checkpoint is; likewise @scan_id, @scan_numbers
 * @wants_checkpoint: one failed, or the journal mends
 * @model: with deadlines on REALTIME, which no reboot moves; the journal has them on
 *	BOOTTIME
 * @last: number of the segment that it may go on with, 0 = none
 * @checkpoint_ns: when its last checkpoint began that stands, on BOOTTIME
 * @stat: what the journal counts; @checkpoints, @failures: what its events tell of that;
 *	@commits, @records: what the disk has taken
 */
struct life {
	struct sim_disk *disk;
	struct sim_runner runner;
	struct journal journal;
	struct checkpoint checkpoint;
	struct model model;
	struct step steps[OPS_MAX];
	uint32_t nr_steps;
	uint32_t scan_queue;
	uint32_t scan_id;
	uint64_t scan_numbers[QUEUES];
	bool wants_checkpoint;
	uint64_t last;
	uint64_t checkpoint_ns;
	struct journal_stat stat;
	uint64_t checkpoints;
	uint64_t failures;
	uint64_t commits;
	uint64_t records;
};

static struct {
	uint64_t seed;
	uint64_t random;
	uint64_t states;
	uint64_t crashes;
	uint64_t lives;
	uint64_t damaged;
	uint64_t failures;
	uint64_t checkpoints;
	uint64_t resumed;
	uint64_t ended;
	uint64_t at_rest;
	uint64_t interval_ns;
	uint64_t now_ns;
	uint64_t boot_ns;
	uint64_t reboots;
	uint64_t unknown;
	bool hides_boot_id;
	uint8_t boot_id[16];
} run;

static struct recovered recovered;

static uint64_t random_below(uint64_t limit)
{
	return sim_random(&run.random, limit);
}

__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *format, ...)
{
	va_list args;

	printf("not ok 1 - seed %" PRIu64 ", state %" PRIu64 ": ", run.seed,
	       run.states);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

/* ----------------------------------------------------------------------- jobs */

static void run_commit(struct life *life)
{
	struct journal_write *write = sim_runner_take_commit(&life->runner);

	if (!write)
		return;
	write->job.run(&write->job);
	if (life->disk->is_dead)
		return;
	if (write->result >= 0 && life->journal.state != JOURNAL_FAILED) {
		life->commits++;
		life->records += ((const struct journal_block *)write->data)->count;
	}
	write->job.done(&write->job);
}

/* A segment is gone on with. Its first blocks are where it may go wrong; and a checkpoint
 * that begins before or behind its second header. There may be room for that, and for no
 * other segment.
 */
static void resumed(struct life *life)
{
	run.resumed++;
	life->last = 0;
	if (random_below(3)) {
		life->disk->crash_at = life->disk->operations + random_below(8);
	} else {
		life->disk->limit = random_below(2) ? 0 :
			sim_disk_used(life->disk) + CHECKPOINT_SECTORS;
		life->wants_checkpoint = true;
	}
}

static void run_job(struct life *life, struct journal_job *job)
{
	if (!job)
		return;
	job->run(job);
	if (!life->disk->is_dead)
		job->done(job);
	if (life->last && life->journal.current.number == life->last)
		resumed(life);
}

/* ------------------------------------------------------------------- a life */

static void advanced(struct journal *journal)
{
	(void)journal;
}

static void failed(struct journal *journal, int error)
{
	struct life *life = container_of(journal, struct life, journal);

	(void)error;
	run.failures++;
	life->failures++;
	life->wants_checkpoint = true;
}

static void clocks(struct journal *journal, uint64_t ns[3])
{
	(void)journal;
	ns[0] = run.now_ns;
	ns[1] = ns[2] = run.now_ns - run.boot_ns;
}

static const struct journal_events events = {
	.advanced = advanced,
	.failed = failed,
	.clocks = clocks,
};

static void checkpoint_done(struct checkpoint *checkpoint, int result)
{
	struct life *life = container_of(checkpoint, struct life, checkpoint);

	life->wants_checkpoint = result < 0;
	if (result)
		return;
	run.checkpoints++;
	life->checkpoints++;
	life->checkpoint_ns = checkpoint->started_ns;
	/* The next start may go on with the segment exactly where it began. */
	if (!random_below(4))
		life->disk->crash_at = life->disk->operations + random_below(3);
}

static void append(struct life *life, uint64_t number,
		   const struct expiry_record *records, uint32_t count)
{
	bool is_own = records[count - 1].op >= JOURNAL_OP_SEGMENT;
	struct expiry_record moved[BATCH];
	uint32_t i;

	assert(count <= BATCH);
	for (i = 0; i < count - is_own; i++) {
		moved[i] = records[i];
		moved[i].deadline_ns -= run.boot_ns;
	}
	journal_append(&life->journal, number, moved, count - is_own);
	if (is_own)
		journal_append_own(&life->journal, number,
				   &records[count - 1]);
	for (i = 0; i < count; i++) {
		if (!model_apply(&life->model, number, &records[i]))
			fail("the test's own record makes no sense");
		assert(life->nr_steps < OPS_MAX);
		life->steps[life->nr_steps++] = (struct step) {
			.lsn = journal_pending(&life->journal),
			.hash = model_hash(&life->model),
		};
	}
}

static void make_queue(struct life *life, uint32_t q)
{
	struct journal_make make = {
		.op = JOURNAL_OP_MAKE,
		.name = { 'a' + q },
	};
	struct expiry_record record;

	memcpy(&record, &make, sizeof(record));
	append(life, life->model.next_number, &record, 1);
}

/* Carries out some random requests of one queue. */
static void request(struct life *life)
{
	struct expiry_record records[BATCH];
	uint32_t q = random_below(QUEUES), count = 1 + random_below(BATCH), i;
	struct queue *queue = &life->model.queues[q];
	bool grows = !journal_takes(&life->journal, true);

	if (journal_takes(&life->journal, false) ||
	    (!grows && !queue->number) ||
	    journal_room(&life->journal) <= count ||
	    life->nr_steps + count > OPS_MAX)
		return;
	if (!queue->number) {
		make_queue(life, q);
		return;
	}
	for (i = 0; i < count; i++) {
		uint32_t kind = grows ? random_below(20) : 14 + random_below(6);

		records[i] = (struct expiry_record) {
			.op = kind < 11 ? EXPIRY_OP_ARM :
			      kind < 14 ? EXPIRY_OP_REFRESH :
			      kind < 19 ? EXPIRY_OP_CANCEL : EXPIRY_OP_CLEAR,
			.id = 1 + random_below(IDS),
			.deadline_ns = random_below(UINT64_MAX),
			.cookie = random_below(UINT64_MAX),
			.period_ms = random_below(3),
		};
	}
	if (!random_below(40))
		records[count - 1] =
			(struct expiry_record) { .op = JOURNAL_OP_DROP };
	run.ended += !grows;
	append(life, queue->number, records, count);
}

static void begin_checkpoint(struct life *life)
{
	struct expiry_record record;
	uint32_t q;

	checkpoint_begin(&life->checkpoint, 16384);
	life->scan_queue = 0;
	life->scan_id = 0;
	for (q = 0; q < QUEUES; q++) {
		struct journal_make make = {
			.op = JOURNAL_OP_MAKE,
			.name = { 'a' + q },
		};

		life->scan_numbers[q] = life->model.queues[q].number;
		memcpy(&record, &make, sizeof(record));
		if (life->scan_numbers[q])
			checkpoint_put(&life->checkpoint,
				       life->scan_numbers[q], &record, 1);
	}
}

/* Puts some rows. */
static void scan(struct life *life)
{
	uint32_t steps = 1 + random_below(IDS);

	while (steps-- && life->scan_queue < QUEUES &&
	       checkpoint_room(&life->checkpoint)) {
		const struct queue *queue =
			&life->model.queues[life->scan_queue];
		const struct timer *timer = &queue->timers[life->scan_id];
		const struct expiry_record row = {
			.op = EXPIRY_OP_QUERY,
			.period_ms = timer->period_ms,
			.id = life->scan_id + 1,
			.deadline_ns = timer->deadline_ns - run.boot_ns,
			.cookie = timer->cookie,
		};

		/* A queue made since then is in the journal as a whole. */
		if (queue->number &&
		    queue->number == life->scan_numbers[life->scan_queue] &&
		    timer->exists)
			checkpoint_put(&life->checkpoint, queue->number, &row,
				       1);
		if (++life->scan_id == IDS) {
			life->scan_id = 0;
			life->scan_queue++;
		}
	}
	if (life->scan_queue == QUEUES)
		checkpoint_end(&life->checkpoint);
}

static void checkpoint_step(struct life *life)
{
	struct journal *journal = &life->journal;

	if (life->checkpoint.state == CHECKPOINT_SCANNING)
		scan(life);
	else if (life->checkpoint.state == CHECKPOINT_NONE &&
		 !checkpoint_is_busy(&life->checkpoint) &&
		 journal->current.fd >= 0 &&
		 (journal->state == JOURNAL_MENDING ||
		  (journal->state == JOURNAL_OPEN &&
		   (journal->length > 24576 || life->wants_checkpoint ||
		    !random_below(30)))))
		begin_checkpoint(life);
	checkpoint_turn(&life->checkpoint);
}

static void check_counter(const char *name, counter_t *counter, uint64_t wanted)
{
	if (counter_read(counter) != wanted)
		fail("%s: %" PRIu64 ", not %" PRIu64, name,
		     counter_read(counter), wanted);
}

/* The counters tell what the events did, and what there is on a disk at rest. */
static void check_counters(struct life *life)
{
	check_counter("checkpoints", &life->stat.checkpoints, life->checkpoints);
	check_counter("failures", &life->stat.failures, life->failures);
	check_counter("commits", &life->stat.commits, life->commits);
	check_counter("records", &life->stat.records, life->records);
	if (!sim_runner_is_idle(&life->runner) || life->failures ||
	    life->disk->fail_at || life->checkpoint.state != CHECKPOINT_NONE)
		return;
	check_counter("size", &life->stat.size,
		      (uint64_t)sim_disk_used(life->disk) * SECTOR);
	run.at_rest++;
}

static void step(struct life *life)
{
	switch (random_below(9)) {
	case 0:
	case 1:
	case 2:
		request(life);
		break;
	case 3:
		run_commit(life);
		break;
	case 4:
		run_job(life, sim_runner_take_job(&life->runner));
		break;
	case 5:
		run_job(life, sim_runner_take_flush(&life->runner));
		break;
	case 6:
		checkpoint_step(life);
		break;
	case 7:
		run.now_ns += random_below(400000000);
		/* fall through */
	default:
		journal_turn(&life->journal, !random_below(4), random_below(4));
		break;
	}
}

/* --------------------------------------------------------------- recovering */

/* Returns how many requests the recovered state is that of. */
static uint32_t find_prefix(const struct life *life, uint64_t hash,
			    uint64_t answered)
{
	uint32_t i, least = 0;

	for (i = 0; i < life->nr_steps && life->steps[i].lsn <= answered; i++)
		least = i;
	for (i = least; i < life->nr_steps; i++)
		if (life->steps[i].hash == hash)
			return i;
	for (i = 0; i < least; i++)
		if (life->steps[i].hash == hash)
			fail("answered requests are lost: the state is that after request %u, and %u are answered",
			     i, least);
	fail("a state that never was");
}

/* Recovers the dead life's disk, after a loss of power or a kill. */
static void check_state(const struct life *life, struct sim_disk *disk,
			bool kill)
{
	struct recovery recovery;
	int r;

	sim_disk_copy(disk, life->disk);
	sim_disk_crash(disk, &run.random, kill);
	run.states++;
	r = recover(&recovered, disk, &recovery);
	if (r < 0)
		fail("recovery: %s (%s)", strerror(-r),
		     recovered_fault(&recovery));
	find_prefix(life, model_hash(&recovered.model),
		    kill ? life->journal.acked :
		    run.interval_ns ? life->journal.durable :
				      life->journal.acked);
	/* It has the time, too. */
	if (life->checkpoint_ns && recovery.clock.ns[2] < life->checkpoint_ns)
		fail("the last time is before the checkpoint's");
	recovery_close(&recovery);
}

/* Damages a block of a good state, or removes a file: unless it has nothing that
 * counts, recovery must refuse.
 */
static void check_damage(const struct sim_disk *good)
{
	static struct sim_disk disk;
	bool remove = !random_below(3);
	struct recovery recovery;
	const struct seen *seen;
	char name[JOURNAL_NAME];
	int r;

	if (!disk.store)
		sim_disk_init(&disk);
	sim_disk_copy(&disk, good);
	recover(&recovered, &disk, &recovery);
	recovery_close(&recovery);
	if (!recovered.nr_seen)
		return;
	seen = &recovered.seen[random_below(recovered.nr_seen)];
	if (!recovered_needs(&recovered, seen, remove, recovery.start.lsn))
		return;
	journal_name(name, &seen->file, false);
	if (remove)
		disk.disk.ops->unlink(&disk.disk, name);
	else
		sim_disk_damage(&disk, name, seen->offset / SECTOR,
				&run.random);
	run.damaged++;
	r = recover(&recovered, &disk, &recovery);
	recovery_close(&recovery);
	if (r != -EBADMSG)
		fail("%s of %s was not noticed: %d", remove ? "the loss" : "damage",
		     name, r);
}

/* Starts the machine anew. Where the boot id is hidden, only a BOOTTIME that went back
 * tells that.
 */
static void reboot(const struct recovery *recovery)
{
	uint64_t up_ns = 20000000000;

	if (run.hides_boot_id) {
		up_ns = recovery->has_clock ? recovery->clock.ns[2] : 0;
		if (!up_ns)
			return;
		run.unknown++;
	}
	run.reboots++;
	run.now_ns += 1 + random_below(60000000000);
	run.boot_ns = run.now_ns;
	run.now_ns += random_below(min_u64(up_ns, 20000000000));
	if (!run.hides_boot_id)
		memcpy(run.boot_id, &run.reboots, sizeof(run.reboots));
}

/* Returns whether nothing tells that the machine was started anew: the life before did not
 * come to say so.
 */
static bool is_untold(const struct recovery *recovery)
{
	const uint64_t *then = recovery->clock.ns;

	return run.hides_boot_id && recovery->has_clock &&
	       then[0] - then[2] != run.boot_ns &&
	       run.now_ns - run.boot_ns >= then[2];
}

/* Returns how deadlines of the journal move. */
static struct journal_shift shift_of(const struct recovery *recovery)
{
	const uint64_t *then = recovery->clock.ns;
	struct journal_shift shift = { 0 };

	if (!recovery->has_clock ||
	    (!memcmp(recovery->boot_id, run.boot_id, sizeof(run.boot_id)) &&
	     run.now_ns - run.boot_ns >= then[2]))
		return shift;
	shift.op = JOURNAL_OP_SHIFT;
	shift.by_ns[0] = shift.by_ns[1] = then[0] - then[2] - run.boot_ns;
	return shift;
}

/* Begins a life from the disk as it is. */
static void life_begin(struct life *life, struct sim_disk *disk)
{
	struct journal_config config = {
		.disk = &disk->disk,
		.runner = &life->runner.runner,
		.stat = &life->stat,
		.events = &events,
		.interval_ns = run.interval_ns,
		.segment_min = 8192,
		.segment_max = 16384,
		.block_max = 2048,
	};
	struct journal_shift shift;
	struct recovery recovery;
	int r;

	*life = (struct life) {
		.disk = disk,
		.nr_steps = 1,
	};
	sim_runner_init(&life->runner);
	r = recover(&recovered, disk, &recovery);
	if (r < 0)
		fail("start: %s (%s)", strerror(-r), recovered_fault(&recovery));
	life->model = recovered.model;
	if (!random_below(2) || is_untold(&recovery))
		reboot(&recovery);
	shift = shift_of(&recovery);
	memcpy(config.boot_id, run.boot_id, sizeof(config.boot_id));
	life->steps[0].hash = model_hash(&life->model);
	disk->crash_at = 2 + random_below(300);
	if (!random_below(3)) {
		disk->fail_at = 1 + random_below(100);
		disk->fail_with = random_below(3) ? -EIO : -ENOSPC;
	}
	/* A first segment that fails at its end leaves its header, perhaps beside
	 * that of the next one.
	 */
	if (!random_below(6)) {
		disk->fail_at = 4 + random_below(8);
		disk->fail_with = -EIO;
		disk->crash_at = disk->fail_at + 4 + random_below(10);
	}
	/* Lives in a row without space use up the reserve. */
	if (!random_below(disk->limit ? 8 : 3))
		disk->limit = disk->limit ? 0 :
			      sim_disk_used(disk) + random_below(4);
	r = recovery_clean(&recovery);
	if (r < 0 && !disk->is_dead && disk->operations != disk->fail_at)
		fail("cleaning: %s", strerror(-r));
	r = journal_init(&life->journal, &config, &recovery, &shift);
	if (!r)
		r = checkpoint_init(&life->checkpoint, &life->journal, 1024,
				    recovery.checkpoint);
	assert(!r);
	life->last = life->journal.maker.last.number;
	life->checkpoint.done = checkpoint_done;
	recovery_close(&recovery);
}

static void life_end(struct life *life)
{
	life->journal.committing = false;
	life->journal.flushing = false;
	life->journal.making = false;
	life->journal.stock.trimming = false;
	life->checkpoint.writing = false;
	checkpoint_deinit(&life->checkpoint);
	journal_deinit(&life->journal);
}

/* Runs lives on one disk. */
static void run_disk(uint64_t seed)
{
	static struct sim_disk disk, state;
	static struct life life;
	uint32_t lives, i, steps;

	run.seed = seed;
	run.random = seed;
	run.interval_ns = random_below(3) ? 0 : 100000000;
	run.hides_boot_id = !random_below(4);
	memset(run.boot_id, 0, sizeof(run.boot_id));
	run.boot_ns = 1000000000;
	run.now_ns = 2000000000;
	if (!state.store)
		sim_disk_init(&state);
	sim_disk_deinit(&disk);
	sim_disk_init(&disk);
	for (lives = 0; lives < LIVES; lives++) {
		run.lives++;
		life_begin(&life, &disk);
		for (steps = 0; steps < LIFE_STEPS && !disk.is_dead; steps++) {
			step(&life);
			if (!disk.is_dead)
				check_counters(&life);
		}
		run.crashes++;
		for (i = 0; i < VARIANTS; i++)
			check_state(&life, &state, !i);
		if (!run.interval_ns)
			check_damage(&state);
		sim_disk_copy(&disk, &state);
		life_end(&life);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t states = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;

	puts("1..1");
	while (run.states < states)
		run_disk(seed++);
	if (states >= 100000 && (!run.resumed || !run.ended))
		fail("no segment was gone on with");
	if (states >= 100000 && !run.unknown)
		fail("no reboot was told by the clock alone");
	if (!run.at_rest)
		fail("no disk was at rest");
	printf("# %" PRIu64 " states of %" PRIu64 " crashes, %" PRIu64
	       " reboots, %" PRIu64 " told by the clock alone, %" PRIu64 " checkpoints, %" PRIu64 " failures, %" PRIu64
	       " damaged, %" PRIu64 " segments gone on with, %" PRIu64
	       " batches without space, %" PRIu64
	       " sizes compared, seeds to %" PRIu64 "\n",
	       run.states, run.crashes, run.reboots, run.unknown, run.checkpoints, run.failures,
	       run.damaged, run.resumed, run.ended, run.at_rest, seed - 1);
	puts("ok 1 - after each crash the timers are those after some requests, with all that were answered");
	return 0;
}
