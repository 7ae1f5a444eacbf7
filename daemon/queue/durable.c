// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/engine/engine.h"
#include "daemon/loop/buffer.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/restore.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

#define MIB		(1ULL << 20)
#define SEGMENT_MIN	(4 * MIB)
#define SEGMENT_MAX	(64 * MIB)
#define BLOCK_MAX	(2U << 20)
#define RECORD		sizeof(struct expiry_record)

/* A checkpoint begins when the journal has grown by as much. */
#define CHECKPOINT_BYTES	(64 * MIB)

/* Rows of a checkpoint in one turn. */
#define SCAN_ROWS	512U

/* Wait after a checkpoint that failed. */
#define RETRY_NS	1000000000ULL

/* Without requests the time is noted as often: a MONOTONIC timer is at most so
 * late after a loss of power.
 */
#define IDLE_CLOCK_NS	60000000000ULL

int durable_open(struct journal_directory *directory, const char *path)
{
	int r = journal_directory_open(directory, path);

	if (r < 0)
		log_err("journal %s: %s: %s", path, directory->why,
			strerror(-r));
	return r;
}

int durable_check_threads(struct journal_directory *directory, uint32_t nr)
{
	uint64_t streams[4];
	uint32_t i, end = 0;
	int r = recovery_streams(&directory->disk, streams);

	if (r < 0) {
		log_err("journal: %s", strerror(-r));
		return r;
	}
	for (i = 0; i < 256; i++)
		if (streams[i / 64] >> i % 64 & 1)
			end = i + 1;
	if (end <= nr)
		return 0;
	log_err("journal: it has queues of thread %u: start with --threads %u or more",
		end - 1, end);
	return -EINVAL;
}

static struct durable *durable_of(const struct queue *queue)
{
	return queue->context->durable;
}

/* ------------------------------------------------------------------- events */

static void advanced(struct journal *journal)
{
	struct durable *durable =
		container_of(journal, struct durable, journal);

	if (durable->is_failing && journal->state == JOURNAL_OPEN) {
		log_info("journal: durable queues are served again");
		durable->is_failing = false;
	}
	durable->advanced = true;
}

static void failed(struct journal *journal, int error)
{
	struct durable *durable =
		container_of(journal, struct durable, journal);

	log_err("journal: %s: durable queues are refused until a checkpoint stands in a new file",
		strerror(-error));
	durable->failed = true;
	durable->is_failing = true;
	durable->error = error;
	durable->retry_ns = 0;
}

static void clocks(struct journal *journal, uint64_t ns[3])
{
	(void)journal;
	ns[0] = loop_now_exactly(CLOCK_REALTIME);
	ns[1] = loop_now_exactly(CLOCK_MONOTONIC);
	ns[2] = loop_now_exactly(CLOCK_BOOTTIME);
}

static const struct journal_events events = {
	.advanced = advanced,
	.failed = failed,
	.clocks = clocks,
};

static void checkpoint_done(struct checkpoint *checkpoint, int result)
{
	struct durable *durable =
		container_of(checkpoint, struct durable, checkpoint);

	if (!result) {
		durable->rows = checkpoint->rows;
		durable->wants_checkpoint = false;
		durable->retry_ns = 0;
		return;
	}
	log_err("journal: a checkpoint failed: %s", strerror(-result));
	durable->wants_checkpoint = true;
	durable->retry_ns = loop_now_exactly(CLOCK_MONOTONIC) + RETRY_NS;
}

static void ticked(struct loop_op *op, int result, uint32_t flags)
{
	struct durable *durable = container_of(op, struct durable, tick);

	(void)result;
	(void)flags;
	durable->ticking = false;
}

/* --------------------------------------------------------------- beginning */

