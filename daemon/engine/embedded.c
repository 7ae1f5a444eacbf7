// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded engine: core/ in this process, for machines where no module can
 * be loaded. Queues live as long as the daemon.
 *
 * All requests are answered at once. Long work, such as settling the top of a
 * heap and freeing pages, is done in bounded steps. These run at the end of a
 * turn, for the queues used in it. A turn that leaves work requests another. What
 * costs others time is left until a queue is idle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/timers.h"
#include "daemon/engine/alarm.h"
#include "daemon/engine/arena.h"
#include "daemon/engine/engine.h"
#include "daemon/loop/clock-watch.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

/* One turn's share of deferred work. */
#define TURN_QUEUES	256	/* queues checked */
#define DROP_STEPS	512	/* heap nodes of a queue */
#define TIDY_PAGES	256	/* pages of a queue freed to the arena */
#define TRIM_PAGES	512	/* pages returned to the kernel */
#define COLLECT_CALLS	16	/* calls into the core that may yield nothing */
#define TIDY_WORK	256	/* records whose part of a compaction is done */

/* When a queue whose timers found no memory to be taken is tried again. */
#define STARVED_NS	(100 * NSEC_PER_MSEC)

/* When a queue without a use counts as idle, and a walk as given up. */
#define IDLE_NS		(1000 * NSEC_PER_MSEC)
#define WALK_NS		(60000 * NSEC_PER_MSEC)

/* Pages that a run keeps above its use, besides one in eight. */
#define RUN_KEEP	4

static_assert(CORE_DIR_SIZE * sizeof(void *) <= CORE_PAGE_SIZE,
	      "a table of the directory is a page of the arena");

/**
 * struct run - one run of a queue's pages
 * @pages: as the core sees it
 * @queue: its queue
 * @high: end of the present pages
 */
struct run {
	struct core_pages pages;
	struct embedded_queue *queue;
	uint32_t high;
};

/**
 * struct embedded_queue - a queue
 * @timers: the core's
 * @runs: its pages
 * @alarm: set while the queue waits for its first deadline
 * @used: on the engine's list of queues to be updated
 * @clock_id: const; @limit likewise
 * @waiting: due() must be called
 * @rewind: where the rewind in progress continues
 * @starved_ns: its timers are not due before: they need memory; on its clock
 * @idle: set while the queue waits to be compacted
 * @is_idle: it has rung, and nobody has used the queue since
 * @walked_ns: when a SCAN or REWIND last went on, on CLOCK_MONOTONIC
 */
struct embedded_queue {
	struct engine_queue base;
	struct timers timers;
	struct run runs[TIMERS_PAGES_NR];
	struct alarm alarm;
	struct list used;
	uint32_t clock_id;
	bool waiting;
	u64 rewind;
	u64 starved_ns;
	struct alarm idle;
	bool is_idle;
	u64 walked_ns;
};

/**
 * struct embedded - the engine
 * @arena: memory of all queues
 * @alarms: one set for each clock, by loop_clock()
 * @idle: those that ring when a queue has not been used for a while
 * @used: queues used since they were last updated
 * @nr: queues
 */
struct embedded {
	struct engine base;
	struct arena arena;
	struct alarms alarms[LOOP_CLOCKS];
	struct alarms idle;
	struct list used;
	uint32_t nr;
};

static struct embedded *embedded(struct engine *engine)
{
	return container_of(engine, struct embedded, base);
}

static struct embedded_queue *embedded_queue(struct engine_queue *queue)
{
	return container_of(queue, struct embedded_queue, base);
}

static struct embedded *engine_of(const struct embedded_queue *queue)
{
	return embedded(queue->base.engine);
}

static struct alarms *alarms_of(const struct embedded_queue *queue)
{
	return &engine_of(queue)->alarms[loop_clock(queue->clock_id)];
}

static u64 now(const struct embedded_queue *queue)
{
	return loop_now(queue->base.engine->loop, queue->clock_id);
}

