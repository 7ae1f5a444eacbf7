// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "daemon/client/declare.h"
#include "daemon/client/summary.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/context.h"
#include "daemon/queue/store.h"
#include "daemon/server/heartbeat.h"
#include "daemon/server/service.h"
#include "daemon/server/worker.h"
#include "daemon/util/log.h"
#include "daemon/util/notify.h"
#include "daemon/util/util.h"

/* Without a watchdog, the most delay of the status after an event. */
#define STATUS_DELAY_S	10

/* Pause before a message that the manager did not take is sent again. */
#define AGAIN_NS	100000000

/* ------------------------------------------------------------------ signals */

static void service_wait_signal(struct service *service)
{
	struct io_uring_sqe *sqe =
		loop_sqe(&service->worker->context.loop, &service->signalled);

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
		worker_stop(service->worker);
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

/* Prints when the next timer is due, to the second. strftime() would ask for memory. */
static void print_next(char *text, size_t size, const struct summary *summary)
{
	time_t next_s = (summary->next_ns + 500000000) / 1000000000;
	struct tm tm;

	if (!summary->next_ns)
		*text = '\0';
	else if (summary->next_ns == EXPIRY_NEVER || !gmtime_r(&next_s, &tm))
		snprintf(text, size, ", none next");
	else
		snprintf(text, size, ", next %04d-%02d-%02dT%02d:%02d:%02dZ",
			 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
			 tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void print_lateness(char *text, size_t size, uint64_t ns)
{
	if (ns < 10000000)
		snprintf(text, size, "%" PRIu64 "us", ns / 1000);
	else if (ns < 10000000000ULL)
		snprintf(text, size, "%" PRIu64 "ms", ns / 1000000);
	else
		snprintf(text, size, "%" PRIu64 "s", ns / 1000000000);
}

static bool has_durable(const struct context *context)
{
	const struct shared *shared = context->shared;
	uint32_t i;

	for (i = 0; i < shared->nr; i++)
		if (counter_read(&shared->contexts[i]->stat.durable_queues))
			return true;
	return false;
}

static void print_kept(char *text, size_t size, const struct context *context)
{
	uint64_t nr_stored, pending;

	store_count(context->shared->store, &nr_stored, &pending);
	if (!context->engine->ops->queue_fd && has_durable(context))
		snprintf(text, size, "; durable queues outlive the daemon");
	else if (!context->engine->ops->queue_fd)
		snprintf(text, size, "; timers end with the daemon");
	else if (notify_enabled())
		snprintf(text, size, "; %" PRIu64 " queues kept over a restart",
			 nr_stored);
	else
		snprintf(text, size, "; no queue kept over a restart");
}

static void print_threads(char *text, size_t size,
			  const struct context *context)
{
	*text = '\0';
	if (context->shared->nr > 1)
		snprintf(text, size, ", %u threads", context->shared->nr);
}

/* Tells the manager of a reload, unless it knows. The manager takes READY for
 * the end of a reload it knows.
 */
static int service_tell_reloading(struct service *service)
{
	int r;

	if (!service->reloading_us)
		return 0;
	r = notify_tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
			service->reloading_us);
	if (!r)
		service->reloading_us = 0;
	return r;
}

/* Sends READY if it is due, the watchdog's answer if @alive, and the status if
 * it has changed.
 */
static void service_tell(struct service *service, bool alive)
{
	const char *ready = service->unready ? "READY=1\n" : "";
	const char *watchdog = alive ? "WATCHDOG=1\n" : "";
	const struct context *context = &service->worker->context;
	int r;
	char status[SERVICE_STATUS_MAX], next[80], late[24], kept[48];
	char threads[24];
	struct summary summary;

	summary_sum(context, &summary);
	print_next(next, sizeof(next), &summary);
	print_lateness(late, sizeof(late), summary.lateness_max_ns);
	print_kept(kept, sizeof(kept), context);
	print_threads(threads, sizeof(threads), context);
	snprintf(status, sizeof(status),
		 "Engine %s%s: %" PRIu64 " timers in %" PRIu64
		 " queues, %" PRIu64 " clients%s, worst lateness %s%s",
		 context->engine->ops->name, threads, summary.timers,
		 share_read(&context->shared->queues),
		 share_read(&context->shared->connections), next, late, kept);
	r = service_tell_reloading(service);
	if (!r && strcmp(status, service->status))
		r = notify_tell("%s%sSTATUS=%s", ready, watchdog, status);
	else if (!r && (*ready || *watchdog))
		r = notify_tell("%s%s", ready, watchdog);
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
	struct io_uring_sqe *sqe =
		loop_sqe(&service->worker->context.loop, &service->ticked);

	io_uring_prep_timeout(sqe, service->behind ? &again : &service->period,
			      0, 0);
	service->ticking = true;
}

/* -------------------------------------------------------------------- heartbeat */

/* Asks all threads. When all have answered their status is sent, and the
 * watchdog's answer if @alive.
 */
static void service_begin_heartbeat(struct service *service,
				    const struct config *config, bool alive)
{
	assert(!service->pending);
	service->pending = true;
	service->alive = alive;
	service->awaited = heartbeats_begin(service->heartbeats, config);
}

/* Counts a thread's answer. */
static void service_answered(void *data)
{
	struct service *service = data;

	assert(service->pending && service->awaited);
	service->awaited--;
	service->answered = true;
}

static void service_conclude(struct service *service)
{
	uint64_t nr_stored, pending;

	if (!service->pending || service->awaited)
		return;
	service->pending = false;
	if (service->reloaded) {
		declare_done(service->worker->context.shared);
		log_info("settings reloaded");
	}
	service->reloaded = false;
	service_tell(service, service->alive);
	/* A queue may be pending although no message failed. */
	store_count(service->worker->context.shared->store, &nr_stored,
		    &pending);
	if (pending)
		service->behind = true;
}

/* ------------------------------------------------------------------- reload */

static void service_reload(struct service *service)
{
	static const struct log_about wrong = { .id = LOG_SETTINGS_WRONG };
	struct worker *worker = service->worker;
	struct config config;

	service->reloading_us = loop_now_exactly(CLOCK_MONOTONIC) / 1000;
	service_tell_reloading(service);
	service->reloaded = !service->configure(&config);
	if (service->reloaded) {
		worker_reconfigure(worker, &config);
		declare_read(&worker->context);
		declare_all(&worker->context,
			    worker->context.shared->declared);
	} else {
		log_at(LOG_LEVEL_ERR, &wrong,
		       "the old settings stay in force");
	}
	service->unready = true;
	service_begin_heartbeat(service,
				service->reloaded ? &worker->context.config :
						    NULL,
				false);
}

/* ------------------------------------------------------------------ service */

int service_init(struct service *service, struct worker *worker,
		 struct heartbeats *heartbeats,
		 int (*configure)(struct config *config))
{
	uint64_t us = 0;
	int r;

	*service = (struct service) {
		.worker = worker,
		.heartbeats = heartbeats,
		.configure = configure,
		.fd = -1,
		.ticked.done = service_ticked,
		.period.tv_sec = STATUS_DELAY_S,
	};
	heartbeats->answered = service_answered;
	heartbeats->data = service;
	/* Else gmtime_r() reads the time zone with the first status: that takes memory. */
	tzset();
	r = service_signals(service);
	if (r < 0) {
		log_err("signals: %s", strerror(-r));
		return r;
	}
	if (sd_watchdog_enabled(0, &us) > 0) {
		service->watchdog = true;
		/* Answer twice in the time that the manager allows. */
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
	if (service->worker && service->fd >= 0)
		close(service->fd);
	service->fd = -1;
}

void service_turn(struct service *service)
{
	bool is_reported = service->tick || service->answered;

	service->answered = false;
	service_conclude(service);
	if (service->reload && !service->pending) {
		service->reload = false;
		service_reload(service);
		service_conclude(service);
	}
	if (!notify_enabled())
		return;
	if (service->tick && !service->pending) {
		service->tick = false;
		service_begin_heartbeat(service, NULL, service->watchdog);
		service_conclude(service);
	}
	/* Without a watchdog the tick reports events before it. A turn that was
	 * only for the tick requests no other tick.
	 */
	if (!service->ticking &&
	    (service->watchdog || service->behind || !is_reported))
		service_wait_tick(service);
}

void service_stopping(struct service *service)
{
	(void)service;
	notify_send(-1, "STOPPING=1\nSTATUS=Stopping");
}
