// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "daemon/util/name.h"
#include "tools/journal/contents.h"

#define TABLE_MIN	64U

/* ------------------------------------------------------------------- timers */

/* Mixes an id, so that its lowest bits depend on all: the end of MurmurHash3. */
static uint64_t hash(uint64_t id)
{
	id ^= id >> 33;
	id *= 0xff51afd7ed558ccdULL;
	id ^= id >> 33;
	id *= 0xc4ceb9fe1a85ec53ULL;
	return id ^ id >> 33;
}

/* Returns the entry of @id, or the free one for it. */
static struct expiry_record *find_timer(const struct contents *contents,
					const struct contents_queue *queue,
					uint64_t id)
{
	size_t i = hash(id ^ contents->key) & (queue->size - 1);

	while (queue->timers[i].id && queue->timers[i].id != id)
		i = (i + 1) & (queue->size - 1);
	return &queue->timers[i];
}

static bool is_ended(const struct expiry_record *timer)
{
	return !timer->op;
}

/* Makes room for one more timer. Ended ones do not move to the new table. */
static int grow_table(const struct contents *contents,
		      struct contents_queue *queue)
{
	struct expiry_record *old = queue->timers;
	size_t size = queue->size, i;

	if (4 * (queue->nr_used + 1) <= 3 * size)
		return 0;
	queue->size = size ? 2 * size : TABLE_MIN;
	queue->timers = calloc(queue->size, sizeof(*old));
	if (!queue->timers) {
		queue->timers = old;
		queue->size = size;
		return -ENOMEM;
	}
	queue->nr_used = 0;
	for (i = 0; i < size; i++)
		if (old[i].id && !is_ended(&old[i])) {
			*find_timer(contents, queue, old[i].id) = old[i];
			queue->nr_used++;
		}
	free(old);
	return 0;
}

static void clear_table(struct contents_queue *queue)
{
	free(queue->timers);
	queue->timers = NULL;
	queue->size = 0;
	queue->nr_used = 0;
}

/* Sets the timer's state. @op: ARM, CANCEL, or 0: it has ended. */
static int set_timer(const struct contents *contents,
		     struct contents_queue *queue,
		     const struct recovery_place *place,
		     const struct expiry_record *record, uint8_t op)
{
	int64_t by_ns = queue->clock_id == CLOCK_REALTIME ?
				0 :
				place->shift_ns[queue->clock_id !=
						CLOCK_MONOTONIC];
	struct expiry_record *timer;
	int r = grow_table(contents, queue);

	if (r < 0)
		return r;
	timer = find_timer(contents, queue, record->id);
	queue->nr_used += !timer->id;
	*timer = (struct expiry_record) {
		.op = op,
		.flags = op == EXPIRY_OP_CANCEL ||
			 (op && record->period_ms) ?
				 record->flags & EXPIRY_F_REDELIVERED : 0,
		.period_ms = record->period_ms,
		.id = record->id,
		.deadline_ns = journal_move(record->deadline_ns, by_ns),
		.cookie = record->cookie,
	};
	return 0;
}

static int apply_timer(const struct contents *contents,
		       struct contents_queue *queue,
		       const struct recovery_place *place,
		       const struct expiry_record *record)
{
	uint8_t op = EXPIRY_OP_ARM;

	if (record->op == EXPIRY_OP_CLEAR) {
		clear_table(queue);
		return 0;
	}
	if (!record->id)
		return -EBADMSG;
	switch (record->op) {
	case EXPIRY_OP_ARM:
	case EXPIRY_OP_REFRESH:
	case EXPIRY_OP_QUERY:
		break;
	case EXPIRY_OP_ACK:
		if (!record->period_ms)
			op = 0;
		break;
	case EXPIRY_OP_CANCEL:
		op = record->flags & EXPIRY_F_REDELIVERED ? EXPIRY_OP_CANCEL :
							    0;
		break;
	default:
		return -EBADMSG;
	}
	return set_timer(contents, queue, place, record, op);
}

/* ------------------------------------------------------------------- queues */

