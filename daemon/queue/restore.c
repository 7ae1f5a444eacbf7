// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/engine/engine.h"
#include "daemon/journal/directory.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/restore.h"
#include "daemon/queue/store.h"
#include "daemon/util/boot-id.h"
#include "daemon/util/log.h"
#include "daemon/util/name.h"
#include "daemon/util/notify.h"
#include "daemon/util/util.h"

/* Least size of the table of queues. */
#define TABLE_MIN	256U

/* The manager is asked for more time after this many records, and then once in this time. */
#define TELL_RECORDS	65536U
#define TELL_NS		(10000 * NSEC_PER_MSEC)
#define EXTEND_US	120000000U

/**
 * struct restore_entry - a queue of the journal
 * @number: 0 = the entry is free
 * @queue: NULL = it was dropped
 * @crowded: ARMs for which it has no room at the end of the journal
 * @clock: its, by loop_clock()
 * @is_raised: its limit is not the one that is set
 * @is_kept: the module has its timers
 * @is_elsewhere: another thread's journal has a queue of this name, so that the end
 *	of this one must follow
 */
struct restore_entry {
	uint64_t number;
	struct queue *queue;
	uint64_t crowded;
	uint8_t clock;
	bool is_raised;
	bool is_kept;
	bool is_elsewhere;
};

/* -------------------------------------------------------------------- clocks */

/* Sets how deadlines have to be moved. MONOTONIC does not count the time without
 * the machine; BOOTTIME does, by the wall clock. The clocks of a container may go
 * back though the machine is the same.
 */
static void set_shift(struct restore *restore, const struct recovery *recovery)
{
	const uint64_t *then = recovery->clock.ns, *now = restore->now_ns;
	int64_t off;

	if (!recovery->has_clock)
		return;
	if (!memcmp(restore->boot_id, recovery->boot_id,
		    sizeof(restore->boot_id)) && now[2] >= then[2])
		return;
	off = now[0] > then[0] ? now[0] - then[0] : 0;
	restore->shift.op = JOURNAL_OP_SHIFT;
	restore->shift.by_ns[0] = now[1] - then[1];
	restore->shift.by_ns[1] = now[2] - then[2] - off;
}

static int64_t shift_of(const struct restore *restore,
			const struct recovery_place *place, uint8_t clock)
{
	/* REALTIME is absolute. */
	if (clock < 1)
		return 0;
	return (uint64_t)place->shift_ns[clock - 1] +
	       restore->shift.by_ns[clock - 1];
}

/* Sets until when expirations may have been delivered. Deliveries do not wait for the
 * journal, so after a crash that may be all that was due. MONOTONIC goes on from the
 * journal's last time, and the machine may have run for longer.
 */
static void set_late(struct restore *restore, const struct recovery *recovery)
{
	bool is_clean = recovery->clock.flags & JOURNAL_CLOCK_CLEAN;
	int64_t by_ns[LOOP_CLOCKS] = {
		0, restore->shift.by_ns[0], restore->shift.by_ns[1],
	};
	uint64_t until_ns;
	uint32_t i;

	for (i = 0; recovery->has_clock && i < LOOP_CLOCKS; i++) {
		until_ns = is_clean ? journal_move(recovery->clock.ns[i], by_ns[i]) :
				      restore->now_ns[i];
		if (i == 1 && !is_clean && restore->shift.op)
			until_ns += RESTORE_CLOCK_NS;
		/* Deadlines from before the clock was 0 are 0 now. */
		restore->late_ns[i] = until_ns ? until_ns : 1;
	}
}

/* -------------------------------------------------------------------- queues */

static struct restore_entry *find(const struct restore *restore,
				  uint64_t number)
{
	uint32_t i = number * 0x9e3779b1U & (restore->table_size - 1);

	while (restore->table[i].number && restore->table[i].number != number)
		i = (i + 1) & (restore->table_size - 1);
	return &restore->table[i];
}

