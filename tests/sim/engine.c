// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded engine, between the daemon and a naive twin of each queue. What
 * the daemon asks of it must be what clients asked, each request once and in
 * order; what it answers must be what the twin answers. It may be slow, and it
 * may fail.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/engine/engine.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"
#include "tests/core/horrible.h"
#include "tests/sim/file.h"
#include "tests/sim/lives.h"

extern const struct engine_ops engine_fast;
static struct engine_ops ops;

/**
 * struct twin - a queue
 * @rewound: the last consumer that got what others had not acknowledged
 * @is_unsure: something failed halfway, so that the twin knows no more
 * @is_reserved: it waits for more timers at the start
 * @fd: the descriptor by which it outlives the daemon
 */
struct twin {
	struct list all;
	bool is_reserved;
	struct engine_queue *queue;
	struct horrible horrible;
	uint32_t clock_id;
	uint32_t mode;
	const struct peer *rewound;
	bool is_unsure;
	int fd;
};

/* An operation that is done later. */
struct later {
	struct loop_op op;
	struct __kernel_timespec time;
	struct engine_io *io;
	struct engine_queue *queue;
	struct peer *consumer;
	struct list all;
	int result;
	bool is_collect;
	bool is_done;
	bool is_stopped;
};

static struct list twins = { &twins, &twins };
static struct list under_way = { &under_way, &under_way };

static struct twin *twin_of(const struct engine_queue *queue)
{
	struct list *entry;

	for (entry = twins.next; entry != &twins; entry = entry->next)
		if (container_of(entry, struct twin, all)->queue == queue)
			return container_of(entry, struct twin, all);
	sim_fail("a queue is used that is not there");
}

static uint64_t twin_now(const struct twin *twin)
{
	return loop_now(twin->queue->engine->loop, twin->clock_id);
}

static bool hits(uint32_t per_mille)
{
	return sim.phase == SIM_RUN && rng_hits(&sim.kernel, per_mille);
}

/* ----------------------------------------------------------------- requests */

/* Checks that the daemon passes on what the client asked. */
static struct request *check_asked(struct twin *twin, struct peer *peer,
				   const struct expiry_record *record)
{
	uint32_t number = request_find(peer, record);
	struct request *request = &peer->requests[number];
	const char *name = inside_name(twin->queue->owner);

	if (!number)
		sim_fail("client %u: the engine is given what it did not ask: op %u, cookie %llx",
			 peer->number, record->op,
			 (unsigned long long)record->cookie);
	if (memcmp(&request->record, record, sizeof(*record)))
		sim_fail("client %u: request %u has changed", peer->number,
			 number);
	if (request->is_submitted)
		sim_fail("client %u: request %u is done twice", peer->number,
			 number);
	if (number <= peer->submitted)
		sim_fail("client %u: request %u is done after %u", peer->number,
			 number, peer->submitted);
	if (SIM_RECORD * (number + 1) > peer->written)
		sim_fail("client %u: request %u is done before it is sent",
			 peer->number, number);
	peer->submitted = number;
	if (memcmp(name, peer->hello.name, EXPIRY_NAME_MAX))
		sim_fail("client %u: its request went to queue %.24s",
			 peer->number, name);
	request->is_submitted = true;
	return request;
}

/* Compares the answer with the twin's. */
static void check_answer(struct twin *twin, struct request *request,
			 const struct expiry_record *answer)
{
	const struct expiry_record *asked = &request->record;
	struct expiry_record expected = *asked;

	request->result = *answer;
	if (answer->status == -ENOMEM && sim.has_failed)
		return;
	if (twin->is_unsure) {
		past_spoil(inside_name(twin->queue->owner));
		return;
	}
	horrible_submit(&twin->horrible, &expected, twin_now(twin),
			twin->mode & EXPIRY_MODE_KEYED || answer->status ? 0 :
			answer->id);
	if (memcmp(&expected, answer, sizeof(expected)))
		sim_fail("queue %.24s: op %u of id %llx is answered %d, flags %u, deadline %llu, and should be %d, %u, %llu",
			 inside_name(twin->queue->owner), asked->op,
			 (unsigned long long)asked->id, answer->status,
			 answer->flags, (unsigned long long)answer->deadline_ns,
			 expected.status, expected.flags,
			 (unsigned long long)expected.deadline_ns);
	if (inside_is_durable(twin->queue->owner))
		request->change = past_note(inside_name(twin->queue->owner),
					    answer,
					    horrible_find(&twin->horrible,
							  answer->id));
}

