// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/server.h"
#include "daemon/service.h"
#include "daemon/store.h"

/* Without a watchdog, how long after something happened the status may tell of
 * it.
 */
#define STATUS_DELAY_S	10

/* A message that the manager did not take is repeated after so long. */
#define AGAIN_NS	100000000

/* With more queues than this they are not asked one by one. */
#define STATUS_QUEUES	256

/* ------------------------------------------------------------------ signals */

static void service_wait_signal(struct service *service)
{
	struct io_uring_sqe *sqe = loop_sqe(&service->server->loop,
					    &service->signalled);

	io_uring_prep_read(sqe, service->fd, &service->signal,
			   sizeof(service->signal), 0);
}

static void service_signalled(struct loop_op *op, int result, uint32_t flags)
{
	struct service *service = container_of(op, struct service, signalled);

	(void)flags;
	if (result == -ECANCELED)
		return;
	if (result == sizeof(service->signal) &&
	    service->signal.ssi_signo == SIGHUP)
		service->reload = true;
	else if (result == sizeof(service->signal))
		server_stop(service->server);
	service_wait_signal(service);
}

static int service_signals(struct service *service)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	service->fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (service->fd < 0)
		return -errno;
	service->signalled.done = service_signalled;
	service_wait_signal(service);
	return 0;
}

/* ------------------------------------------------------------------- status */

/**
 * struct summary - of all queues
 * @timers: armed, or delivered and not acknowledged
 * @next_s: the earliest deadline as time of day
 * @next: there is one; @asked: @next and @next_s are known
 */
struct summary {
	uint64_t timers;
	time_t next_s;
	bool next;
	bool asked;
};

static void summarize_queue(const struct queue *queue, struct summary *summary,
			    uint64_t now_ns)
{
	struct expiry_stat stat;
	int64_t in_ns;
	time_t next_s;

	if (queue->server->engine->ops->stat(queue->engine_queue, &stat) < 0)
		return;
	summary->timers += stat.armed + stat.unacked;
	if (!stat.armed || stat.next_ns == EXPIRY_NEVER)
		return;
	in_ns = stat.next_ns - stat.now_ns;
	next_s = ((int64_t)now_ns + in_ns + 500000000) / 1000000000;
	if (!summary->next || next_s < summary->next_s)
		summary->next_s = next_s;
	summary->next = true;
}

static void summarize(struct server *server, struct summary *summary)
{
	uint64_t now_ns = loop_now(&server->loop, CLOCK_REALTIME);
	struct list *bucket, *entry;
	uint32_t i;

	*summary = (struct summary) { 0 };
	if (server->queues.pool.nr > STATUS_QUEUES) {
		summary->timers = users_timers(&server->users);
		return;
	}
	summary->asked = true;
	for (i = 0; i <= server->queues.mask + 1; i++) {
		bucket = &server->queues.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next)
			summarize_queue(container_of(entry, struct queue, all),
					summary, now_ns);
	}
}