static int grow(struct restore *restore)
{
	struct restore_entry *old = restore->table;
	uint32_t size = restore->table_size, i;

	if (2 * (restore->table_used + 1) <= size)
		return 0;
	restore->table_size = size ? 2 * size : TABLE_MIN;
	restore->table = calloc(restore->table_size, sizeof(*old));
	if (!restore->table) {
		restore->table = old;
		restore->table_size = size;
		return -ENOMEM;
	}
	for (i = 0; i < size; i++)
		if (old[i].number)
			*find(restore, old[i].number) = old[i];
	free(old);
	return 0;
}

/* Lets the engine prepare for the rows that follow. The file may say anything: all queues
 * together have no more rows than it has bytes for.
 */
static void reserve(struct restore *restore, struct queue *queue)
{
	const struct engine_ops *ops = restore->context->engine->ops;
	uint64_t timers = min_u64(restore->follow, restore->reservable);

	restore->follow = 0;
	if (!ops->reserve || !timers)
		return;
	/* Without memory for it the queue grows as usual. */
	if (!ops->reserve(queue->engine_queue, timers))
		restore->reservable -= timers;
}

/* Returns how the settings say that the queue of the journal is to be made. */
static struct queue_plan plan_of(const struct context *context, const char *name,
				 uint32_t clock_id, uint32_t mode)
{
	const struct declaration *file =
		declarations_find(context->shared->declared, name);
	struct queue_plan plan = {
		.name = name,
		.config = { .clock_id = clock_id, .mode = mode },
		.is_restored = true,
	};

	if (file && (!file->is_good || file->clock_id != clock_id ||
		     file->mode != mode))
		file = NULL;
	declaration_apply(file, &context->config, &plan);
	return plan;
}

/* Makes the queue with this thread, or takes the one that the service manager
 * kept.
 */
static int make_queue(struct restore *restore, const struct journal_make *make,
		      struct restore_entry *entry)
{
	struct context *context = restore->context;
	struct queue_plan plan = plan_of(context, make->name, make->clock_id,
					 make->mode);
	struct queue *queue = queue_find(context->queues, make->name);
	uint64_t rows;
	int r = 0;

	/* A checkpoint has the later one; this one was dropped before. */
	if (queue && queue->journal_number > entry->number)
		return 0;
	if (queue && queue->journal_number)
		return -EEXIST;
	if (queue && (queue->mode != make->mode ||
		      queue->clock_id != make->clock_id))
		return -EEXIST;
	entry->is_kept = queue;
	restore->is_ahead |= entry->is_kept;
	if (!queue) {
		if (context->shared->nr > 1) {
			r = directory_get_in(&context->shared->directory,
					     make->name, context->number,
					     &plan.in_directory);
			entry->is_elsewhere = r == -EEXIST;
			restore->nr_elsewhere += entry->is_elsewhere;
			if (r < 0)
				return entry->is_elsewhere ? 0 : r;
		}
		/* The limit may be lower by now than the number of timers: see settle(). */
		rows = min_u64(restore->follow, restore->reservable);
		entry->is_raised = rows > plan.config.limit;
		if (entry->is_raised)
			plan.config.limit = rows;
		plan.user = user_get(&context->users, make->uid);
		r = plan.user ? queue_new(context, &plan, &queue) : -ENOMEM;
		if (r < 0 && plan.user)
			user_put(&context->users, plan.user);
		directory_unref(&context->shared->directory, plan.in_directory);
		if (r < 0)
			return r;
		reserve(restore, queue);
	}
	queue_set_journal(queue, entry->number);
	queue->late_before_ns = restore->now_ns[loop_clock(make->clock_id)];
	queue->again_before_ns = restore->late_ns[loop_clock(make->clock_id)];
	entry->clock = loop_clock(make->clock_id);
	entry->queue = queue;
	return 0;
}