/* Does a batch, or the part of it before the engine fails. */
static int do_submit(struct engine_queue *queue, struct engine_io *io)
{
	struct twin *twin = twin_of(queue);
	struct peer *peer = inside_asker(io);
	uint32_t count = io->count, i;
	struct request **asked;
	int r;

	if (hits(sim.broken))
		io->count = rng_below(&sim.kernel, count);
	if (twin->is_reserved)
		sim_fail("queue %.24s is never told that all its timers are there",
			 inside_name(queue->owner));
	asked = sim_alloc((count + 1) * sizeof(*asked));
	for (i = 0; i < count; i++)
		asked[i] = check_asked(twin, peer, &io->records[i]);
	r = io->count ? engine_fast.submit(queue, io) : 0;
	for (i = 0; i < io->count; i++)
		check_answer(twin, asked[i], &io->records[i]);
	for (; i < count; i++) {
		asked[i]->result = asked[i]->record;
		asked[i]->result.status = -EIO;
	}
	sim.requests += count;
	io->progress = io->count;
	if (io->count < count)
		r = -EIO;
	io->count = count;
	sim_free(asked);
	return r;
}

/* -------------------------------------------------------------- expirations */

/* Lets the consumer and the observers expect what the daemon makes of expirations. */
static void expect(const struct engine_queue *queue,
		   const struct expiry_record *records, uint32_t nr,
		   struct peer *consumer)
{
	struct expiry_record *marked = sim_alloc(nr * sizeof(*marked));

	memcpy(marked, records, nr * sizeof(*marked));
	inside_mark(queue->owner, marked, nr);
	peer_expect(consumer, marked, nr);
	inside_copy(queue->owner, marked, nr);
	sim_free(marked);
}

static int do_collect(struct engine_queue *queue, struct engine_io *io,
		      struct peer *consumer)
{
	struct twin *twin = twin_of(queue);
	int i, r;

	if (hits(sim.broken)) {
		if (consumer)
			consumer->may_end = true;
		return -EIO;
	}
	r = engine_fast.collect(queue, io);
	if (r < 0 && consumer)
		consumer->may_end = true;
	for (i = 0; i < r && !twin->is_unsure; i++) {
		const char *wrong = horrible_deliver(&twin->horrible,
						     &io->records[i],
						     twin_now(twin), false);

		if (wrong)
			sim_fail("queue %.24s: id %llx: %s",
				 inside_name(queue->owner),
				 (unsigned long long)io->records[i].id, wrong);
	}
	if (r > 0)
		sim.expirations += r;
	if (r > 0 && consumer)
		expect(queue, io->records, r, consumer);
	return r;
}

/* --------------------------------------------------------------------- later */

static void later_done(struct loop_op *op, int result, uint32_t flags)
{
	struct later *later = container_of(op, struct later, op);
	struct engine_io *io = later->io;
	struct peer *consumer = later->consumer;
	int r = later->result;

	(void)result;
	(void)flags;
	sim.shield++;
	/* A consumer that has left gets nothing, nor does the next. */
	if (inside_consumer(later->queue->owner) != consumer)
		consumer = NULL;
	if (later->is_stopped)
		r = 0;
	else if (!later->is_done && later->is_collect)
		r = do_collect(later->queue, io, consumer);
	else if (!later->is_done)
		r = do_submit(later->queue, io);
	list_del(&later->all);
	sim_free(later);
	sim.io--;
	sim.shield--;
	io->done(io, r);
}

static int do_later(struct engine_queue *queue, struct engine_io *io,
		    bool is_collect)
{
	struct later *later = sim_alloc(sizeof(*later));
	struct io_uring_sqe *sqe;

	later->op.done = later_done;
	later->io = io;
	later->queue = queue;
	later->is_collect = is_collect;
	later->consumer = is_collect ? inside_consumer(queue->owner) : NULL;
	later->time.tv_nsec = 1 + rng_below(&sim.kernel, 100 * SIM_MS);
	/* The module may do a request long before it says so. */
	if (!is_collect && rng_hits(&sim.kernel, 500)) {
		later->result = do_submit(queue, io);
		later->is_done = true;
	}
	list_add(&under_way, &later->all);
	sim.io++;
	sqe = loop_sqe(queue->engine->loop, &later->op);
	io_uring_prep_timeout(sqe, &later->time, 0, 0);
	return -EINPROGRESS;
}

