/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buffers of records, from the socket and to it.
 *
 * The kernel receives into the buffers of a ring that all clients share; one
 * that holds requests becomes the reply where it is and goes back to the ring
 * once it is sent. What does not begin as a request (expirations, scans) is
 * written into spare ones. A client that is slow to take its replies must not
 * keep either: what it has is copied to private memory, see client.c.
 */
#ifndef DAEMON_BUFFER_H
#define DAEMON_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/counter.h"
#include "daemon/loop.h"

/* Before each buffer's data, for the beginning of a record that came with the
 * buffer before.
 */
#define BUFFER_HEADROOM	64

#define BUFFER_GROUP	0	/* the only ring of provided buffers */

enum buffer_kind {
	BUFFER_RING,
	BUFFER_SPARE,
	BUFFER_PRIVATE,
};

/**
 * struct buffer - a buffer
 * @next: in whatever queue it is
 * @data: its memory, @size bytes (const), aligned to 16 at least
 * @head: the first byte that still matters
 * @tail: behind the last
 * @received_ns: when the daemon had it, CLOCK_MONOTONIC, until that is counted
 * @reply: while requests become replies: the first reply
 * @reply_tail: behind the last; NULL until processing began
 */
struct buffer {
	struct buffer *next;
	char *data;
	char *head;
	char *tail;
	char *reply;
	char *reply_tail;
	uint64_t received_ns;
	uint32_t size;
	uint16_t number;
	uint8_t kind;
};

/* A queue of buffers, first in, first out. */
struct buffer_queue {
	struct buffer *first;
	struct buffer *last;
};

static inline void buffer_push(struct buffer_queue *queue,
			       struct buffer *buffer)
{
	buffer->next = NULL;
	if (queue->first)
		queue->last->next = buffer;
	else
		queue->first = buffer;
	queue->last = buffer;
}

static inline struct buffer *buffer_pop(struct buffer_queue *queue)
{
	struct buffer *buffer = queue->first;

	if (buffer)
		queue->first = buffer->next;
	return buffer;
}

/**
 * struct buffers - all of them
 * @loop: whose ring they are provided to
 * @ring: shared with the kernel
 * @memory: of the data of all
 * @all: [0] to [@nr_ring - 1] belong to the ring, the rest are spare
 * @spare: those not in use
 * @size: of each one's data
 * @nr_ring: power of two
 * @nr_free: of the ring's, those the kernel may fill
 * @nr_lent: of the ring's, those an engine is at work on, or other threads
 * @returned: of those, not yet shown to the kernel
 * @private_size: bytes that private buffers take; @private_most: at most since
 *	what was freed of it was given back, at @trimmed_ns (CLOCK_MONOTONIC)
 */
struct buffers {
	struct loop *loop;
	struct io_uring_buf_ring *ring;
	char *memory;
	struct buffer *all;
	struct buffer *spare;
	uint32_t size;
	uint32_t nr_ring;
	uint32_t nr_spare;
	uint32_t nr_free;
	uint32_t nr_lent;
	uint32_t returned;
	counter_t private_size;
	uint64_t private_most;
	uint64_t trimmed_ns;
};

/* @nr: for the ring, rounded up to a power of two; half as many are spare.
 * -ENOMEM, -EINVAL (a kernel before 5.19).
 */
int buffers_init(struct buffers *buffers, struct loop *loop, uint32_t nr,
		 uint32_t size);
/* After the loop has ended. */
void buffers_deinit(struct buffers *buffers);

/* What the kernel filled: completion @flags name it, @len bytes. */
struct buffer *buffer_received(struct buffers *buffers, uint32_t flags,
			       uint32_t len);

/* An empty spare buffer, or NULL: there will be some next turn. */
struct buffer *buffer_spare(struct buffers *buffers);

/* An empty private buffer, or NULL: no memory. */
struct buffer *buffer_private(struct buffers *buffers, uint32_t size);

/* Bytes that the private ones of a queue take. */
uint64_t buffer_queue_private(const struct buffer_queue *queue);

/* A private copy of @buffer, which is put back; or NULL (and it is not). */
struct buffer *buffer_privatize(struct buffers *buffers,
				struct buffer *buffer);

/* So many of the ring's are never lent to an engine: it may keep what it has for
 * as long as memory takes to come back from swap, and meanwhile everybody else is
 * to be heard.
 */
static inline uint32_t buffers_reserve(const struct buffers *buffers)
{
	return buffers->nr_ring / 4;
}

/* Put a buffer back where it belongs; NULL is allowed. */
void buffer_put(struct buffers *buffers, struct buffer *buffer);

void buffer_put_all(struct buffers *buffers, struct buffer_queue *queue);

/* Show the kernel what came back in this turn, and give it freed memory. */
void buffers_turn(struct buffers *buffers);

#endif /* DAEMON_BUFFER_H */
