// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/loop/buffer.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/restore.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

#define RECORD		sizeof(struct expiry_record)

/* A checkpoint begins when the journal has grown by as much. */
#define CHECKPOINT_BYTES	(64ULL << 20)

/* Least time between two counts of the timers while there is no room. */
#define RECOUNT_NS	1000000000ULL

/* Records of a queue in a checkpoint, besides its timers, at most. */
#define QUEUE_ROWS	4U

/* A smaller checkpoint is not made for its room. */
#define CHECKPOINT_LEAST	(64ULL << 10)

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
	uint64_t streams[JOURNAL_THREADS / 64];
	uint32_t i, end = 0;
	int r = recovery_streams(&directory->disk, streams);

	if (r < 0) {
		log_err("journal: %s", r == -EINPROGRESS ?
			"an import was not completed: repeat it" : strerror(-r));
		return r;
	}
	for (i = 0; i < JOURNAL_THREADS; i++)
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
		durable->retry_after_ns = JOURNAL_RETRY_NS;
		durable->advanced |= durable->is_ahead;
		durable->is_ahead = false;
		return;
	}
	/* Requests that wait for it are refused. */
	if (durable->is_ahead) {
		durable->failed = true;
		durable->error = result;
	}
	/* One line until a checkpoint stands. */
	if (durable->retry_after_ns == JOURNAL_RETRY_NS)
		log_err("journal: a checkpoint failed: %s", strerror(-result));
	durable->wants_checkpoint = true;
	durable->retry_ns = loop_now_exactly(CLOCK_MONOTONIC) +
			    durable->retry_after_ns;
	durable->retry_after_ns = min_u64(2 * durable->retry_after_ns,
					  JOURNAL_RETRY_MAX_NS);
}

static void ticked(struct loop_op *op, int result, uint32_t flags)
{
	struct durable *durable = container_of(op, struct durable, tick);

	(void)result;
	(void)flags;
	durable->ticking = false;
}

/* -------------------------------------------------------------------- names */

/* Keeps the name in this thread until its end is durable: after a loss of power the
 * journals of two threads must not both have it.
 */
static void hold_name(struct durable *durable, struct directory_entry *entry)
{
	struct directory *directory = &durable->context->shared->directory;

	if (!entry)
		return;
	entry->dropped_lsn = journal_pending(&durable->journal);
	if (!list_empty(&entry->dropped))
		return;
	directory_ref(directory, entry);
	list_add(&durable->dropped, &entry->dropped);
}

/* Releases the names that ended in blocks up to @lsn. */
static void release_names(struct durable *durable, uint64_t lsn)
{
	struct directory *directory = &durable->context->shared->directory;
	struct list *node, *next;

	for (node = durable->dropped.next; node != &durable->dropped;
	     node = next) {
		struct directory_entry *entry =
			container_of(node, struct directory_entry, dropped);

		next = node->next;
		if (entry->dropped_lsn > lsn)
			continue;
		list_del(&entry->dropped);
		directory_unref(directory, entry);
	}
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
		.stat = &context->journal,
		.thread = context->number,
		.interval_ns = config_commit_ns(&context->config),
		.segment_min = JOURNAL_SEGMENT_MIN,
		.segment_max = JOURNAL_SEGMENT_MAX,
		.block_max = JOURNAL_GATHER_MAX,
		.size_max = context->config.journal_size / context->shared->nr,
	};
	int r;

	memcpy(config.boot_id, restore->boot_id, sizeof(config.boot_id));
	r = recovery_clean(recovery);
	if (r < 0)
		return r;
	r = helper_init(&durable->helper, &context->loop, config.interval_ns);
	if (r < 0)
		return r;
	r = journal_init(&durable->journal, &config, recovery,
			 &restore->shift);
	if (r < 0)
		goto err_helper;
	r = checkpoint_init(&durable->checkpoint, &durable->journal,
			    CHECKPOINT_BLOCK, recovery->checkpoint);
	if (r < 0)
		goto err_journal;
	durable->checkpoint.done = checkpoint_done;
	/* The journal forgets queues that were dropped. Numbers from the clock on
	 * were not theirs.
	 */
	durable->next_number = loop_now_exactly(CLOCK_REALTIME);
	if (durable->next_number < restore->next_number)
		durable->next_number = restore->next_number;
	durable->rows = restore->nr_timers;
	durable->wants_checkpoint = restore->is_ahead;
	durable->is_ahead = restore->is_ahead;
	context->durable = durable;
	/* Deadlines that were moved must be in the journal as such before the
	 * next start of the machine.
	 */
	if (restore->shift.op || restore->is_ahead)
		journal_append_clock(&durable->journal, 0);
	return 0;

err_journal:
	journal_deinit(&durable->journal);