static int sim_submit(struct engine_queue *queue, struct engine_io *io)
{
	int r;

	inside_check_overdue(io);
	sim.shield++;
	/* The order of the journal is that of the answers. */
	r = hits(sim.slow) && !inside_is_durable(queue->owner) ?
	    do_later(queue, io, false) : do_submit(queue, io);
	sim.shield--;
	return r;
}

static int sim_collect(struct engine_queue *queue, struct engine_io *io)
{
	struct peer *consumer = inside_consumer(queue->owner);
	int r;

	if (!consumer)
		sim_fail("queue %.24s is collected for nobody",
			 inside_name(queue->owner));
	if (io->count + consumer->collected > consumer->given)
		sim_fail("client %u has given credit for %llu, got %llu, and %u more are collected",
			 consumer->number, (unsigned long long)consumer->given,
			 (unsigned long long)consumer->collected, io->count);
	sim.shield++;
	r = hits(sim.slow) ? do_later(queue, io, true) :
			     do_collect(queue, io, consumer);
	sim.shield--;
	return r;
}

static void sim_stop(struct engine_queue *queue, struct engine_io *io)
{
	struct list *entry;

	for (entry = under_way.next; entry != &under_way; entry = entry->next) {
		struct later *later = container_of(entry, struct later, all);

		/* It may be too late. */
		if (later->io == io && later->queue == queue &&
		    rng_hits(&sim.kernel, 500))
			later->is_stopped = true;
	}
}

/* -------------------------------------------------------------------- queues */

static int sim_queue_new(struct engine *engine, struct expiry_config *config,
			 uint32_t layout, struct engine_queue **queuep)
{
	struct twin *twin;
	int r = engine_fast.queue_new(engine, config, layout, queuep);

	if (r < 0)
		return r;
	sim.shield++;
	twin = sim_alloc(sizeof(*twin));
	twin->queue = *queuep;
	twin->clock_id = config->clock_id;
	twin->mode = config->mode;
	horrible_init(&twin->horrible, config->mode, config->limit);
	twin->fd = sim.keeps ? file_new(FILE_QUEUE, NULL) : -1;
	list_add(&twins, &twin->all);
	sim.shield--;
	return 0;
}

/* Takes a queue of an earlier daemon, which had no timers left. */
static int sim_queue_adopt(struct engine *engine, int fd,
			   struct expiry_stat *stat,
			   struct engine_queue **queuep)
{
	struct expiry_config config = { .limit = 1000 };
	struct twin *twin;
	int r;

	if (rng_hits(&sim.kernel, 50))
		return -ENOTTY;
	if (rng_hits(&sim.kernel, 50)) {
		/* It stays in the store. */
		manager_lost();
		return -ENODEV;
	}
	topic_kind(*manager_passed(fd - FILE_PASSED), &config.clock_id,
		   &config.mode);
	r = sim_queue_new(engine, &config, EXPIRY_LAYOUT_RADIX, queuep);
	if (r < 0)
		return r;
	twin = twin_of(*queuep);
	close(twin->fd);
	twin->fd = fd;
	return engine_fast.stat(*queuep, stat);
}

static int sim_queue_fd(struct engine_queue *queue)
{
	return twin_of(queue)->fd;
}

const char *engine_queue_name(int fd)
{
	static char text[64];
	struct list *entry;
	struct twin *twin;

	for (entry = twins.next; entry != &twins; entry = entry->next) {
		twin = container_of(entry, struct twin, all);
		if (twin->fd != fd)
			continue;
		snprintf(text, sizeof(text), "%.24s@%u",
			 inside_name(twin->queue->owner),
			 inside_owner(twin->queue->owner));
		return text;
	}
	return "no queue";
}

static void sim_queue_free(struct engine_queue *queue)
{
	struct twin *twin;
	struct list *entry;

	if (!queue)
		return;
	twin = twin_of(queue);
	topic_lost(inside_name(queue->owner));
	for (entry = under_way.next; entry != &under_way; entry = entry->next)
		if (container_of(entry, struct later, all)->queue == queue &&
		    sim.phase < SIM_STOP)
			sim_fail("a queue is freed that the engine works on");
	list_del(&twin->all);
	if (twin->fd >= 0)
		close(twin->fd);
	horrible_free(&twin->horrible);
	sim_free(twin);
	engine_fast.queue_free(queue);
}