/* ------------------------------------------------------------------ memory */

static uint32_t tables_of(uint32_t nr_pages)
{
	return nr_pages / CORE_DIR_SIZE + 1;
}

/* The directory of every empty run: a queue that never had a timer costs almost
 * nothing. Only read, and only as far as nr_max reaches: of radix pages, to a page for
 * seven timers.
 */
static void **no_tables[TIMERS_MAX / 6 / CORE_DIR_SIZE];

/* Provides a page (core_page_in_t). The directory, its tables and the pages are
 * allocated on first use.
 */
static void *run_page_in(struct core_pages *pages, u32 index)
{
	struct run *run = container_of(pages, struct run, pages);
	struct arena *arena = &engine_of(run->queue)->arena;
	void **table, *page;

	if (pages->dir == no_tables) {
		void ***dir = calloc(tables_of(pages->nr_max), sizeof(*dir));

		if (!dir)
			goto err_memory;
		pages->dir = dir;
	}
	table = pages->dir[index >> CORE_DIR_SHIFT];
	if (!table) {
		table = arena_get(arena);
		if (!table)
			goto err_memory;
		memset(table, 0, CORE_PAGE_SIZE);
		pages->dir[index >> CORE_DIR_SHIFT] = table;
	}
	page = arena_get(arena);
	if (!page)
		goto err_memory;
	table[index & (CORE_DIR_SIZE - 1)] = page;
	if (run->high <= index)
		run->high = index + 1;
	return page;

err_memory:
	pages->error = -ENOMEM;
	return NULL;
}

/* Frees up to *@countp of the pages from @keep up. Returns true if more are
 * left.
 */
static bool run_cut(struct run *run, uint32_t keep, uint32_t *countp)
{
	struct arena *arena = &engine_of(run->queue)->arena;

	while (run->high > keep) {
		uint32_t index = run->high - 1;
		void **table = run->pages.dir[index >> CORE_DIR_SHIFT];
		void **page = table ? &table[index & (CORE_DIR_SIZE - 1)] : NULL;

		if (page && *page) {
			if (!*countp)
				return true;
			--*countp;
			arena_put(arena, *page);
			*page = NULL;
		}
		if (table && !(index & (CORE_DIR_SIZE - 1))) {
			arena_put(arena, table);
			run->pages.dir[index >> CORE_DIR_SHIFT] = NULL;
		}
		run->high = index;
	}
	return false;
}

static int run_init(struct run *run, struct embedded_queue *queue,
		    uint32_t nr_max)
{
	if (tables_of(nr_max) > ARRAY_SIZE(no_tables))
		return -EINVAL;
	run->queue = queue;
	run->pages.nr_max = nr_max;
	run->pages.page_in = run_page_in;
	run->pages.dir = no_tables;
	return 0;
}

static void run_deinit(struct run *run)
{
	uint32_t all = UINT32_MAX;

	if (!run->pages.dir || run->pages.dir == no_tables)
		return;
	run_cut(run, 0, &all);
	free(run->pages.dir);
	run->pages.dir = NULL;
}

/* ------------------------------------------------------------------ queues */

/* Marks a used queue: its count, and later its alarm, must be updated. */
static void queue_used(struct embedded_queue *queue)
{
	queue->base.timers = timers_nr(&queue->timers);
	queue->is_idle = false;
	if (list_empty(&queue->used))
		list_add(&engine_of(queue)->used, &queue->used);
}

static u64 monotonic_now(const struct embedded_queue *queue)
{
	return loop_now(queue->base.engine->loop, CLOCK_MONOTONIC);
}

/* Moves timers of an idle queue to its first slots. Where it is in use, or waits for a
 * walk, it is looked at again later. Returns true if nothing is left to do now.
 */