err_helper:
	helper_deinit(&durable->helper);
	return r;
}

/* Returns the next queue from *@indexp on that the store has as durable and the journal has
 * not: an earlier daemon ended before its creation was on the disk.
 */
static struct queue *next_unmade(const struct context *context, uint32_t *indexp)
{
	struct queue *queue;

	while ((queue = pool_at(&context->queues->pool, *indexp))) {
		++*indexp;
		if (queue->user && queue->store_thread && !queue->journal_number &&
		    queue->mode == EXPIRY_MODE_ALL)
			return queue;
	}
	return NULL;
}

int durable_init(struct durable *durable, struct context *context)
{
	struct journal_directory *directory = context->shared->journal;
	struct recovery recovery;
	struct restore restore;
	struct queue *queue;
	uint32_t index = 0;
	int r;

	*durable = (struct durable) {
		.context = context,
		.helper.fd = -1,
		.scan = { .context = context,
			  .checkpoint = &durable->checkpoint },
		.retry_after_ns = JOURNAL_RETRY_NS,
		.tick.done = ticked,
		.next_number = 1,
	};
	list_init(&durable->dropped);
	if (!directory)
		return 0;
	r = restore_run(&restore, &recovery, context);
	if (!r) {
		/* A checkpoint must have its timers before anybody sees them. */
		restore.is_ahead |= next_unmade(context, &index) != NULL;
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
	index = 0;
	while (!r && (queue = next_unmade(context, &index)))
		durable_make(queue);
	counter_set(&context->stat.overdue, r ? 0 : restore.nr_overdue);
	recovery_close(&recovery);
	return r;
}

bool durable_is_stopping(struct durable *durable)
{
	struct journal *journal = &durable->journal;

	if (!durable->is_stopping && journal->state == JOURNAL_OPEN)
		journal_append_clock(journal, JOURNAL_CLOCK_CLEAN);
	durable->is_stopping = true;
	/* Files for which there are no records yet are not made any more. */
	if (journal->state != JOURNAL_EMPTY ||
	    journal_pending(journal) > journal->acked)
		durable_turn(durable, false);
	if (journal_is_busy(journal) || checkpoint_is_busy(&durable->checkpoint))
		return true;
	/* The end of a full disk is waited for by nobody: what has no answer then may be
	 * asked again.
	 */
	return journal->state <= JOURNAL_OPEN && !journal_is_stuck(journal) &&
	       (journal_pending(journal) > journal->acked ||
		journal->written > journal->durable);
}

void durable_deinit(struct durable *durable)
{
	if (!durable->context || !durable->context->durable)
		return;
	release_names(durable, UINT64_MAX);
	helper_deinit(&durable->helper);
	/* After a fatal error of the loop jobs were not completed. */
	durable->checkpoint.writing = false;
	durable->journal.committing = false;
	durable->journal.flushing = false;
	durable->journal.making = false;
	durable->journal.stock.trimming = false;
	checkpoint_deinit(&durable->checkpoint);
	journal_deinit(&durable->journal);
	durable->context->durable = NULL;
}

/* ------------------------------------------------------------------- queues */

static void log_make(struct durable *durable, const struct queue *queue)
{
	struct journal_make make = rows_describe(queue);

	journal_append_own(&durable->journal, queue->journal_number, &make);
}

/* Returns why nothing can be logged now, or 0. -EAGAIN: less than @room is left. */
static int refusal(const struct durable *durable, bool grows, uint32_t room)
{
	int r;

	if (!durable)
		return -EOPNOTSUPP;
	r = journal_takes(&durable->journal, grows);
	if (r)
		return r;
	return journal_room(&durable->journal) >= room ? 0 : -EAGAIN;
}

int durable_may_make(const struct context *context)
{
	int r = refusal(context->durable, true, 1);

	/* It is one record, and may be in what turns out to be the reserve. */
	return r == -EAGAIN ? refusal(context->durable, false, 1) : r;
}

void durable_make(struct queue *queue)
{
	struct durable *durable = durable_of(queue);

	queue_set_journal(queue, durable->next_number++);
	durable->nr++;
	log_make(durable, queue);
	queue->made_lsn = journal_pending(&durable->journal);
}

void durable_give(struct queue *queue)
{
	struct durable *durable = durable_of(queue);

	if (!refusal(durable, false, 1))
		log_make(durable, queue);
}

int durable_may_attach(const struct queue *queue)
{
	const struct journal *journal = &durable_of(queue)->journal;

	return queue->made_lsn > journal->acked ? journal_takes(journal, false) :
						  0;
}

int durable_may_drop(const struct queue *queue)
{
	return refusal(durable_of(queue), false, JOURNAL_ROOM_MIN);
}

void durable_drop(struct queue *queue)
{
	const struct expiry_record drop = { .op = JOURNAL_OP_DROP };
	struct durable *durable = durable_of(queue);

	journal_append_own(&durable->journal, queue->journal_number, &drop);
	hold_name(durable, queue->in_directory);
	queue_set_journal(queue, 0);
	durable->nr--;
}

bool durable_has_room(const struct durable *durable)
{
	return refusal(durable, false, JOURNAL_ROOM_MIN) != -EAGAIN;
}

bool durable_goes_on(const struct durable *durable)
{
	return durable_has_room(durable) &&
	       refusal(durable, true, JOURNAL_ROOM_MIN) != -EAGAIN;
}

static bool may_grow(const struct expiry_record *request)
{
	return request->op == EXPIRY_OP_ARM || request->op == EXPIRY_OP_REFRESH;
}

uint32_t durable_admit(struct queue *queue, const struct expiry_record *records,
		       uint32_t count, uint32_t *refusedp, int *errorp)
{
	struct journal *journal = &durable_of(queue)->journal;
	uint32_t room = journal_room(journal), i = 0;
	bool grows = may_grow(records);
	int error;

	*refusedp = 0;
	*errorp = journal_takes(journal, false);
	if (*errorp) {
		*refusedp = count;
		counter_add(&queue->context->stat.refused_journal, count);
		return 0;
	}
	error = journal_takes(journal, true);
	if (!error)
		return min_u64(count, room);
	/* Without space what ends timers goes on. */
	while (i < count && may_grow(&records[i]) == grows)
		i++;
	if (!grows)
		return min_u64(i, room);
	if (error == -EAGAIN)
		return 0;
	*refusedp = i;
	*errorp = error;
	counter_add(&queue->context->stat.refused_journal, i);
	return 0;
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

/* Returns whether a reply promises nothing: a refusal, and that of a HELLO whose
 * queue is durable.
 */
static bool is_empty(const struct journal *journal, const struct queue *queue,
		     const struct expiry_record *reply)
{
	if (reply->op == EXPIRY_OP_HELLO)
		return reply->status ||
		       (queue && queue->made_lsn <= journal->acked);
	return reply->status;
}

/* Puts a refusal in the place of a SCAN's rows. */
static void refuse_rows(struct buffer *buffer, int error)
{
	struct expiry_record *request = (void *)(buffer->head - RECORD);

	request->status = error;
	buffer->head = (char *)request;
	buffer->tail = (char *)(request + 1);
	buffer->content = BUFFER_REPLIES;
}

static void refuse_replies(const struct context *context,
			   const struct queue *queue, struct buffer *buffer,
			   int error)
{
	const struct journal *journal = &context->durable->journal;
	struct expiry_record *reply = (void *)buffer->head;

	for (; (char *)reply < buffer->tail; reply++)
		if (!is_empty(journal, queue, reply) &&
		    reply->op != EXPIRY_OP_HELLO)
			reply->status = error;
}

void durable_refuse(const struct context *context, const struct queue *queue,
		    struct buffer *buffer, int error)
{
	if (buffer->content == BUFFER_ROWS)
		refuse_rows(buffer, error);
	else if (buffer->content == BUFFER_REPLIES)
		refuse_replies(context, queue, buffer, error);
}

static bool promises(const struct journal *journal, const struct queue *queue,
		     const struct buffer *buffer)
{
	const struct expiry_record *reply = (const void *)buffer->head;

	if (buffer->content != BUFFER_REPLIES && buffer->content != BUFFER_ROWS)
		return false;
	for (; (const char *)reply < buffer->tail; reply++)
		if (!is_empty(journal, queue, reply))
			return true;
	return false;
}

void durable_hold(const struct context *context, const struct queue *queue,
		  struct buffer *buffer)
{
	const struct journal *journal = &context->durable->journal;
	int error = journal_takes(journal, false);

	if (buffer->content == BUFFER_EXPIRATIONS)
		return;
	/* The block that gathers may never be written. */
	if (journal_has_failed(journal))
		durable_refuse(context, queue, buffer, error);
	if (error && !promises(journal, queue, buffer))
		return;
	buffer->commit = journal_pending(journal);
}

uint64_t durable_acked(const struct context *context)
{
	const struct durable *durable = context->durable;

	if (!durable)
		return UINT64_MAX;
	return durable->is_ahead ? 0 : durable->journal.acked;
}

/* -------------------------------------------------------------- checkpoints */

static void checkpoint_start(struct durable *durable)
{
	checkpoint_begin(&durable->checkpoint,
			 2 * JOURNAL_SEGMENT_MAX + CHECKPOINT_BYTES +
				 RECORD * durable->rows);
	rows_begin(&durable->scan, durable->next_number);
	pace_begin(&durable->pace);
}

/* Returns about how many bytes a checkpoint would have now. */
static uint64_t checkpoint_bytes(const struct durable *durable)
{
	uint64_t timers = counter_read(&durable->context->stat.durable_timers);

	return RECORD * (timers + QUEUE_ROWS * durable->nr) + CHECKPOINT_LEAST;
}

/* Returns whether a checkpoint makes room that is missing: older segments can be
 * used again, or it has at most half of the last one's size. Looks for the latter
 * once in a while, for an engine may have to count.
 */
static bool needs_room(struct durable *durable, uint64_t now_ns)
{
	const struct journal *journal = &durable->journal;

	if (!journal->is_full && !journal_is_over(journal))
		return false;
	if (journal->stock.old.nr > 1)
		return true;
	if (now_ns - durable->recounted_ns < RECOUNT_NS)
		return false;
	durable->recounted_ns = now_ns;
	charges_recount_durable(durable->context);
	return 2 * checkpoint_bytes(durable) <
	       durable->checkpoint.previous_size;
}

static bool needs_checkpoint(struct durable *durable, uint64_t now_ns)
{
	const struct journal *journal = &durable->journal;
	uint64_t bytes = RECORD * durable->rows;

	if (journal->current.fd < 0 || durable->is_stopping ||
	    checkpoint_is_busy(&durable->checkpoint))
		return false;
	if (journal->state == JOURNAL_MENDING || durable->wants_checkpoint ||
	    needs_room(durable, now_ns))
		return journal->state != JOURNAL_FAILED &&
		       now_ns >= durable->retry_ns;
	return journal->state == JOURNAL_OPEN &&
	       journal->length >= CHECKPOINT_BYTES && journal->length >= bytes;
}

/* Has the loop woken in @wait_ns at the latest. */
static void durable_wait(struct durable *durable, uint64_t now_ns,
			 uint64_t wait_ns)
{
	struct loop *loop = &durable->context->loop;

	if (wait_ns == UINT64_MAX || durable->is_stopping)
		return;
	if (durable->ticking) {
		/* Its end is a completion, after which there is another one. */
		if (now_ns + wait_ns < durable->tick_ns) {
			loop_cancel(loop, &durable->tick);
			durable->tick_ns = 0;
		}
		return;
	}
	durable->tick_ns = now_ns + wait_ns;
	durable->tick_time = loop_timespec(wait_ns);
	io_uring_prep_timeout(loop_sqe(loop, &durable->tick),
			      &durable->tick_time, 0, 0);
	durable->ticking = true;
}

/* Returns in how many ns rows may be put, 0 = now, UINT64_MAX = not before a job ends. */
static uint64_t wait_to_put_ns(const struct durable *durable, uint64_t now_ns)
{
	return checkpoint_room(&durable->checkpoint) ?
	       pace_wait_ns(&durable->pace, now_ns) : UINT64_MAX;
}

static void put_rows(struct durable *durable)
{
	uint64_t rows = durable->checkpoint.rows;

	rows_put(&durable->scan, pace_rows(&durable->pace));
	pace_put(&durable->pace, durable->checkpoint.rows - rows);
}

bool durable_turn(struct durable *durable, bool awaited)
{
	struct journal *journal = &durable->journal;
	struct checkpoint *checkpoint = &durable->checkpoint;
	uint64_t wait_ns, rows_ns, now_ns, length;

	if (journal_is_unused(journal) && !awaited)
		return false;
	now_ns = loop_now(&durable->context->loop, CLOCK_MONOTONIC);
	if (durable->pace.committing && !journal->committing)
		pace_commit_ended(&durable->pace, now_ns);
	if (!wait_to_put_ns(durable, now_ns))
		put_rows(durable);
	else if (checkpoint->state == CHECKPOINT_NONE &&
		 needs_checkpoint(durable, now_ns))
		checkpoint_start(durable);
	checkpoint_turn(checkpoint);
	if (now_ns - journal->clock_ns >= RESTORE_CLOCK_NS)
		durable->wants_clock = true;
	release_names(durable, journal->durable);
	length = journal->length;
	wait_ns = journal_turn(journal, durable->wants_clock && durable->nr,
			       awaited);
	if (journal->length > length)
		pace_commit(&durable->pace, (journal->length - length) / RECORD);
	durable->wants_clock = false;
	if (durable->retry_ns > now_ns)
		wait_ns = min_u64(wait_ns, durable->retry_ns - now_ns);
	if (durable->nr)
		wait_ns = min_u64(wait_ns, RESTORE_CLOCK_NS);
	rows_ns = wait_to_put_ns(durable, now_ns);
	if (rows_ns)
		wait_ns = min_u64(wait_ns, rows_ns);
	durable_wait(durable, now_ns, wait_ns);
	return !rows_ns;
}