static int apply_make(struct restore *restore, uint64_t number,
		      const struct expiry_record *record)
{
	struct restore_entry *entry;
	struct journal_make make;
	int r;

	memcpy(&make, record, sizeof(make));
	/* As contents.c of the tools: a check accepts what a start accepts. */
	if (!number || !name_is_valid(make.name) || !make.name[0] ||
	    make.mode != EXPIRY_MODE_ALL || loop_clock(make.clock_id) < 0)
		return -EBADMSG;
	r = grow(restore);
	if (r < 0)
		return r;
	entry = find(restore, number);
	if (number >= restore->next_number)
		restore->next_number = number + 1;
	/* Once more in the journal behind the checkpoint. */
	if (entry->number)
		return entry->queue && !entry->is_kept &&
		       entry->queue->user->uid != make.uid ?
			       queue_give(entry->queue, make.uid) : 0;
	entry->number = number;
	restore->table_used++;
	return make_queue(restore, &make, entry);
}

/* -------------------------------------------------------------------- timers */

/* Handles an answer of the engine. */
static int answered(struct restore *restore, const struct expiry_record *answer)
{
	bool is_arm = answer->op == EXPIRY_OP_ARM;
	struct expiry_record arm;

	if (is_arm && answer->status == -ENOSPC && !restore->has_ended) {
		arm = *answer;
		arm.status = 0;
		return crowded_add(&restore->crowded, restore->queue, &arm);
	}
	if (answer->op == EXPIRY_OP_CLEAR)
		return crowded_forget_all(&restore->crowded, restore->queue);
	crowded_forget(&restore->crowded, restore->queue, answer->id);
	return is_arm ? answer->status : 0;
}

/* Gives the batch to the engine. */
static int flush(struct restore *restore)
{
	const struct engine_ops *ops = restore->context->engine->ops;
	struct engine_io io = {
		.records = restore->batch,
		.count = restore->count,
	};
	uint32_t i;
	int r;

	restore->count = 0;
	if (!io.count)
		return 0;
	r = ops->submit_now(restore->queue->engine_queue, &io);
	for (i = 0; !r && i < io.count; i++)
		if (restore->batch[i].status || restore->crowded.nr)
			r = answered(restore, &restore->batch[i]);
	return r < 0 ? r : 0;
}

/* Adds an empty request. */
static inline int next(struct restore *restore, struct queue *queue,
		       struct expiry_record **requestp)
{
	int r = 0;

	if (restore->count == RESTORE_BATCH || restore->queue != queue)
		r = flush(restore);
	restore->queue = queue;
	*requestp = &restore->batch[restore->count++];
	return r;
}

static int add(struct restore *restore, struct queue *queue,
	       const struct expiry_record *request)
{
	struct expiry_record *added;
	int r = next(restore, queue, &added);

	*added = *request;
	return r;
}

static int add_crowded(void *data, struct queue *queue,
		       const struct expiry_record *arm)
{
	return add(data, queue, arm);
}

/* Ends the timer, and a delivery of it that waits for its ACK. */
static int add_end(struct restore *restore, struct queue *queue, uint64_t id)
{
	struct expiry_record request = { .op = EXPIRY_OP_CANCEL, .id = id };
	int r = add(restore, queue, &request);

	if (r || !restore->has_deliveries)
		return r;
	request.op = EXPIRY_OP_ACK;
	return add(restore, queue, &request);
}

/* Sets the request that makes a periodic timer as @record says, whose deadline is moved
 * by @by_ns. Of the times that it has missed only the last is delivered. One with an
 * unacknowledged delivery keeps that.
 */
static void set_period(struct restore *restore, struct expiry_record *request,
		       const struct expiry_record *record, int64_t by_ns,
		       uint64_t now_ns)
{
	uint64_t age_ns, period_ns = record->period_ms * NSEC_PER_MSEC;

	if (request->deadline_ns <= now_ns) {
		/* In its phase, also where it was due before the clock was 0. Of
		 * a last time that was, only a delivery is left.
		 */
		age_ns = (now_ns - record->deadline_ns - by_ns) % period_ns;
		request->deadline_ns = now_ns - age_ns;
		if (age_ns > now_ns) {
			request->deadline_ns += period_ns;
			request->flags = EXPIRY_F_REDELIVERED;
		}
	} else if (record->flags & EXPIRY_F_REDELIVERED) {
		request->flags = EXPIRY_F_REDELIVERED;
	}
	restore->has_deliveries |= request->flags;
}