static bool queue_compact(struct embedded_queue *queue)
{
	struct alarms *alarms = &engine_of(queue)->idle;
	u64 now_ns = monotonic_now(queue);

	if (!queue->is_idle) {
		alarm_set(alarms, &queue->idle, now_ns + IDLE_NS);
		return true;
	}
	if (timers_tidy(&queue->timers, TIDY_WORK,
			now_ns - queue->walked_ns >= WALK_NS) > 0)
		return false;
	if (queue->timers.walks)
		alarm_set(alarms, &queue->idle, queue->walked_ns + WALK_NS);
	return true;
}

/* Returns before when no timer is taken. A clock that was set back does not prolong it. */
static u64 starved_until(const struct embedded_queue *queue)
{
	if (likely(!queue->starved_ns) ||
	    queue->starved_ns > now(queue) + STARVED_NS)
		return 0;
	return queue->starved_ns;
}

static bool is_due(const struct embedded_queue *queue)
{
	u64 now_ns = now(queue);

	return timers_due(&queue->timers, now_ns) &&
	       now_ns >= starved_until(queue);
}

/* Returns true if the queue is up to date. */
static bool queue_tidy(struct embedded_queue *queue)
{
	uint32_t count = TIDY_PAGES;
	bool done = true;
	int i;

	if (unlikely(timers_is_sparse(&queue->timers)))
		done = queue_compact(queue);

	/* An error here means no memory: the known first deadline is then too
	 * early rather than too late.
	 */
	if (!timers_drop_stale(&queue->timers, DROP_STEPS))
		done = false;
	if (queue->waiting) {
		u64 next_ns = timers_next_ns(&queue->timers);
		u64 from_ns = starved_until(queue);

		if (next_ns == EXPIRY_NEVER)
			alarm_unset(alarms_of(queue), &queue->alarm);
		else
			alarm_set(alarms_of(queue), &queue->alarm,
				  next_ns > from_ns ? next_ns : from_ns);
	}
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		struct run *run = &queue->runs[i];
		uint32_t nr = run->pages.nr;

		/* A queue without timers keeps no pages. */
		if (queue->base.timers)
			nr += nr / 8 + RUN_KEEP;
		if (run_cut(run, nr, &count))
			done = false;
	}
	return done;
}

static void embedded_ring(struct alarm *alarm)
{
	struct embedded_queue *queue = container_of(alarm, struct embedded_queue,
						    alarm);

	queue->waiting = false;
	queue->base.due(&queue->base);
}

static void embedded_idle(struct alarm *alarm)
{
	struct embedded_queue *queue = container_of(alarm, struct embedded_queue,
						    idle);

	queue->is_idle = true;
	if (list_empty(&queue->used))
		list_add(&engine_of(queue)->used, &queue->used);
}

static void embedded_queue_free(struct engine_queue *base)
{
	struct embedded_queue *queue;
	int i;

	if (!base)
		return;
	queue = embedded_queue(base);
	alarm_unset(alarms_of(queue), &queue->alarm);
	alarm_unset(&engine_of(queue)->idle, &queue->idle);
	list_del(&queue->used);
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		run_deinit(&queue->runs[i]);
	engine_of(queue)->nr--;
	free(queue);
}

static const struct bheap_layout *layout_of(uint32_t number)
{
	switch (number) {
	case EXPIRY_LAYOUT_SUBTREE:
		return &bheap_subtree;
	case EXPIRY_LAYOUT_SORTED:
		return &bheap_sorted;
	default:
		return &bheap_radix;
	}
}

