// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/client/declare.h"
#include "daemon/client/permission.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/access.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/util/group.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

/* Most bytes of a list of keys that cannot change while a queue exists. */
#define CHANGES_TEXT	64

static struct log_about about_file(const struct declaration *file, int error)
{
	return (struct log_about) {
		.id = LOG_QUEUE_FILE,
		.queue = file->name,
		.error = error,
	};
}

/* Applies what may change at any time: group and mode. */
static void set_access(struct queue *queue, const struct declaration *file)
{
	queue->gid = file->gid;
	queue->access = file->access;
	queue->declared = true;
}

int declare_queue(struct context *context, const struct declaration *file,
		  struct queue **queuep)
{
	struct queue_plan plan = {
		.name = file->name,
		.in_directory = file->in_directory,
		.config = {
			.clock_id = file->clock_id,
			.mode = file->mode,
		},
	};
	int r;

	if (!file->is_good)
		return -EACCES;
	if (file->is_durable) {
		r = durable_may_make(context);
		if (r < 0)
			return r;
	}
	plan.user = user_get(&context->users, file->uid);
	if (!plan.user)
		return -ENOMEM;
	declaration_apply(file, &context->config, &plan);
	r = queue_new(context, &plan, queuep);
	if (r < 0) {
		user_put(&context->users, plan.user);
		return r;
	}
	set_access(*queuep, file);
	if (file->is_durable)
		durable_make(*queuep);
	store_keep(*queuep);
	return 0;
}

void declare_anew(struct context *context, const struct declaration *file)
{
	struct log_about about;
	struct queue *queue;
	int r = declare_queue(context, file, &queue);

	/* The fault of a file is in the log. Without room in the journal, a HELLO that
	 * names the queue waits for it, and makes the queue.
	 */
	if (!r || !file->is_good || r == -EAGAIN)
		return;
	about = about_file(file, -r);
	log_at(LOG_LEVEL_ERR, &about, "queue %.*s cannot be made: %s: %s",
	       EXPIRY_NAME_MAX, file->name, file->path,
	       r == -EDQUOT ? "its owner has reached the limit queues_per_user" :
	       r == -EOPNOTSUPP ? "durable needs journal in expiryd.conf" :
	       r == -ENOSPC ? "the limit queues is reached" :
			      strerror(-r));
}

/* -------------------------------------------------- queues that exist already */

static bool is_of_kind(const struct queue *queue,
		       const struct declaration *file)
{
	return queue->clock_id == file->clock_id && queue->mode == file->mode;
}

/* Writes into @text the keys of the file that cannot be applied now. @before:
 * the file when the queue was made, NULL = unknown.
 */
static void print_changes(char *text, const struct queue *queue,
			  const struct declaration *file,
			  const struct declaration *before)
{
	struct context *context = queue->context;
	struct expiry_stat stat = { 0 };
	bool limit = before && before->limit != file->limit;

	context->engine->ops->stat(queue->engine_queue, &stat);
	if (file->limit)
		limit = stat.limit != declaration_limit(file, &context->config);
	snprintf(text, CHANGES_TEXT, "%s%s%s%s%s%s%s",
		 queue->clock_id != file->clock_id ? ", clock" : "",
		 (queue->mode ^ file->mode) & EXPIRY_MODE_KEYED ? ", keyed" : "",
		 (queue->mode ^ file->mode) & EXPIRY_MODE_ACK ? ", ack" : "",
		 !queue->journal_number != !file->is_durable ? ", durable" : "",
		 limit ? ", limit" : "",
		 before && before->slack_ns != file->slack_ns ? ", slack" : "",
		 before && before->layout != file->layout ? ", layout" : "");
}

static void log_changes(const struct queue *queue,
			const struct declaration *file,
			const struct declaration *before)
{
	struct log_about about = about_file(file, 0);
	char text[CHANGES_TEXT];

	print_changes(text, queue, file, before);
	/* Leave out the first separator. */
	if (*text)
		log_at(LOG_LEVEL_WARNING, &about,
		       "queue %.*s: %s: a change of %s waits until the queue is dropped",
		       EXPIRY_NAME_MAX, file->name, file->path, text + 2);
}

/* Gives the queue to the owner that the file names. Returns false if the owner
 * does not change.
 */
