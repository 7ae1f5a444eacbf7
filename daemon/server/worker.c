// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One turn of a worker. The loop records completions; then requests are
 * processed and expirations handed out. All results are submitted at once with
 * the wait for the next turn. Calls of the module go first: most often their
 * answer is there at once.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/client/connection.h"
#include "daemon/client/delivery.h"
#include "daemon/client/listing.h"
#include "daemon/client/output.h"
#include "daemon/client/requests.h"
#include "daemon/client/session.h"
#include "daemon/client/summary.h"
#include "daemon/engine/choose.h"
#include "daemon/engine/engine.h"
#include "daemon/loop/choose.h"
#include "daemon/loop/probe.h"
#include "daemon/loop/time-namespace.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/loss.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/server/worker.h"
#include "daemon/util/histogram.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"

/* Opens the engine; in a further thread the kind that the first one chose. */
static int worker_open_engine(struct context *context)
{
	struct shared *shared = context->shared;
	int r;

	if (context->number) {
		r = shared->engine_ops->open(&context->engine, &context->loop,
					     context->config.device,
					     &shared->memory);
		if (r < 0)
			log_err("engine %s: %s", shared->engine_ops->name,
				strerror(-r));
		return r;
	}
	r = engine_choose(&context->engine, &context->loop, &context->config,
			  &shared->memory, shared->store->nr_queues);
	if (!r)
		shared->engine_ops = context->engine->ops;
	return r;
}

static int worker_open_loop(struct worker *worker)
{
	struct connections *connections = &worker->connections;
	struct context *context = &worker->context;
	struct config *config = &context->config;
	struct shared *shared = context->shared;
	struct loop *loop = &context->loop;
	bool is_known;
	int r;

	if (context->number) {
		r = loop_open(loop, shared->loop_ops);
	} else {
		r = loop_choose(loop, config->loop);
		shared->loop_ops = loop->ops;
	}
	if (r < 0)
		return r;
	r = time_namespace_probe(loop);
	if (r < 0)
		return r;
	r = buffers_init(&context->buffers, loop, config->buffers,
			 config->buffer_size);
	if (r < 0) {
		log_err("buffers: %s%s", strerror(-r),
			r == -EINVAL ? " (Linux 6.0 or later is needed)" : "");
		return r;
	}
	is_known = !loop->ops->needs_probe;
	connections->multishot = is_known ||
				 probe_multishot(loop, &context->buffers);
	connections->skip_success = is_known || probe_skip_success(loop);
	return 0;
}

/* Reports a step of the clock to the consumers of the thread. */
static void worker_clock_set(void *data)
{
	deliveries_clock_set(data);
}

/* Returns the limit of queues. All queues of the previous daemon are taken,
 * whatever the setting.
 */
static uint64_t queues_max(const struct context *context)
{
	uint64_t left = context->shared->store->nr_queues;

	return context->config.queues < left ? left : context->config.queues;
}

static uint64_t users_max(const struct context *context)
{
	return context->config.connections + queues_max(context);
}

int worker_init(struct worker *worker, struct shared *shared, uint32_t number,
		const struct config *config,
		void (*turn_end)(struct worker *worker))
{
	struct context *context = &worker->context;
	int r;

	*worker = (struct worker) {
		.context = {
			.shared = shared,
			.number = number,
			.config = *config,
			.mailbox.fd = -1,
			.recount.deliver = charges_recount,
			.queues = &worker->queues,
			.connections = &worker->connections,
			.listing = &worker->listing,
			.summaries = &worker->summaries,
		},
		.clock.fd = -1,
		.turn_end = turn_end,
	};
	sessions_init(&worker->connections, context, config->connections);
	users_init(&context->users, &shared->accounts, users_max(context));
	r = queues_init(&worker->queues, queues_max(context));
	if (r < 0) {
		log_err("queues: %s", strerror(-r));
		return r;
	}
	r = worker_open_loop(worker);
	if (r < 0)
		return r;
	r = worker_open_engine(context);
	if (r < 0)
		return r;
	r = store_take(context);
	if (r < 0)
		return r;
	r = durable_init(&worker->durable, context);
	if (r < 0)
		return r;
	r = clock_init(&worker->clock, &context->loop, worker_clock_set,
		       context);
	if (r < 0) {
		log_err("timerfd: %s", strerror(-r));
		return r;
	}
	if (shared->nr > 1)
		r = mailbox_init(&context->mailbox, &context->loop, context);
	if (r < 0) {
		log_err("eventfd: %s", strerror(-r));
		return r;
	}
	listing_init(&worker->listing, context);
	summaries_init(context);
	return 0;
}

/* Frees the worker. Clients and queues are first, while the ring still takes
 * their requests. Memory that the kernel may write to is last.
 */
void worker_deinit(struct worker *worker)
{
	struct context *context = &worker->context;

	clock_deinit(&worker->clock);
	loss_count(context);
	clients_deinit(&worker->connections);
	queues_deinit(&worker->queues);
	durable_deinit(&worker->durable);
	loop_deinit(&context->loop);
	if (context->engine)
		context->engine->ops->close(context->engine);
	context->engine = NULL;
	buffers_deinit(&context->buffers);
	pool_deinit(&worker->connections.pool);
	users_deinit(&context->users);
}