static int embedded_queue_new(struct engine *base, struct expiry_config *config,
			      uint32_t layout, struct engine_queue **queuep)
{
	struct core_pages *pages[TIMERS_PAGES_NR];
	struct timers_config timers_config = {
		.mode = config->mode,
		.limit = config->limit,
		.layout = layout_of(layout),
	};
	struct embedded_queue *queue;
	struct alarms *alarms;
	int i, r;

	if (loop_clock(config->clock_id) < 0)
		return -EINVAL;
	if (getrandom(timers_config.seed, sizeof(timers_config.seed), 0) < 0)
		return -errno;
	alarms = &embedded(base)->alarms[loop_clock(config->clock_id)];
	r = alarms_reserve(alarms, embedded(base)->nr + 1);
	if (r == 0)
		r = alarms_reserve(&embedded(base)->idle, embedded(base)->nr + 1);
	if (r < 0)
		return r;

	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->base.engine = base;
	queue->clock_id = config->clock_id;
	list_init(&queue->used);
	embedded(base)->nr++;
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		r = run_init(&queue->runs[i], queue,
			     timers_pages_max(&timers_config, i));
		if (r < 0)
			goto err_queue;
		pages[i] = &queue->runs[i].pages;
	}
	r = timers_setup(&queue->timers, &timers_config, pages);
	if (r < 0)
		goto err_queue;
	*queuep = &queue->base;
	return 0;

err_queue:
	embedded_queue_free(&queue->base);
	return r;
}

/* ------------------------------------------------------------------- timers */

/* Processes a batch at once. run_page_in() never returns -EAGAIN, so that all
 * records are processed.
 */
static int embedded_submit_now(struct engine_queue *base, struct engine_io *io)
{
	struct embedded_queue *queue = embedded_queue(base);
	struct arena *arena = &engine_of(queue)->arena;

	arena->spares_reserve = true;
	timers_submit(&queue->timers, io->records, io->count, now(queue));
	arena->spares_reserve = false;
	queue_used(queue);
	return 0;
}

static int embedded_reserve(struct engine_queue *base, uint64_t timers)
{
	struct embedded_queue *queue = embedded_queue(base);
	struct arena *arena = &engine_of(queue)->arena;
	int r;

	arena->spares_reserve = true;
	r = timers_reserve(&queue->timers, timers);
	arena->spares_reserve = false;
	queue_used(queue);
	return r;
}

/* Processes a batch at once. A timer that is due when armed needs no alarm: it
 * expires in the turn of its reply.
 */
static int embedded_submit(struct engine_queue *base, struct engine_io *io)
{
	struct embedded_queue *queue = embedded_queue(base);

	embedded_submit_now(base, io);
	if (queue->waiting && is_due(queue)) {
		alarm_unset(alarms_of(queue), &queue->alarm);
		embedded_ring(&queue->alarm);
	}
	return 0;
}

static int embedded_collect(struct engine_queue *base, struct engine_io *io)
{
	struct embedded_queue *queue = embedded_queue(base);
	uint32_t done = 0, calls = COLLECT_CALLS;
	u64 now_ns = now(queue);
	int r = 0;

	io->late_ns = 0;
	/* Timers that became due by a step are not late. */
	if (queue->clock_id == CLOCK_REALTIME &&
	    unlikely(timers_due(&queue->timers, now_ns - CLOCK_STEP_NS)) &&
	    clock_is_ahead_of_watch(base->engine->loop))
		base->taken_ns = now_ns;
	queue->timers.taken_ns = base->taken_ns;
	do {
		r = timers_deliver(&queue->timers, io->records + done,
				   io->count - done, now_ns, false);
		if (r < 0)
			break;
		done += r;
		if (io->late_ns < queue->timers.late_ns)
			io->late_ns = queue->timers.late_ns;
	} while (done < io->count && --calls &&
		 timers_due(&queue->timers, now_ns));
	queue_used(queue);
	queue->starved_ns = 0;
	if (r == -ENOMEM && !done) {
		/* Others may free some. */
		queue->starved_ns = now_ns + STARVED_NS;
		return 0;
	}
	return r < 0 && !done ? r : (int)done;
}

static int embedded_wait(struct engine_queue *base)
{
	struct embedded_queue *queue = embedded_queue(base);

	if (is_due(queue))
		return 1;
	/* The alarm is set once the top is live, at the turn's end. */
	queue->waiting = true;
	queue_used(queue);
	return 0;
}

static void embedded_unwait(struct engine_queue *base)
{
	struct embedded_queue *queue = embedded_queue(base);

	queue->waiting = false;
	alarm_unset(alarms_of(queue), &queue->alarm);
}