static int sim_rewind(struct engine_queue *queue)
{
	struct peer *consumer = inside_consumer(queue->owner);
	struct twin *twin = twin_of(queue);
	uint32_t steal_in = sim.steal_in;
	int r;

	if (hits(sim.broken)) {
		if (consumer)
			consumer->may_end = true;
		return -EIO;
	}
	r = engine_fast.rewind(queue);
	/* Without memory it is done in part. */
	if (r < 0 || (steal_in && !sim.steal_in)) {
		twin->is_unsure = true;
		if (consumer)
			consumer->may_end = true;
	} else if (!r) {
		twin->rewound = consumer;
		horrible_rewind(&twin->horrible, twin_now(twin));
	}
	return r;
}

static int sim_reserve(struct engine_queue *queue, uint64_t timers)
{
	struct twin *twin = twin_of(queue);

	if (sim.phase != SIM_START || (timers && twin->horrible.nr))
		sim_fail("queue %.24s is prepared for %llu timers while it has some",
			 inside_name(queue->owner),
			 (unsigned long long)timers);
	twin->is_reserved = timers;
	return engine_fast.reserve(queue, timers);
}

static int sim_submit_now(struct engine_queue *queue, struct engine_io *io)
{
	struct expiry_record *records = io->records;
	struct twin *twin = twin_of(queue);
	struct expiry_record *asked;
	uint32_t i;
	int r;

	if (sim.phase != SIM_START) {
		if (io->count != 1 || records->op != EXPIRY_OP_QUERY)
			twin->is_unsure = true;
		return engine_fast.submit_now(queue, io);
	}
	/* The daemon makes a durable queue anew. */
	asked = sim_alloc(io->count * sizeof(*asked));
	memcpy(asked, records, io->count * sizeof(*asked));
	r = engine_fast.submit_now(queue, io);
	for (i = 0; i < io->count; i++) {
		horrible_submit(&twin->horrible, &asked[i], twin_now(twin), 0);
		if (memcmp(&asked[i], &records[i], sizeof(asked[i])))
			sim_fail("queue %.24s: op %u of id %llx is answered %d at the start, and should be %d",
				 inside_name(queue->owner), records[i].op,
				 (unsigned long long)records[i].id,
				 records[i].status, asked[i].status);
	}
	sim_free(asked);
	return r;
}

bool engine_removes(const char *name)
{
	struct list *entry;

	for (entry = twins.next; entry != &twins; entry = entry->next) {
		const void *owner =
			container_of(entry, struct twin, all)->queue->owner;

		if (inside_is_removed(owner) &&
		    !strncmp(inside_name(owner), name, EXPIRY_NAME_MAX))
			return true;
	}
	return false;
}

int engine_rows(const char *name, struct expiry_record *rows, uint32_t max,
		uint32_t *clock_idp)
{
	struct list *entry;
	uint64_t cursor = 0;
	uint32_t nr = 0;
	int n;

	for (entry = twins.next; entry != &twins; entry = entry->next) {
		struct twin *twin = container_of(entry, struct twin, all);

		if (!inside_is_durable(twin->queue->owner) ||
		    strncmp(inside_name(twin->queue->owner), name,
			    EXPIRY_NAME_MAX))
			continue;
		do {
			n = engine_fast.scan(twin->queue, rows + nr, max - nr,
					     &cursor);
			if (n < 0)
				sim_fail("a queue cannot be scanned: %s",
					 strerror(-n));
			nr += n;
		} while (cursor && nr < max);
		*clock_idp = twin->clock_id;
		return nr;
	}
	return -1;
}

static int sim_scan(struct engine_queue *queue, struct expiry_record *records,
		    uint32_t count, uint64_t *cursor)
{
	struct twin *twin = twin_of(queue);
	int i, r;

	if (hits(sim.broken))
		return -EIO;
	r = engine_fast.scan(queue, records, count, cursor);
	for (i = 0; i < r && !twin->is_unsure; i++) {
		const struct horrible_timer *timer =
			horrible_find(&twin->horrible, records[i].id);

		if (!timer || timer->cookie != records[i].cookie)
			sim_fail("queue %.24s: SCAN lists id %llx, which is not there",
				 inside_name(queue->owner),
				 (unsigned long long)records[i].id);
	}
	return r;
}

/* Counters that the engine gave to the daemon, by their sums. */
static uint64_t *stats;
static uint32_t nr_stats, max_stats;