static void print_next(char *text, size_t size, const struct summary *summary)
{
	struct tm tm;

	if (!summary->asked)
		*text = '\0';
	else if (!summary->next || !gmtime_r(&summary->next_s, &tm) ||
		 !strftime(text, size, ", next %Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(text, size, ", none next");
}

static void print_lateness(char *text, size_t size, uint64_t ns)
{
	if (ns < 10000000)
		snprintf(text, size, "%" PRIu64 " us", ns / 1000);
	else if (ns < 10000000000ULL)
		snprintf(text, size, "%" PRIu64 " ms", ns / 1000000);
	else
		snprintf(text, size, "%" PRIu64 " s", ns / 1000000000);
}

static void print_kept(char *text, size_t size, const struct server *server)
{
	if (!server->engine->ops->queue_fd)
		snprintf(text, size, "; timers end with the daemon");
	else if (notify_enabled())
		snprintf(text, size, "; %" PRIu64 " queues kept over a restart",
			 server->store.kept);
	else
		snprintf(text, size, "; no queue kept over a restart");
}

/* Tell that we are ready if we have to, that we are alive if @alive, and how it
 * is if that has changed.
 */
static void service_tell(struct service *service, bool alive)
{
	const char *ready = service->unready ? "READY=1\n" : "";
	const char *watchdog = alive ? "WATCHDOG=1\n" : "";
	struct server *server = service->server;
	int r = 0;
	char status[SERVICE_STATUS_MAX], next[40], late[24], kept[48];
	struct summary summary;

	summarize(server, &summary);
	print_next(next, sizeof(next), &summary);
	print_lateness(late, sizeof(late), server->stat.lateness_max_ns);
	print_kept(kept, sizeof(kept), server);
	snprintf(status, sizeof(status),
		 "Engine %s: %" PRIu64 " timers in %" PRIu64 " queues, %" PRIu64
		 " clients%s, worst lateness %s%s", server->engine->ops->name,
		 summary.timers, server->queues.pool.nr, server->nr_clients,
		 next, late, kept);
	if (strcmp(status, service->status))
		r = notify_send(-1, "%s%sSTATUS=%s", ready, watchdog, status);
	else if (*ready || *watchdog)
		r = notify_send(-1, "%s%s", ready, watchdog);
	service->behind = r < 0;
	if (r < 0)
		return;
	service->unready = false;
	strcpy(service->status, status);
}

/* --------------------------------------------------------------------- tick */

static void service_ticked(struct loop_op *op, int result, uint32_t flags)
{
	struct service *service = container_of(op, struct service, ticked);

	(void)result;
	(void)flags;
	service->ticking = false;
	service->tick = true;
}

static void service_wait_tick(struct service *service)
{
	static struct __kernel_timespec again = { .tv_nsec = AGAIN_NS };
	struct io_uring_sqe *sqe = loop_sqe(&service->server->loop,
					    &service->ticked);

	io_uring_prep_timeout(sqe, service->behind ? &again : &service->period,
			      0, 0);
	service->ticking = true;
}

/* ------------------------------------------------------------------- reload */

static void service_reload(struct service *service)
{
	static const struct log_about wrong = { .id = LOG_SETTINGS_WRONG };
	struct server *server = service->server;
	struct config config;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	notify_send(-1, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		    (uint64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	if (!service->configure(&config)) {
		server_reconfigure(server, &config);
		log_info("settings read anew");
	} else {
		log_at(LOG_LEVEL_ERR, &wrong,
		       "the settings stay as they were");
	}
	service->unready = true;
	service_tell(service, false);
}

/* ------------------------------------------------------------------ service */

int service_init(struct service *service, struct server *server,
		 int (*configure)(struct config *config))
{
	uint64_t us = 0;
	int r;

	*service = (struct service) {
		.server = server,
		.configure = configure,
		.fd = -1,
		.ticked.done = service_ticked,
		.period.tv_sec = STATUS_DELAY_S,
	};
	r = service_signals(service);
	if (r < 0) {
		log_err("signals: %s", strerror(-r));
		return r;
	}
	if (sd_watchdog_enabled(0, &us) > 0) {
		service->watchdog = true;
		/* Half of what the manager allows. */
		us /= 2;
		service->period.tv_sec = us / 1000000;
		service->period.tv_nsec = us % 1000000 * 1000;
	}
	service->unready = true;
	service_tell(service, false);
	if (service->watchdog || service->behind)
		service_wait_tick(service);
	return 0;
}

void service_deinit(struct service *service)
{
	if (service->server && service->fd >= 0)
		close(service->fd);
	service->fd = -1;
}

void service_turn(struct service *service)
{
	bool tick = service->tick;

	if (service->reload) {
		service->reload = false;
		service_reload(service);
	}
	if (!notify_enabled())
		return;
	service->tick = false;
	if (tick) {
		store_retry(service->server);
		service_tell(service, service->watchdog);
		/* There may have been nothing to tell. */
		if (service->server->store.missed)
			service->behind = true;
	}
	/* Without a watchdog the tick tells of what happened before it: a turn
	 * that was only for the tick asks for no other.
	 */
	if (!service->ticking &&
	    (service->watchdog || service->behind || !tick))
		service_wait_tick(service);
}

void service_stopping(struct service *service)
{
	(void)service;
	notify_send(-1, "STOPPING=1\nSTATUS=Stopping");
}