void worker_reconfigure(struct worker *worker, const struct config *config)
{
	struct context *context = &worker->context;

	if (context->number)
		context->config = *config;
	else
		config_update(&context->config, config);
	worker->connections.pool.nr_max = context->config.connections;
	worker->queues.pool.nr_max = queues_max(context);
	context->users.pool.nr_max = users_max(context);
	/* Apply the limit now: the next turn may be late. */
	clients_bound(&worker->connections);
}

/* Hands out timers that became due during the previous turn before the requests
 * of this one. Returns how many expirations may follow behind those.
 */
static uint32_t worker_expire(struct worker *worker)
{
	struct connections *connections = &worker->connections;
	uint32_t left = TURN_EXPIRATIONS;

	if (list_empty(&connections->ready) ||
	    (list_empty(&worker->queues.due) &&
	     list_empty(&connections->writers)))
		return left;
	left = deliveries_run(&worker->context, left);
	outputs_write(connections);
	loop_submit(&worker->context.loop);
	return left;
}

/* Does all possible work after the completions. */
static void worker_work(struct worker *worker)
{
	uint32_t left;

	worker->context.engine->submit_pending = false;
	if (worker->context.loop.reaped)
		clients_sent(&worker->connections);
	left = worker_expire(worker);
	clients_process(&worker->connections);
	if (!list_empty(&worker->queues.due))
		deliveries_run(&worker->context, left);
}

/* Lets the queues and clients go on that found no spare buffer. Until there was
 * one they would have kept the thread busy: an engine that works later, or sends
 * in progress, may have all of them.
 */
static void worker_resume(struct worker *worker)
{
	struct connections *connections = &worker->connections;

	worker->context.buffers.spare_wanted = false;
	list_splice(&worker->queues.due, &worker->queues.no_spare);
	list_splice(&connections->ready, &connections->no_spare);
}

/* Begins what the journal has to do, and answers what is durable. Returns whether
 * it needs another turn at once.
 */
static bool worker_commit(struct worker *worker)
{
	struct durable *durable = &worker->durable;
	struct connections *connections = &worker->connections;
	bool awaited = !list_empty(&connections->no_journal);
	bool again = durable_turn(durable, awaited);

	if (durable->failed)
		clients_refuse(connections, durable->error);
	if (durable->advanced)
		outputs_release(connections);
	if (awaited && durable_goes_on(durable))
		list_splice(&connections->ready, &connections->no_journal);
	durable->failed = false;
	durable->advanced = false;
	return again;
}

/* Completes commits before the end. */
static int worker_end_commits(struct worker *worker)
{
	struct context *context = &worker->context;
	int r = 0;

	while (!r && durable_is_stopping(&worker->durable))
		r = loop_turn(&context->loop, true);
	outputs_release(&worker->connections);
	outputs_write(&worker->connections);
	return r;
}

/* Returns whether nothing is left to do before the next completion. */
static bool worker_is_idle(const struct worker *worker)
{
	return list_empty(&worker->connections.ready) &&
	       list_empty(&worker->connections.ready_small) &&
	       list_empty(&worker->queues.due);
}

int worker_run(struct worker *worker)
{
	struct connections *connections = &worker->connections;
	struct context *context = &worker->context;
	struct engine *engine = context->engine;
	const struct engine_ops *ops = engine->ops;
	uint64_t began_ns;
	bool wait = false;
	int r;

	while (!worker->stop) {
		r = loop_turn(&context->loop, wait);
		if (r < 0)
			goto broken;
		began_ns = histogram_time(loop_now(&context->loop,
						   CLOCK_MONOTONIC));
		worker_work(worker);
		/* Answer in this turn what the module has completed at once. */
		if (engine->submit_pending) {
			r = loop_turn(&context->loop, false);
			if (r < 0)
				goto broken;
			worker_work(worker);
		}
		/* Do not wait before sends that skip their CQE are complete. */
		wait = list_empty(&connections->sent);
		if (context->durable && worker_commit(worker))
			wait = false;
		clients_turn(connections);
		if (context->buffers.spare_wanted && context->buffers.spare)
			worker_resume(worker);
		/* A buffer that was just sent is for those that wait for one. */
		if ((!list_empty(&connections->starved) ||
		     context->buffers.spare_wanted) &&
		    !list_empty(&connections->sent))
			wait = false;
		wait = !(ops->turn && ops->turn(engine)) && wait &&
		       worker_is_idle(worker);
		buffers_turn(&context->buffers);
		connections->written_ns =
			histogram_time(loop_now_exactly(CLOCK_MONOTONIC));
		histogram_add(&context->turn_ns,
			      connections->written_ns - began_ns);
		worker->turn_end(worker);
	}
	if (context->durable) {
		r = worker_end_commits(worker);
		if (r < 0)
			goto broken;
	}
	/* Submit the answers of this turn. */
	loop_submit(&context->loop);
	return 0;

broken:
	log_err("%s: %s", context->loop.ops->name, strerror(-r));
	return r;
}

void worker_stop(struct worker *worker)
{
	worker->stop = true;
}