/* Arms the timer as @record says. */
static inline int add_timer(struct restore *restore,
			    const struct restore_entry *entry,
			    const struct expiry_record *record, int64_t by_ns)
{
	struct expiry_record *request;
	int r = next(restore, entry->queue, &request);

	*request = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.period_ms = record->period_ms,
		.id = record->id,
		.deadline_ns = by_ns ? journal_move(record->deadline_ns, by_ns) :
				       record->deadline_ns,
		.cookie = record->cookie,
	};
	if (record->period_ms)
		set_period(restore, request, record, by_ns,
			   restore->now_ns[entry->clock]);
	return r;
}

/* Only a periodic timer's last delivery is left of it. */
static int add_last(struct restore *restore, const struct restore_entry *entry,
		    const struct expiry_record *record, int64_t by_ns)
{
	uint64_t now_ns = restore->now_ns[entry->clock];
	uint64_t period_ns = record->period_ms * NSEC_PER_MSEC;
	uint64_t next_ns = journal_move(record->deadline_ns, by_ns);
	struct expiry_record last = {
		.id = record->id,
		.deadline_ns = next_ns > period_ns ? next_ns - period_ns : 0,
		.cookie = record->cookie,
	};

	if (last.deadline_ns > now_ns)
		last.deadline_ns = now_ns;
	return add_timer(restore, entry, &last, 0);
}

/* Moves all timers of a queue to one that is made as @plan says. A failure changes nothing. */
static int move(struct restore *restore, struct restore_entry *entry,
		const struct queue_plan *plan)
{
	const struct engine_ops *ops = restore->context->engine->ops;
	struct queue *queue = entry->queue;
	struct expiry_record rows[RESTORE_BATCH];
	struct engine_queue *before, *ended;
	uint64_t cursor = 0;
	int i, n, r;

	r = queue_renew(queue, plan, &before);
	if (r < 0)
		return r;
	do {
		n = ops->scan(before, rows, RESTORE_BATCH, &cursor);
		for (i = 0; !r && i < n; i++)
			r = add_timer(restore, entry, &rows[i], 0);
	} while (!r && n >= 0 && cursor);
	if (!r)
		r = n < 0 ? n : flush(restore);
	ended = before;
	if (r < 0) {
		restore->count = 0;
		ended = queue->engine_queue;
		queue->engine_queue = before;
	}
	ops->queue_free(ended);
	return r;
}

/* Gives a queue the limit that is set, or where that was lowered since, as many as it has
 * timers: none is lost, and the start is not refused.
 */
static int settle(struct restore *restore, struct restore_entry *entry)
{
	struct queue *queue = entry->queue;
	struct queue_plan plan = plan_of(restore->context, queue->name,
					 queue->clock_id, queue->mode);
	uint64_t set = plan.config.limit, timers;
	struct expiry_stat stat = { 0 };
	int r;

	r = restore->context->engine->ops->stat(queue->engine_queue, &stat);
	if (r < 0)
		return r;
	timers = charge_count_timers(queue) + entry->crowded;
	if (timers > set)
		plan.config.limit = timers;
	if (stat.limit != plan.config.limit)
		r = move(restore, entry, &plan);
	/* Without memory for both it stays as it is, if it has room for all. */
	if (r == -ENOMEM && timers <= stat.limit) {
		plan.config.limit = stat.limit;
		r = 0;
	}
	if (!r && plan.config.limit > set)
		log_warning("queue %.*s has %" PRIu64 " timers, and the limit that is set is %" PRIu64 ": its limit is %" PRIu64 " until the next start",
			    EXPIRY_NAME_MAX, queue->name, timers, set,
			    (uint64_t)plan.config.limit);
	return r;
}