static int compare_numbers(const void *a, const void *b)
{
	const struct contents_queue *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int compare_names(const void *a, const void *b)
{
	const struct contents_queue *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void free_queue(void *data)
{
	struct contents_queue *queue = data;

	free(queue->timers);
	free(queue);
}

/* Makes a queue. If a later one of its name is there, from the checkpoint, this one
 * was dropped before.
 */
static int apply_make(struct contents *contents, uint64_t number,
		      const struct expiry_record *record)
{
	struct contents_queue *queue, **found;
	struct journal_make make;
	int r;

	memcpy(&make, record, sizeof(make));
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->number = number;
	queue->clock_id = make.clock_id;
	queue->uid = make.uid;
	memcpy(queue->name, make.name, sizeof(make.name));
	if (!number || !name_is_valid(make.name) || !make.name[0] ||
	    make.mode != EXPIRY_MODE_ALL ||
	    (make.clock_id != CLOCK_REALTIME &&
	     make.clock_id != CLOCK_MONOTONIC &&
	     make.clock_id != CLOCK_BOOTTIME)) {
		free(queue);
		return -EBADMSG;
	}
	found = tsearch(queue, &contents->by_number, compare_numbers);
	if (!found || *found != queue) {
		/* It comes again with another owner. */
		if (found)
			(*found)->uid = queue->uid;
		free(queue);
		return found ? 0 : -ENOMEM;
	}
	found = tsearch(queue, &contents->by_name, compare_names);
	if (found && *found == queue)
		return 0;
	r = !found ? -ENOMEM : (*found)->number < number ? -EEXIST : 0;
	tdelete(queue, &contents->by_number, compare_numbers);
	free(queue);
	return r;
}

static int apply(void *data, const struct recovery_place *place,
		 const struct expiry_record *record)
{
	const struct contents_queue key = { .number = place->queue };
	struct contents_queue **found, *queue;
	struct contents *contents = data;

	if (record->op == JOURNAL_OP_MAKE)
		return apply_make(contents, place->queue, record);
	if (record->op >= JOURNAL_OP_SEGMENT && record->op <= JOURNAL_OP_QUEUE)
		return 0;
	found = tfind(&key, &contents->by_number, compare_numbers);
	if (!found)
		return 0;
	queue = *found;
	if (record->op != JOURNAL_OP_DROP)
		return apply_timer(contents, queue, place, record);
	tdelete(queue, &contents->by_name, compare_names);
	tdelete(queue, &contents->by_number, compare_numbers);
	free_queue(queue);
	return 0;
}

/* Notes where a record is that no daemon writes. */
static int visit(void *data, const struct recovery_place *place,
		 const struct expiry_record *record)
{
	struct contents *contents = data;
	struct recovery *recovery = &contents->recovery;
	int r = apply(contents, place, record);

	if (r == -EBADMSG || r == -EEXIST) {
		recovery->fault = place->file;
		recovery->fault_offset = place->offset;
		recovery->why = r == -EEXIST ? "a queue is there twice" :
					       "a record that no daemon writes";
		r = -EBADMSG;
	}
	return r;
}

/* -------------------------------------------------------------------- the whole */

static void count_queue(const void *node, VISIT which, void *data)
{
	struct contents *contents = data;

	(void)node;
	contents->nr_queues += which == postorder || which == leaf;
}

static void list_queue(const void *node, VISIT which, void *data)
{
	struct contents *contents = data;

	if (which == postorder || which == leaf)
		contents->queues[contents->nr_queues++] =
			*(struct contents_queue *const *)node;
}

static int compare_timers(const void *a, const void *b)
{
	const struct expiry_record *x = a, *y = b;

	if (x->deadline_ns != y->deadline_ns)
		return x->deadline_ns < y->deadline_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Turns the hash table into a sorted array. */
static void sort_timers(struct contents_queue *queue)
{
	size_t i;

	for (i = 0; i < queue->size; i++)
		if (queue->timers[i].id && !is_ended(&queue->timers[i]))
			queue->timers[queue->nr_timers++] = queue->timers[i];
	if (queue->nr_timers)
		qsort(queue->timers, queue->nr_timers, sizeof(*queue->timers),
		      compare_timers);
}

static int list_queues(struct contents *contents)
{
	size_t i;

	twalk_r(contents->by_name, count_queue, contents);
	contents->queues = calloc(contents->nr_queues + 1,
				  sizeof(*contents->queues));
	contents->nr_queues = 0;
	if (!contents->queues)
		return -ENOMEM;
	twalk_r(contents->by_name, list_queue, contents);
	for (i = 0; i < contents->nr_queues; i++)
		sort_timers(contents->queues[i]);
	return 0;
}

int contents_read(struct contents *contents, struct disk *disk,
		  uint16_t thread)
{
	int r;

	*contents = (struct contents) { 0 };
	if (getrandom(&contents->key, sizeof(contents->key), 0) < 0)
		return -errno;
	r = recovery_open(&contents->recovery, disk, thread, false);
	if (!r)
		r = recovery_replay(&contents->recovery, visit, contents);
	return r ? r : list_queues(contents);
}

static void forget(void *data)
{
	(void)data;
}

void contents_free(struct contents *contents)
{
	tdestroy(contents->by_name, forget);
	tdestroy(contents->by_number, free_queue);
	free(contents->queues);
	recovery_close(&contents->recovery);
	*contents = (struct contents) { 0 };
}
