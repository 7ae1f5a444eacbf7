// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/client/declare.h"
#include "daemon/client/summary.h"
#include "daemon/queue/store.h"
#include "daemon/server/heartbeat.h"
#include "daemon/server/worker.h"
#include "daemon/util/notify.h"
#include "daemon/util/util.h"

static void heartbeat_requested(struct context *context, struct mail *mail)
{
	(void)context;
	container_of(mail, struct heartbeat, request)->is_due = true;
}

static void heartbeat_answered(struct context *context, struct mail *mail)
{
	struct heartbeat *heartbeat =
		container_of(mail, struct heartbeat, answer);
	struct heartbeats *heartbeats = heartbeat->heartbeats;

	(void)context;
	heartbeats->answered(heartbeats->data);
}

/* Causes a turn of the first thread, which requests a tick. */
static void heartbeat_stale(struct context *context, struct mail *mail)
{
	(void)context;
	(void)mail;
}

void heartbeat_init(struct heartbeat *heartbeat, struct heartbeats *heartbeats,
		    struct worker *worker)
{
	*heartbeat = (struct heartbeat) {
		.heartbeats = heartbeats,
		.worker = worker,
		.request.deliver = heartbeat_requested,
		.answer.deliver = heartbeat_answered,
		.stale.deliver = heartbeat_stale,
	};
	heartbeats->all[heartbeats->nr++] = heartbeat;
}

static void heartbeat_answer(struct heartbeat *heartbeat)
{
	struct context *context = &heartbeat->worker->context;

	if (heartbeat->config) {
		worker_reconfigure(heartbeat->worker, heartbeat->config);
		declare_all(context, heartbeat->declared);
	}
	heartbeat->config = NULL;
	store_retry(context);
	summary_update(context);
}

uint32_t heartbeats_begin(struct heartbeats *heartbeats,
			  const struct config *config)
{
	const struct shared *shared =
		heartbeats->all[0]->worker->context.shared;
	uint32_t i;

	atomic_store(&heartbeats->stale, false);
	for (i = 1; i < heartbeats->nr; i++) {
		struct heartbeat *other = heartbeats->all[i];

		other->config = config;
		other->declared = shared->declared;
		mail_post(&other->worker->context.mailbox, &other->request);
	}
	heartbeat_answer(heartbeats->all[0]);
	return heartbeats->nr - 1;
}

void heartbeat_turn(struct heartbeat *heartbeat)
{
	struct heartbeats *heartbeats = heartbeat->heartbeats;
	struct mailbox *first = &heartbeats->all[0]->worker->context.mailbox;

	if (heartbeat->is_due) {
		heartbeat->is_due = false;
		heartbeat_answer(heartbeat);
		mail_post(first, &heartbeat->answer);
	} else if (notify_enabled() &&
		   !atomic_load_explicit(&heartbeats->stale,
					 memory_order_relaxed)) {
		atomic_store(&heartbeats->stale, true);
		mail_post(first, &heartbeat->stale);
	}
}
