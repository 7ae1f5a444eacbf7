// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One turn of the server. The loop records completions; then requests are
 * processed and expirations handed out. All results are submitted at once with
 * the wait for the next turn. Calls of the module go first: most often their
 * answer is there at once.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/client/client.h"
#include "daemon/client/declare.h"
#include "daemon/loop/probe.h"
#include "daemon/loop/time-namespace.h"
#include "daemon/server/handshake.h"
#include "daemon/server/server.h"
#include "daemon/util/log.h"
#include "daemon/util/notify.h"

/* A device without access may become accessible: while the machine starts, the
 * module makes it and udev gives it to the daemon's group.
 */
#define DEVICE_TRIES	50
#define DEVICE_PAUSE_US	20000

static int open_kernel(struct server *server)
{
	int r, tries = notify_enabled() ? DEVICE_TRIES : 1;

	while ((r = engine_kernel.open(&server->engine, &server->loop,
				       server->config.device, NULL)) == -EACCES &&
	       --tries)
		usleep(DEVICE_PAUSE_US);
	return r;
}

static const char *engine_hint(int error)
{
	return error == -EXDEV ?
	       " (the module uses the host's clocks, but this is a time namespace)" :
	       "";
}

/* Opens the first server's engine. auto: the kernel's if the device opens; logs
 * the choice and its reason.
 */
static int engine_first(struct server *server)
{
	static const struct log_about started = { .id = LOG_STARTED };
	const struct config *config = &server->config;
	int r = -ENOSYS;

	if (strcmp(config->engine, "embedded"))
		r = open_kernel(server);
	/* The module would take deadlines of this namespace's clients as the
	 * host's.
	 */
	if (!r && server->loop.has_offsets) {
		server->engine->ops->close(server->engine);
		server->engine = NULL;
		r = -EXDEV;
	}
	if (!r) {
		log_at(LOG_LEVEL_INFO, &started, "engine kernel: %s",
		       config->device);
		return 0;
	}
	if (!strcmp(config->engine, "kernel")) {
		log_err("engine kernel: %s: %s%s", config->device, strerror(-r),
			r == -ENOENT || r == -ENODEV || r == -ENXIO ?
			" (is the module expiry loaded?)" : engine_hint(r));
		return r;
	}
	if (!strcmp(config->engine, "embedded")) {
		log_at(LOG_LEVEL_INFO, &started,
		       "engine embedded: as configured");
	} else if (server->shards->store.nr_queues) {
		/* Do not start without these queues: clients wait for their
		 * timers.
		 */
		log_err("engine kernel: %s: %s, but %d of its queues are in the service manager's store",
			config->device, strerror(-r),
			server->shards->store.nr_queues);
		return r;
	} else {
		log_at(LOG_LEVEL_INFO, &started, "engine embedded: %s: %s%s",
		       config->device, strerror(-r), engine_hint(r));
	}
	return engine_embedded.open(&server->engine, &server->loop, NULL,
				    &server->shards->memory);
}

/* Opens the first server's engine for another server. */
static int server_engine(struct server *server)
{
	struct shards *shards = server->shards;
	int r;

	if (server->number) {
		r = shards->ops->open(&server->engine, &server->loop,
				      server->config.device, &shards->memory);
		if (r < 0)
			log_err("engine %s: %s", shards->ops->name,
				strerror(-r));
		return r;
	}
	r = engine_first(server);
	if (!r)
		shards->ops = server->engine->ops;
	return r;
}

