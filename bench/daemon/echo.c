// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The floor: the daemon with an engine that does nothing. It replaces both
 * engines when it is linked with the rest of daemon/. So the same loop accepts
 * connections, receives and sends, and each request returns unchanged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/engine.h"

static int echo_open(struct engine **enginep, struct loop *loop,
		     const char *device, struct budget *memory)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	(void)device;
	(void)memory;
	if (!engine)
		return -ENOMEM;
	engine->ops = &engine_embedded;
	engine->loop = loop;
	*enginep = engine;
	return 0;
}

static void echo_close(struct engine *engine)
{
	free(engine);
}

static int echo_queue_new(struct engine *engine, struct expiry_config *config,
			  uint32_t layout, struct engine_queue **queuep)
{
	struct engine_queue *queue = calloc(1, sizeof(*queue));

	(void)config;
	(void)layout;
	if (!queue)
		return -ENOMEM;
	queue->engine = engine;
	*queuep = queue;
	return 0;
}

static void echo_queue_free(struct engine_queue *queue)
{
	free(queue);
}

static int echo_submit(struct engine_queue *queue, struct engine_io *io)
{
	(void)queue;
	(void)io;
	return 0;
}

static int echo_submit_now(struct engine_queue *queue, struct engine_io *io)
{
	(void)queue;
	(void)io;
	return 0;
}

static int echo_collect(struct engine_queue *queue, struct engine_io *io)
{
	(void)queue;
	(void)io;
	return 0;
}

static int echo_wait(struct engine_queue *queue)
{
	(void)queue;
	return 0;
}

static void echo_unwait(struct engine_queue *queue)
{
	(void)queue;
}

static int echo_rewind(struct engine_queue *queue)
{
	(void)queue;
	return 0;
}

static int echo_scan(struct engine_queue *queue, struct expiry_record *records,
		     uint32_t count, uint64_t *cursor)
{
	(void)queue;
	(void)records;
	(void)count;
	*cursor = 0;
	return 0;
}

static int echo_stat(struct engine_queue *queue, struct expiry_stat *stat)
{
	(void)queue;
	memset(stat, 0, sizeof(*stat));
	return 0;
}

static int echo_recount(struct engine_queue *queue)
{
	(void)queue;
	return 0;
}

#define ECHO_OPS { \
	.name = "echo", \
	.kind = EXPIRY_ENGINE_EMBEDDED, \
	.open = echo_open, \
	.close = echo_close, \
	.queue_new = echo_queue_new, \
	.queue_free = echo_queue_free, \
	.submit = echo_submit, \
	.submit_now = echo_submit_now, \
	.collect = echo_collect, \
	.wait = echo_wait, \
	.unwait = echo_unwait, \
	.rewind = echo_rewind, \
	.scan = echo_scan, \
	.stat = echo_stat, \
	.recount = echo_recount, \
}

const struct engine_ops engine_embedded = ECHO_OPS;
const struct engine_ops engine_kernel = ECHO_OPS;
