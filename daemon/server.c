// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One turn of the server: what completed is noted by the loop, then requests
 * are processed, expirations handed out, and everything that came of it is
 * submitted at once with the wait for the next turn.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/client.h"
#include "daemon/log.h"
#include "daemon/probe.h"
#include "daemon/server.h"

/* auto: the kernel's where the device opens, and say which it is and why. */
static int server_engine(struct server *server)
{
	const struct config *config = &server->config;
	int r = -ENOSYS;

	if (strcmp(config->engine, "embedded"))
		r = engine_kernel.open(&server->engine, &server->loop,
				       config->device, 0);
	if (!r) {
		log_info("engine kernel: %s", config->device);
		return 0;
	}
	if (!strcmp(config->engine, "kernel")) {
		log_err("engine kernel: %s: %s%s", config->device, strerror(-r),
			r == -ENOENT || r == -ENODEV || r == -ENXIO ?
			" (is the module expiry loaded?)" : "");
		return r;
	}
	if (!strcmp(config->engine, "embedded"))
		log_info("engine embedded: as configured");
	else
		log_info("engine embedded: %s: %s", config->device,
			 strerror(-r));
	return engine_embedded.open(&server->engine, &server->loop, NULL,
				    config->memory);
}

static int server_loop(struct server *server)
{
	const struct config *config = &server->config;
	int r = loop_init(&server->loop);

	if (r < 0) {
		log_err("io_uring: %s%s", strerror(-r),
			r == -EPERM || r == -ENOSYS ?
			" (see the sysctl kernel.io_uring_disabled; in a container, its seccomp profile)" :
			r == -ENOMEM ?
			" (is the limit of locked memory, ulimit -l, too low?)" :
			"");
		return r;
	}
	r = buffers_init(&server->buffers, &server->loop, config->buffers,
			 config->buffer_size);
	if (r < 0) {
		log_err("buffers: %s%s", strerror(-r), r == -EINVAL ?
			" (Linux 6.0 or later is needed)" : "");
		return r;
	}
	server->multishot = probe_multishot(&server->loop, &server->buffers);
	return 0;
}

int server_init(struct server *server, const struct config *config)
{
	struct timespec now;
	int r;

	*server = (struct server) {
		.config = *config,
		.loop.ring.ring_fd = -1,
		.listener.fd = -1,
		.clock.fd = -1,
	};
	list_init(&server->clients);
	list_init(&server->ready);
	list_init(&server->writers);
	list_init(&server->starved);
	list_init(&server->dead);
	list_init(&server->due);
	clock_gettime(CLOCK_BOOTTIME, &now);
	server->started_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;

	users_init(&server->users, config->connections + config->queues);
	pool_init(&server->client_pool, sizeof(struct client),
		  config->connections);
	r = queues_init(&server->queues, config->queues);
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
	r = clock_init(&server->clock, server);
	if (r < 0) {
		log_err("timerfd: %s", strerror(-r));
		return r;
	}
	return listener_init(&server->listener, server);
}

/* Clients and queues first, while the ring still takes their orders; memory
 * that the kernel may write to last.
 */
void server_deinit(struct server *server)
{
	listener_deinit(&server->listener);
	clock_deinit(&server->clock);
	clients_deinit(server);
	queues_deinit(&server->queues);
	loop_deinit(&server->loop);
	if (server->engine)
		server->engine->ops->close(server->engine);
	server->engine = NULL;
	buffers_deinit(&server->buffers);
	pool_deinit(&server->client_pool);
	users_deinit(&server->users);
}

int server_run(struct server *server)
{
	const struct engine_ops *ops = server->engine->ops;
	bool wait = false;
	int r;

	while (!server->stop) {
		r = loop_turn(&server->loop, wait);
		if (r < 0) {
			log_err("io_uring: %s", strerror(-r));
			return r;
		}
		clients_process(server);
		consumers_run(server);
		clients_turn(server);
		wait = !(ops->turn && ops->turn(server->engine)) &&
		       list_empty(&server->ready) && list_empty(&server->due);
		buffers_turn(&server->buffers);
	}
	/* What has been answered in this turn still goes out. */
	io_uring_submit(&server->loop.ring);
	return 0;
}

void server_stop(struct server *server)
{
	server->stop = true;
}