static int count_crowded(void *data, struct queue *queue,
			 const struct expiry_record *arm)
{
	(void)arm;
	find(data, queue->journal_number)->crowded++;
	return 0;
}

static int settle_all(struct restore *restore)
{
	struct restore_entry *entry;
	uint32_t i;
	int r;

	r = crowded_visit(&restore->crowded, count_crowded, restore);
	for (i = 0; !r && i < restore->table_size; i++) {
		entry = &restore->table[i];
		if (entry->queue && (entry->crowded || entry->is_raised))
			r = settle(restore, entry);
	}
	return r;
}

/* Arms what had no room, at the end of the journal. */
static int add_all_crowded(struct restore *restore)
{
	int r = flush(restore);
	struct crowded crowded;

	if (!r)
		r = settle_all(restore);
	crowded = restore->crowded;
	restore->has_ended = true;
	restore->crowded = (struct crowded) { 0 };
	if (!r)
		r = crowded_visit(&crowded, add_crowded, restore);
	if (!r)
		r = flush(restore);
	crowded_free(&crowded);
	return r;
}

static int apply_timer(struct restore *restore,
		       const struct restore_entry *entry,
		       const struct recovery_place *place,
		       const struct expiry_record *record)
{
	int64_t by_ns = shift_of(restore, place, entry->clock);
	struct expiry_record clear = { .op = EXPIRY_OP_CLEAR };
	struct queue *queue = entry->queue;

	if (!record->id && record->op != EXPIRY_OP_CLEAR)
		return -EBADMSG;
	switch (record->op) {
	case EXPIRY_OP_ARM:
	case EXPIRY_OP_REFRESH:
	case EXPIRY_OP_QUERY:
		return add_timer(restore, entry, record, by_ns);
	case EXPIRY_OP_ACK:
		if (record->period_ms)
			return add_timer(restore, entry, record, by_ns);
		return add_end(restore, queue, record->id);
	case EXPIRY_OP_CANCEL:
		if (record->flags & EXPIRY_F_REDELIVERED)
			return add_last(restore, entry, record, by_ns);
		return add_end(restore, queue, record->id);
	case EXPIRY_OP_CLEAR:
		return add(restore, queue, &clear);
	default:
		return -EBADMSG;
	}
}

static int apply_drop(struct restore *restore, struct restore_entry *entry)
{
	struct queue *queue = entry->queue;
	int r = flush(restore);

	if (!r)
		r = crowded_forget_all(&restore->crowded, queue);
	restore->queue = NULL;
	entry->queue = NULL;
	if (entry->is_kept) {
		queue_set_journal(queue, 0);
		return r;
	}
	store_forget(queue);
	queue_remove(queue);
	return r;
}

/* Asks the service manager for more time, once in a while: a large journal on a slow disk
 * takes longer than a start may otherwise.
 */
static void tell_progress(struct restore *restore)
{
	uint64_t now_ns = loop_now_exactly(CLOCK_MONOTONIC);

	if (restore->told_ns && now_ns - restore->told_ns < TELL_NS)
		return;
	restore->told_ns = now_ns;
	(void)notify_tell("EXTEND_TIMEOUT_USEC=%u\nSTATUS=Reading the journal: %" PRIu64 " records",
			  EXTEND_US, restore->applied);
}

static int apply(void *data, const struct recovery_place *place,
		 const struct expiry_record *record)
{
	struct restore *restore = data;
	struct restore_entry *entry;

	if (++restore->applied % TELL_RECORDS == 0)
		tell_progress(restore);
	if (record->op == JOURNAL_OP_QUEUE)
		restore->follow = record->cookie;
	if (record->op == JOURNAL_OP_MAKE)
		return apply_make(restore, place->queue, record);
	if (record->op >= JOURNAL_OP_SEGMENT && record->op <= JOURNAL_OP_QUEUE)
		return 0;
	if (!place->queue || !restore->table_size)
		return 0;
	/* The block in which a checkpoint began may name queues that had been
	 * dropped before.
	 */
	entry = find(restore, place->queue);
	if (entry->is_elsewhere && record->op == JOURNAL_OP_DROP) {
		entry->is_elsewhere = false;
		restore->nr_elsewhere--;
	}
	if (!entry->queue)
		return 0;
	if (record->op == JOURNAL_OP_DROP)
		return apply_drop(restore, entry);
	return entry->is_kept ? 0 :
	       apply_timer(restore, entry, place, record);
}