static int begin(struct durable *durable, struct recovery *recovery,
		 const struct restore *restore)
{
	struct context *context = durable->context;
	struct journal_config config = {
		.disk = &context->shared->journal->disk,
		.runner = &durable->helper.runner,
		.events = &events,
		.thread = context->number,
		.interval_ns = config_commit_ns(&context->config),
		.segment_min = SEGMENT_MIN,
		.segment_max = SEGMENT_MAX,
		.block_max = BLOCK_MAX,
	};
	int r;

	memcpy(config.boot_id, restore->boot_id, sizeof(config.boot_id));
	r = recovery_clean(recovery);
	if (r < 0)
		return r;
	r = helper_init(&durable->helper, &context->loop);
	if (r < 0)
		return r;
	r = journal_init(&durable->journal, &config, recovery,
			 &restore->shift);
	if (!r)
		r = checkpoint_init(&durable->checkpoint, &durable->journal,
				    CHECKPOINT_BLOCK, recovery->checkpoint);
	durable->checkpoint.done = checkpoint_done;
	if (r < 0)
		return r;
	durable->next_number = restore->next_number;
	durable->rows = restore->nr_timers;
	durable->wants_checkpoint = restore->is_ahead;
	context->durable = durable;
	/* Deadlines that were moved must be in the journal as such before the
	 * next start of the machine.
	 */
	if (restore->shift.op || restore->is_ahead)
		journal_append_clock(&durable->journal, 0);
	return 0;
}

int durable_init(struct durable *durable, struct context *context)
{
	struct journal_directory *directory = context->shared->journal;
	struct recovery recovery;
	struct restore restore;
	int r;

	*durable = (struct durable) {
		.context = context,
		.helper.fd = -1,
		.tick.done = ticked,
		.next_number = 1,
	};
	if (!directory)
		return 0;
	r = restore_run(&restore, &recovery, context);
	if (!r) {
		r = begin(durable, &recovery, &restore);
		if (r < 0)
			log_err("journal: %s", strerror(-r));
	}
	if (!r && restore.nr_queues)
		log_info("durable queues: %llu, timers in them: %llu, of these overdue: %llu",
			 (unsigned long long)restore.nr_queues,
			 (unsigned long long)restore.nr_timers,
			 (unsigned long long)restore.nr_overdue);
	durable->nr = r ? 0 : restore.nr_queues;
	recovery_close(&recovery);
	return r;
}

bool durable_is_stopping(struct durable *durable)
{
	struct journal *journal = &durable->journal;

	if (!durable->is_stopping && journal->state == JOURNAL_OPEN)
		journal_append_clock(journal, JOURNAL_CLOCK_CLEAN);
	durable->is_stopping = true;
	durable_turn(durable);
	return journal_is_busy(journal) ||
	       checkpoint_is_busy(&durable->checkpoint) ||
	       (journal->state <= JOURNAL_OPEN &&
		journal_pending(journal) > journal->acked);
}

void durable_deinit(struct durable *durable)
{
	if (!durable->context || !durable->context->durable)
		return;
	helper_deinit(&durable->helper);
	/* After a fatal error of the loop jobs were not completed. */
	durable->checkpoint.writing = false;
	durable->journal.committing = false;
	durable->journal.flushing = false;
	durable->journal.making = false;
	durable->journal.trimming = false;
	checkpoint_deinit(&durable->checkpoint);
	journal_deinit(&durable->journal);
	durable->context->durable = NULL;
}

/* ------------------------------------------------------------------- queues */

static void log_make(struct durable *durable, const struct queue *queue)
{
	struct journal_make make = durable_describe(queue);
	struct expiry_record record;

	memcpy(&record, &make, sizeof(record));
	journal_append(&durable->journal, queue->journal_number, &record, 1);
}

struct journal_make durable_describe(const struct queue *queue)
{
	struct journal_make make = {
		.op = JOURNAL_OP_MAKE,
		.mode = queue->mode,
		.clock_id = queue->clock_id,
		.uid = queue->user->uid,
	};

	memcpy(make.name, queue->name, sizeof(make.name));
	return make;
}