static bool is_refused(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

static int loop_failed(const struct loop_ops *ops, int error)
{
	log_err("%s: %s%s", ops->name, strerror(-error), is_refused(error) ?
		" (see the sysctl kernel.io_uring_disabled; in a container, its seccomp profile)" :
		error == -ENOMEM ?
		" (is the limit of locked memory, ulimit -l, too low?)" : "");
	return error;
}

/* auto: selects epoll where io_uring is refused. Logs if it does. */
static int loop_first(struct server *server)
{
	static const struct log_about started = { .id = LOG_STARTED };
	const struct config *config = &server->config;
	int r;

	if (strcmp(config->loop, "epoll")) {
		r = loop_init(&server->loop, &loop_uring);
		if (!r)
			return 0;
		if (!is_refused(r) || !strcmp(config->loop, "io_uring"))
			return loop_failed(&loop_uring, r);
		log_at(LOG_LEVEL_INFO, &started, "loop epoll: io_uring: %s",
		       strerror(-r));
	}
	r = loop_init(&server->loop, &loop_epoll);
	return r < 0 ? loop_failed(&loop_epoll, r) : 0;
}

static int server_loop(struct server *server)
{
	const struct config *config = &server->config;
	struct shards *shards = server->shards;
	int r;

	/* The other threads have the first one's kind. */
	if (server->number) {
		r = loop_init(&server->loop, shards->loop);
		if (r < 0)
			loop_failed(shards->loop, r);
	} else {
		r = loop_first(server);
		shards->loop = server->loop.ops;
	}
	if (r < 0)
		return r;
	r = time_namespace_probe(&server->loop);
	if (r < 0)
		return r;
	r = buffers_init(&server->buffers, &server->loop, config->buffers,
			 config->buffer_size);
	if (r < 0) {
		log_err("buffers: %s%s", strerror(-r), r == -EINVAL ?
			" (Linux 6.0 or later is needed)" : "");
		return r;
	}
	server->multishot = !server->loop.ops->needs_probe ||
			    probe_multishot(&server->loop, &server->buffers);
	server->skip_success = !server->loop.ops->needs_probe ||
			       probe_skip_success(&server->loop);
	return 0;
}

/* Returns the limit of queues. All queues of the previous daemon are taken,
 * whatever the setting.
 */
uint64_t server_queues_max(const struct server *server)
{
	uint64_t left = server->shards->store.nr_queues;

	return server->config.queues < left ? left : server->config.queues;
}

uint64_t server_backlog_max(const struct server *server)
{
	uint64_t configured = server->config.backlog_memory;

	return configured ? configured : server->shards->plan.backlog;
}

static uint64_t users_max(const struct server *server)
{
	return server->config.connections + server_queues_max(server);
}

int server_init(struct server *server, struct shards *shards, uint32_t number,
		const struct config *config)
{
	int r;

	*server = (struct server) {
		.shards = shards,
		.number = number,
		.config = *config,
		.listener.fd = -1,
		.listener.reserve = -1,
		.listener.file.lock_fd = -1,
		.clock.fd = -1,
		.mailbox.fd = -1,
		.recount.deliver = users_recount,
	};
	list_init(&server->clients);
	handshakes_init(server);
	list_init(&server->ready);
	list_init(&server->ready_small);
	list_init(&server->writers);
	list_init(&server->sent);
	list_init(&server->starved);
	list_init(&server->blocked_lru);
	list_init(&server->dead);
	list_init(&server->due);

	pool_init(&server->client_pool, sizeof(struct client),
		  config->connections);
	users_init(&server->users, &shards->accounts, users_max(server));
	r = queues_init(&server->queues, server_queues_max(server));
	if (r < 0) {
		log_err("queues: %s", strerror(-r));
		return r;
	}
	r = server_loop(server);
	if (r < 0)
		return r;
	r = server_engine(server);
	if (r < 0)
		return r;
	r = store_take(server);
	if (r < 0)
		return r;
	declare_all(server);
	r = clock_init(&server->clock, server);
	if (r < 0) {
		log_err("timerfd: %s", strerror(-r));
		return r;
	}
	if (shards->nr > 1)
		r = mailbox_init(&server->mailbox, server);
	if (r < 0) {
		log_err("eventfd: %s", strerror(-r));
		return r;
	}
	listing_init(&server->listing);
	round_init(server);
	return 0;
}

/* Frees the server. Clients and queues are first, while the ring still takes
 * their requests. Memory that the kernel may write to is last.
 */
void server_deinit(struct server *server)
{
	service_deinit(&server->service);
	listener_deinit(&server->listener);
	clock_deinit(&server->clock);
	loss_count(server);
	clients_deinit(server);
	queues_deinit(&server->queues);
	loop_deinit(&server->loop);
	handshakes_deinit(server);
	if (server->engine)
		server->engine->ops->close(server->engine);
	server->engine = NULL;
	buffers_deinit(&server->buffers);
	pool_deinit(&server->client_pool);
	users_deinit(&server->users);
}

void server_reconfigure(struct server *server, const struct config *config)
{
	if (server->number)
		server->config = *config;
	else
		config_update(&server->config, config);
	server->client_pool.nr_max = server->config.connections;
	server->queues.pool.nr_max = server_queues_max(server);
	server->users.pool.nr_max = users_max(server);
	/* Apply the limit now: the next turn may be late. */
	clients_bound(server);
}

/* Hands out timers that became due during the previous turn before the requests
 * of this one. Returns how many expirations may follow behind those.
 */
static uint32_t server_expire(struct server *server)
{
	uint32_t left = TURN_EXPIRATIONS;

	if (list_empty(&server->ready) ||
	    (list_empty(&server->due) && list_empty(&server->writers)))
		return left;
	left = deliveries_run(server, left);
	clients_write(server);
	loop_submit(&server->loop);
	return left;
}

/* Does all possible work after the completions. */
static void server_work(struct server *server)
{
	uint32_t left;

	server->engine->submit_pending = false;
	if (server->loop.reaped)
		clients_sent(server);
	left = server_expire(server);
	clients_process(server);
	deliveries_run(server, left);
}

int server_run(struct server *server)
{
	struct engine *engine = server->engine;
	const struct engine_ops *ops = engine->ops;
	uint64_t began_ns;
	bool wait = false;
	int r;

	while (!server->stop) {
		r = loop_turn(&server->loop, wait);
		if (r < 0)
			goto broken;
		began_ns = histogram_time(loop_now(&server->loop,
						   CLOCK_MONOTONIC));
		server_work(server);
		/* Answer in this turn what the module has completed at once. */
		if (engine->submit_pending) {
			r = loop_turn(&server->loop, false);
			if (r < 0)
				goto broken;
			server_work(server);
		}
		/* Do not wait before skip_success sends are complete. */
		wait = list_empty(&server->sent);
		clients_turn(server);
		/* A client without a buffer gets one that was just sent. */
		if (!list_empty(&server->starved) &&
		    !list_empty(&server->sent))
			wait = false;
		wait = !(ops->turn && ops->turn(engine)) && wait &&
		       list_empty(&server->ready) &&
		       list_empty(&server->ready_small) &&
		       list_empty(&server->due);
		buffers_turn(&server->buffers);
		server->written_ns = histogram_time(loop_now_exactly(CLOCK_MONOTONIC));
		histogram_add(&server->turn_ns, server->written_ns - began_ns);
		if (server->number)
			round_turn(server);
		else
			service_turn(&server->service);
	}
	/* Submit the answers of this turn. */
	loop_submit(&server->loop);
	return 0;

broken:
	log_err("%s: %s", server->loop.ops->name, strerror(-r));
	return r;
}

void server_stop(struct server *server)
{
	server->stop = true;
}