/* ----------------------------------------------------------------- the whole */

/* The queue is complete. One from the manager's store counts as complete at the next start,
 * so none gets there before: a start may be refused, or killed.
 */
static void finish_queue(struct restore *restore, struct queue *queue)
{
	const struct engine_ops *ops = restore->context->engine->ops;

	if (ops->reserve)
		ops->reserve(queue->engine_queue, 0);
	store_keep(queue);
}

static void count_queue(struct restore *restore, struct queue *queue)
{
	const struct engine_ops *ops = restore->context->engine->ops;
	uint64_t now_ns = restore->now_ns[loop_clock(queue->clock_id)];
	struct expiry_stat stat;
	uint64_t cursor = 0;
	int i, n;

	charge_update(queue);
	restore->nr_queues++;
	restore->nr_timers += charge_count_timers(queue);
	/* Most often none is overdue; a delivery that waits is not in the heap. */
	if (!ops->stat(queue->engine_queue, &stat) && !stat.unacked &&
	    stat.next_ns > now_ns)
		return;
	do {
		n = ops->scan(queue->engine_queue, restore->batch,
			      RESTORE_BATCH, &cursor);
		for (i = 0; i < n; i++)
			restore->nr_overdue +=
				restore->batch[i].deadline_ns <= now_ns;
	} while (n >= 0 && cursor);
}

static void log_fault(const struct restore *restore,
		      const struct recovery *recovery, int error)
{
	char name[JOURNAL_NAME];

	if (!recovery->why) {
		log_err("journal: the queues of thread %u cannot be made: %s%s",
			restore->context->number, strerror(-error),
			error == -ENOSPC ? " (see queues in expiryd.conf)" :
					   "");
		return;
	}
	journal_name(name, &recovery->fault, false);
	log_err("journal: %s at byte %llu: %s: the start is refused, see expiryd(8)",
		name, (unsigned long long)recovery->fault_offset,
		recovery->why);
}

int restore_run(struct restore *restore, struct recovery *recovery,
		struct context *context)
{
	uint32_t i;
	int r;

	*restore = (struct restore) { .context = context, .next_number = 1 };
	restore->now_ns[0] = loop_now(&context->loop, CLOCK_REALTIME);
	restore->now_ns[1] = loop_now(&context->loop, CLOCK_MONOTONIC);
	restore->now_ns[2] = loop_now(&context->loop, CLOCK_BOOTTIME);
	boot_id_read(restore->boot_id);
	if (!context->number &&
	    !memcmp(restore->boot_id, (uint8_t[16]) { 0 }, 16))
		log_warning("journal: cannot read " BOOT_ID_FILE ": after a reboot deadlines on MONOTONIC and BOOTTIME may be wrong");
	r = recovery_open(recovery, &context->shared->journal->disk,
			  context->number, false);
	if (!r) {
		set_shift(restore, recovery);
		set_late(restore, recovery);
		restore->reservable = recovery->checkpoint_size /
				      sizeof(struct expiry_record);
		r = recovery_replay(recovery, apply, restore);
	}
	if (!r)
		r = add_all_crowded(restore);
	if (!r && restore->nr_elsewhere)
		r = -EEXIST;
	if (r < 0)
		log_fault(restore, recovery, r);
	for (i = 0; !r && i < restore->table_size; i++)
		if (restore->table[i].queue) {
			finish_queue(restore, restore->table[i].queue);
			count_queue(restore, restore->table[i].queue);
		}
	crowded_free(&restore->crowded);
	free(restore->table);
	restore->table = NULL;
	return r;
}