/* Returns why nothing can be logged now, or 0. */
static int refusal(const struct durable *durable, bool grows)
{
	int r;

	if (!durable)
		return -EOPNOTSUPP;
	r = journal_takes(&durable->journal, grows);
	if (r)
		return r;
	return journal_room(&durable->journal) ? 0 : -EAGAIN;
}

int durable_may_make(const struct context *context)
{
	return refusal(context->durable, true);
}

void durable_make(struct queue *queue)
{
	struct durable *durable = durable_of(queue);

	queue->journal_number = durable->next_number++;
	durable->nr++;
	log_make(durable, queue);
}

int durable_may_drop(const struct queue *queue)
{
	return refusal(durable_of(queue), false);
}

void durable_drop(struct queue *queue)
{
	const struct expiry_record drop = { .op = JOURNAL_OP_DROP };
	struct durable *durable = durable_of(queue);

	journal_append(&durable->journal, queue->journal_number, &drop, 1);
	queue->journal_number = 0;
	durable->nr--;
}

uint32_t durable_admit(struct queue *queue, const struct expiry_record *records,
		       uint32_t count, uint32_t *refusedp, int *errorp)
{
	struct journal *journal = &durable_of(queue)->journal;
	uint32_t i, room = journal_room(journal);
	bool grows;

	*refusedp = 0;
	*errorp = journal_takes(journal, false);
	if (*errorp) {
		*refusedp = count;
		return 0;
	}
	if (!journal_takes(journal, true))
		return min_u64(count, room);
	/* Without space what ends timers goes on. */
	for (i = 0; i < count; i++) {
		grows = records[i].op == EXPIRY_OP_ARM ||
			records[i].op == EXPIRY_OP_REFRESH;
		if (!grows && *refusedp)
			break;
		if (grows && i > *refusedp)
			return min_u64(i, room);
		*refusedp += grows;
	}
	*errorp = -ENOSPC;
	return *refusedp ? 0 : min_u64(i, room);
}

void durable_log(struct queue *queue, const struct expiry_record *records,
		 uint32_t count)
{
	journal_append(&durable_of(queue)->journal, queue->journal_number,
		       records, count);
}

void durable_mark(const struct queue *queue, struct expiry_record *records,
		  uint32_t count)
{
	uint32_t i;

	durable_of(queue)->wants_clock = true;
	for (i = 0; i < count; i++) {
		if (records[i].deadline_ns < queue->late_before_ns)
			records[i].flags |= EXPIRY_F_LATE;
		if (records[i].deadline_ns < queue->again_before_ns)
			records[i].flags |= EXPIRY_F_REDELIVERED;
	}
}

/* Returns whether all requests of a buffer were refused. */
static bool is_refused(const struct buffer *buffer)
{
	const struct expiry_record *record = (const void *)buffer->head;

	if (buffer->content != BUFFER_REPLIES)
		return false;
	for (; (const char *)record < buffer->tail; record++)
		if (!record->status)
			return false;
	return true;
}

void durable_hold(const struct context *context, struct buffer *buffer)
{
	const struct journal *journal = &context->durable->journal;

	if (buffer->content == BUFFER_EXPIRATIONS)
		return;
	/* A refusal promises nothing, and the block may never be written. */
	if (journal_takes(journal, false) && is_refused(buffer))
		return;
	buffer->commit = journal_pending(journal);
}

uint64_t durable_acked(const struct context *context)
{
	return context->durable ? context->durable->journal.acked : UINT64_MAX;
}

/* -------------------------------------------------------------- checkpoints */

static void checkpoint_start(struct durable *durable)
{
	checkpoint_begin(&durable->checkpoint,
			 2 * SEGMENT_MAX + CHECKPOINT_BYTES +
				 RECORD * durable->rows);
	durable->scan_index = 0;
	durable->scan_number = 0;
	durable->cursor = 0;
	durable->limit_number = durable->next_number;
}