static bool change_owner(struct queue *queue, const struct declaration *file)
{
	struct log_about about = about_file(file, 0);
	uid_t from = queue->user->uid;
	int r;

	if (from == file->uid)
		return true;
	r = -EAGAIN;
	if (store_leave(queue)) {
		r = queue_give(queue, file->uid);
		store_keep(queue);
		if (!r && queue->journal_number)
			durable_give(queue);
	}
	about.error = -r;
	if (r < 0)
		log_at(LOG_LEVEL_ERR, &about,
		       "queue %.*s stays uid %u's: %s: %s",
		       EXPIRY_NAME_MAX, file->name, (unsigned int)from,
		       file->path, strerror(-r));
	else
		log_at(LOG_LEVEL_WARNING, &about,
		       "queue %.*s was uid %u's and is uid %u's now: %s; timers in it: %" PRIu64,
		       EXPIRY_NAME_MAX, file->name, (unsigned int)from,
		       (unsigned int)file->uid, file->path,
		       charge_count_timers(queue));
	return !r;
}

/* Updates a queue from its file. A client or an earlier daemon may have made
 * the queue: it counts as declared from now on.
 */
static void change_queue(struct queue *queue, const struct declaration *file,
			 const struct declaration *before)
{
	struct log_about about = about_file(file, 0);
	bool is_new = queue->gid != file->gid || queue->access != file->access ||
		      queue->user->uid != file->uid;

	if (!queue->declared && !is_of_kind(queue, file)) {
		log_at(LOG_LEVEL_WARNING, &about,
		       "queue %.*s was made by uid %u with another clock or mode than in %s: the file takes effect once the queue is dropped",
		       EXPIRY_NAME_MAX, file->name,
		       (unsigned int)queue->user->uid, file->path);
		return;
	}
	if (!change_owner(queue, file))
		return;
	set_access(queue, file);
	if (is_new)
		permission_renew(queue);
	log_changes(queue, file, before);
}

/* Handles the removal of a queue's file. */
static void undeclare(struct queue *queue, const struct declaration *before)
{
	struct log_about about = about_file(before, 0);

	queue->declared = false;
	queue->gid = GROUP_NONE;
	queue->access = ACCESS_OWNER_ALL;
	permission_renew(queue);
	log_at(LOG_LEVEL_WARNING, &about,
	       "queue %.*s is not declared any more: %s is gone; the queue stays, for uid %u only",
	       EXPIRY_NAME_MAX, before->name, before->path,
	       (unsigned int)queue->user->uid);
}

/* ------------------------------------------------------------------- the set */

static bool is_mine(const struct context *context,
		    const struct declaration *file)
{
	return (file->in_directory ? file->in_directory->thread : 0) ==
	       context->number;
}

static void undeclare_gone(struct context *context,
			   const struct declarations *before)
{
	uint32_t i;

	for (i = 0; i < before->nr; i++) {
		const struct declaration *file = &before->all[i];
		struct queue *queue;

		if (!is_mine(context, file) ||
		    declarations_find(context->declared, file->name))
			continue;
		queue = queue_find(context->queues, file->name);
		if (queue && queue->declared)
			undeclare(queue, file);
	}
}

void declare_all(struct context *context, const struct declarations *declared)
{
	const struct declarations *before = context->declared;
	uint32_t i;

	context->declared = declared;
	if (before)
		undeclare_gone(context, before);
	for (i = 0; i < declared->nr; i++) {
		const struct declaration *file = &declared->all[i];
		struct queue *queue;

		if (!is_mine(context, file) || !file->is_good)
			continue;
		queue = queue_find(context->queues, file->name);
		if (queue)
			change_queue(queue, file,
				     declarations_find(before, file->name));
		else
			declare_anew(context, file);
	}
}

void declare_read(struct context *context)
{
	struct shared *shared = context->shared;
	struct declarations *set;
	uint32_t faults;

	set = declarations_read(&context->config, &faults);
	if (!set)
		return;
	if (shared->nr > 1 && declarations_place(set, &shared->directory) < 0) {
		declarations_free(set);
		return;
	}
	shared->declared_before = shared->declared;
	shared->declared = set;
}

void declare_done(struct shared *shared)
{
	declarations_free(shared->declared_before);
	shared->declared_before = NULL;
}
