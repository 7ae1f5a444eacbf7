// SPDX-License-Identifier: LGPL-2.1-or-later
/* Timers of one plain queue: by batches, or each in a call of its own. */
#include <stddef.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernel/peers.h"
#include "bench/kernel/queue.h"
#include "tests/device/uring.h"

/**
 * struct queue - a queue and its client's state
 * @submit: how requests are sent
 * @ids: by number
 * @ring: for single requests
 */
struct queue {
	void (*submit)(struct queue *queue, struct expiry_record *records,
		       uint32_t nr);
	int fd;
	uint64_t *ids;
	struct uring ring;
};

static void by_ring(struct queue *queue, struct expiry_record *records,
		    uint32_t nr)
{
	queue_submit_ring(&queue->ring, queue->fd, records, nr);
}

static void by_ioctl(struct queue *queue, struct expiry_record *records,
		     uint32_t nr)
{
	queue_submit(queue->fd, records, nr);
}

static void by_one(struct queue *queue, struct expiry_record *records,
		   uint32_t nr)
{
	queue_submit_single(queue->fd, records, nr);
}

static void init(void *own, uint32_t nr)
{
	struct queue *queue = own;

	queue->fd = queue_new(CLOCK_MONOTONIC, 0);
	queue->ids = calloc(nr, sizeof(*queue->ids));
	if (!queue->ids)
		die("no memory");
	queue_ring(&queue->ring);
}

static void request(struct queue *queue, uint8_t op, const uint32_t *timers,
		    uint32_t nr, const uint64_t *in_ns)
{
	struct expiry_record records[PEER_BATCH];
	uint32_t i;

	memset(records, 0, nr * sizeof(records[0]));
	for (i = 0; i < nr; i++) {
		records[i].op = op;
		if (op != EXPIRY_OP_ARM)
			records[i].id = queue->ids[timers[i]];
		if (!in_ns)
			continue;
		records[i].flags = EXPIRY_F_RELATIVE;
		records[i].deadline_ns = in_ns[i];
	}
	queue->submit(queue, records, nr);
	for (i = 0; op == EXPIRY_OP_ARM && i < nr; i++)
		queue->ids[timers[i]] = records[i].id;
}

static void arm(void *own, const uint32_t *timers, uint32_t nr,
		const uint64_t *in_ns)
{
	request(own, EXPIRY_OP_ARM, timers, nr, in_ns);
}

static void refresh(void *own, const uint32_t *timers, uint32_t nr,
		    const uint64_t *in_ns)
{
	request(own, EXPIRY_OP_REFRESH, timers, nr, in_ns);
}

static void cancel(void *own, const uint32_t *timers, uint32_t nr)
{
	request(own, EXPIRY_OP_CANCEL, timers, nr, NULL);
}

static struct queue ring = { .submit = by_ring };
static struct queue batch = { .submit = by_ioctl };
static struct queue single = { .submit = by_one };

#define PEER(what, queue) {						\
	.name = what,							\
	.own = queue,							\
	.init = init,							\
	.arm = arm,							\
	.refresh = refresh,						\
	.cancel = cancel,						\
}

const struct peer peer_ring = PEER("expiry, uring_cmd of 512", &ring);
const struct peer peer_ioctl = PEER("expiry, ioctl of 512", &batch);
const struct peer peer_single = PEER("expiry, 512 ioctls", &single);