static uint64_t stat_sum(const struct expiry_stat *stat)
{
	const unsigned char *bytes = (const void *)stat;
	uint64_t sum = 14695981039346656037ULL;
	size_t i;

	for (i = 0; i < sizeof(*stat); i++)
		sum = (sum ^ bytes[i]) * 1099511628211ULL;
	return sum;
}

static void stat_given(const struct expiry_stat *stat)
{
	if (nr_stats == max_stats) {
		max_stats = max_stats * 2 + 256;
		stats = sim_realloc(stats, max_stats * sizeof(*stats));
	}
	stats[nr_stats++] = stat_sum(stat);
}

bool engine_gave_stat(const struct expiry_stat *stat)
{
	static const struct expiry_stat none;
	uint64_t sum = stat_sum(stat);
	uint32_t i;

	for (i = nr_stats; i; i--)
		if (stats[i - 1] == sum)
			return true;
	return !memcmp(stat, &none, sizeof(none));
}

static int sim_stat(struct engine_queue *queue, struct expiry_stat *stat)
{
	struct twin *twin = twin_of(queue);
	int r = engine_fast.stat(queue, stat);

	if (r >= 0) {
		sim.shield++;
		stat_given(stat);
		sim.shield--;
	}
	if (r >= 0 && !twin->is_unsure &&
	    stat->armed != horrible_armed(&twin->horrible))
		sim_fail("queue %.24s: STAT has %llu armed, and should have %u",
			 inside_name(queue->owner),
			 (unsigned long long)stat->armed,
			 horrible_armed(&twin->horrible));
	return r;
}

static int sim_open(struct engine **enginep, struct loop *loop,
		    const char *device, struct budget *memory)
{
	int r = engine_fast.open(enginep, loop, device, memory);

	if (r < 0)
		return r;
	ops = engine_fast;
	ops.open = sim_open;
	ops.submit = sim_submit;
	ops.submit_now = sim_submit_now;
	ops.reserve = sim_reserve;
	ops.collect = sim_collect;
	ops.stop = sim_stop;
	ops.queue_new = sim_queue_new;
	ops.queue_free = sim_queue_free;
	ops.queue_fd = sim.keeps ? sim_queue_fd : NULL;
	ops.queue_adopt = sim.keeps ? sim_queue_adopt : NULL;
	ops.rewind = sim_rewind;
	ops.scan = sim_scan;
	ops.stat = sim_stat;
	(*enginep)->ops = &ops;
	return 0;
}

const struct engine_ops engine_embedded = {
	.name = "embedded",
	.kind = EXPIRY_ENGINE_EMBEDDED,
	.open = sim_open,
};

/* Checks that the daemon does not sleep on what it could deliver: the client gives
 * credit and has read all, and the daemon has read all of it.
 */
void engine_check_idle(void)
{
	struct list *entry;

	if (sim.io)
		return;
	for (entry = twins.next; entry != &twins; entry = entry->next) {
		struct twin *twin = container_of(entry, struct twin, all);
		struct peer *consumer = inside_consumer(twin->queue->owner);
		uint64_t next_ns = horrible_next_ns(&twin->horrible);

		if (!consumer || twin->is_unsure || consumer->is_gone ||
		    consumer->is_unclear || consumer->has_ended ||
		    consumer->stream->len || !consumer->stream->other ||
		    consumer->stream->other->len ||
		    consumer->written % SIM_RECORD)
			continue;
		if (twin->mode & EXPIRY_MODE_ACK && consumer->is_open &&
		    twin->rewound != consumer)
			sim_fail("queue %.24s: client %u does not get again what was not acknowledged",
				 inside_name(twin->queue->owner),
				 consumer->number);
		if (consumer->given <= consumer->collected)
			continue;
		/* They come behind rows that wait for a checkpoint, or behind the reply
		 * to HELLO, which has not said yet that the queue is durable.
		 */
		if (inside_journal_fails() &&
		    (inside_is_durable(twin->queue->owner) ||
		     inside_lacks_buffers()))
			continue;
		if (next_ns <= sim_now(twin->clock_id))
			sim_fail("queue %.24s: a timer is due since %llu ns, client %u has credit for %llu, and the daemon sleeps",
				 inside_name(twin->queue->owner),
				 (unsigned long long)(sim_now(twin->clock_id) -
						      next_ns),
				 consumer->number,
				 (unsigned long long)(consumer->given -
						      consumer->collected));
	}
}

void engine_check_ended(void)
{
	if (!list_empty(&twins) || !list_empty(&under_way))
		sim_fail("the daemon has ended, and a queue is left");
}