/* Puts rows of one queue, up to @count. Returns whether it has more. */
static bool scan_queue(struct durable *durable, struct queue *queue,
		       uint32_t count)
{
	const struct engine_ops *ops = durable->context->engine->ops;
	struct expiry_record rows[SCAN_ROWS];
	struct journal_make make;
	int n;

	if (durable->scan_number != queue->journal_number) {
		durable->scan_number = queue->journal_number;
		durable->cursor = 0;
		make = durable_describe(queue);
		memcpy(&rows[0], &make, sizeof(make));
		checkpoint_put(&durable->checkpoint, queue->journal_number,
			       rows, 1);
		return true;
	}
	n = ops->scan(queue->engine_queue, rows, count, &durable->cursor);
	if (n < 0) {
		checkpoint_abandon(&durable->checkpoint, n);
		return true;
	}
	checkpoint_put(&durable->checkpoint, queue->journal_number, rows, n);
	return durable->cursor;
}

/* Puts some rows of the checkpoint in progress. A queue that is younger than it is
 * in the journal as a whole.
 */
static void scan(struct durable *durable)
{
	struct pool *pool = &durable->context->queues->pool;
	uint32_t room = checkpoint_room(&durable->checkpoint);
	struct queue *queue;

	while (room && (queue = pool_at(pool, durable->scan_index))) {
		if (queue->user && queue->journal_number &&
		    queue->journal_number < durable->limit_number) {
			if (scan_queue(durable, queue,
				       min_u64(room, SCAN_ROWS)))
				return;
			room = 0;
		}
		durable->scan_number = 0;
		durable->scan_index++;
	}
	if (room && !pool_at(pool, durable->scan_index))
		checkpoint_end(&durable->checkpoint);
}

static bool needs_checkpoint(const struct durable *durable, uint64_t now_ns)
{
	const struct journal *journal = &durable->journal;
	uint64_t bytes = RECORD * durable->rows;

	if (journal->current.fd < 0 || durable->is_stopping ||
	    checkpoint_is_busy(&durable->checkpoint))
		return false;
	if (journal->state == JOURNAL_MENDING || durable->wants_checkpoint ||
	    journal->is_full)
		return journal->state != JOURNAL_FAILED &&
		       now_ns >= durable->retry_ns;
	return journal->state == JOURNAL_OPEN &&
	       journal->length >= CHECKPOINT_BYTES && journal->length >= bytes;
}

static void durable_wait(struct durable *durable, uint64_t wait_ns)
{
	struct loop *loop = &durable->context->loop;

	if (wait_ns == UINT64_MAX || durable->ticking || durable->is_stopping)
		return;
	durable->tick_time = loop_timespec(wait_ns);
	io_uring_prep_timeout(loop_sqe(loop, &durable->tick),
			      &durable->tick_time, 0, 0);
	durable->ticking = true;
}

bool durable_turn(struct durable *durable)
{
	struct journal *journal = &durable->journal;
	struct checkpoint *checkpoint = &durable->checkpoint;
	uint64_t wait_ns, now_ns;

	if (journal->state == JOURNAL_EMPTY &&
	    journal_pending(journal) == journal->acked)
		return false;
	now_ns = loop_now(&durable->context->loop, CLOCK_MONOTONIC);
	if (checkpoint->state == CHECKPOINT_SCANNING)
		scan(durable);
	else if (checkpoint->state == CHECKPOINT_NONE &&
		 needs_checkpoint(durable, now_ns))
		checkpoint_start(durable);
	checkpoint_turn(checkpoint);
	if (now_ns - journal->clock_ns >= IDLE_CLOCK_NS)
		durable->wants_clock = true;
	wait_ns = journal_turn(journal, durable->wants_clock && durable->nr);
	durable->wants_clock = false;
	if (durable->retry_ns > now_ns)
		wait_ns = min_u64(wait_ns, durable->retry_ns - now_ns);
	if (durable->nr)
		wait_ns = min_u64(wait_ns, IDLE_CLOCK_NS);
	durable_wait(durable, wait_ns);
	return checkpoint->state == CHECKPOINT_SCANNING &&
	       checkpoint_room(checkpoint);
}