static int embedded_rewind(struct engine_queue *base)
{
	struct embedded_queue *queue = embedded_queue(base);
	int r = timers_rewind(&queue->timers, &queue->rewind, now(queue));

	if (r < 0)
		timers_walk_stop(&queue->timers, &queue->rewind);
	queue->walked_ns = monotonic_now(queue);
	queue_used(queue);
	return r;
}

static int embedded_scan(struct engine_queue *base,
			 struct expiry_record *records, uint32_t count,
			 uint64_t *cursorp)
{
	struct embedded_queue *queue = embedded_queue(base);
	u64 cursor = *cursorp;
	int r = timers_scan(&queue->timers, records, count, &cursor);

	*cursorp = cursor;
	queue->walked_ns = monotonic_now(queue);
	return r;
}

static int embedded_stat(struct engine_queue *base, struct expiry_stat *stat)
{
	struct embedded_queue *queue = embedded_queue(base);
	int i;

	memset(stat, 0, sizeof(*stat));
	timers_stat(&queue->timers, stat);
	stat->now_ns = now(queue);
	stat->clock_id = queue->clock_id;
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		stat->pages_resident += queue->runs[i].high;
	return 0;
}

static int embedded_recount(struct engine_queue *base)
{
	(void)base;
	return 0;
}

/* ------------------------------------------------------------------- engine */

static bool embedded_turn(struct engine *base)
{
	struct embedded *engine = embedded(base);
	uint32_t count = TURN_QUEUES;
	struct list again;
	struct list *entry;
	bool more;
	int i;

	list_init(&again);
	while (count-- && (entry = list_pop(&engine->used))) {
		struct embedded_queue *queue =
			container_of(entry, struct embedded_queue, used);

		if (!queue_tidy(queue))
			list_add(&again, entry);
	}
	list_splice(&engine->used, &again);
	more = arena_trim(&engine->arena, TRIM_PAGES);
	for (i = 0; i < LOOP_CLOCKS; i++)
		alarms_turn(&engine->alarms[i]);
	alarms_turn(&engine->idle);
	return more || !list_empty(&engine->used);
}

static void embedded_close(struct engine *base)
{
	struct embedded *engine;
	int i;

	if (!base)
		return;
	engine = embedded(base);
	for (i = 0; i < LOOP_CLOCKS; i++)
		alarms_deinit(&engine->alarms[i]);
	alarms_deinit(&engine->idle);
	arena_deinit(&engine->arena);
	free(engine);
}

static int embedded_open(struct engine **enginep, struct loop *loop,
			 const char *device, struct budget *memory)
{
	static const uint32_t clocks[LOOP_CLOCKS] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
	};
	struct embedded *engine;
	int i;

	(void)device;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->base.ops = &engine_embedded;
	engine->base.loop = loop;
	arena_init(&engine->arena, memory);
	list_init(&engine->used);
	for (i = 0; i < LOOP_CLOCKS; i++)
		alarms_init(&engine->alarms[loop_clock(clocks[i])], loop,
			    clocks[i], embedded_ring);
	alarms_init(&engine->idle, loop, CLOCK_MONOTONIC, embedded_idle);
	*enginep = &engine->base;
	return 0;
}

const struct engine_ops engine_embedded = {
	.name = "embedded",
	.kind = EXPIRY_ENGINE_EMBEDDED,
	.open = embedded_open,
	.close = embedded_close,
	.turn = embedded_turn,
	.queue_new = embedded_queue_new,
	.queue_free = embedded_queue_free,
	.submit = embedded_submit,
	.submit_now = embedded_submit_now,
	.reserve = embedded_reserve,
	.collect = embedded_collect,
	.wait = embedded_wait,
	.unwait = embedded_unwait,
	.rewind = embedded_rewind,
	.scan = embedded_scan,
	.stat = embedded_stat,
	.recount = embedded_recount,
};
