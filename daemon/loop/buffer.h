/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buffers of records, from the socket and to it.
 *
 * The kernel receives into the buffers of a ring that all clients share. A
 * buffer of requests becomes the reply in place, and returns to the ring once
 * it is sent. Other records (expirations, scans) are written into spare
 * buffers. A client that reads slowly must hold neither kind: its data is
 * copied to private memory, see client.h.
 */
#ifndef DAEMON_BUFFER_H
#define DAEMON_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop/loop.h"
#include "daemon/util/counter.h"

/* Room before each buffer's data, for the beginning of a record from the buffer
 * before.
 */
#define BUFFER_HEADROOM	64

enum buffer_kind {
	BUFFER_RING,
	BUFFER_SPARE,
	BUFFER_PRIVATE,
};

/* Kinds of records in a buffer that is sent. */
enum buffer_content {
	BUFFER_OTHER,		/* STAT, QUEUES, CLOCK_SET, copies for observers */
	BUFFER_REPLIES,		/* answers to requests for timers */
	BUFFER_EXPIRATIONS,
	BUFFER_ROWS,		/* the reply to one SCAN, which is before @head */
	BUFFER_MIXED,		/* of a blocked client */
};

/**
 * struct buffer - a buffer
 * @next: in its queue
 * @data: @size bytes (const), aligned to 16 at least
 * @head: the first byte that is still needed
 * @tail: behind the last
 * @commit: block of the journal to wait for before it is sent, 0 = none
 * @content: enum buffer_content; set before it is sent
 * @received_ns: when it arrived, CLOCK_MONOTONIC, until that is counted
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
	uint64_t commit;
	uint32_t size;
	uint16_t number;
	uint8_t kind;
	uint8_t content;
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
 * struct buffers - the buffers of one thread
 * @loop: its ring receives into them
 * @ring: shared with the kernel
 * @memory: data of all buffers
 * @all: the first @nr_ring are the ring's, others spare
 * @spare: unused spare buffers
 * @spare_wanted: a queue or a client waits for one
 * @size: data bytes of each buffer
 * @nr_ring: number in the ring, a power of two
 * @nr_free: of these, available to the kernel
 * @nr_spare_free: spare buffers that are unused
 * @nr_in_flight: of these, at an engine or other thread, or behind one
 * @returned: freed, not yet shown to the kernel
 * @private_size: bytes of private buffers
 * @private_most: their maximum since @trimmed_ns
 * @trimmed_ns: last trim of malloc's memory, CLOCK_MONOTONIC
 */
struct buffers {
	struct loop *loop;
	struct io_uring_buf_ring *ring;
	char *memory;
	struct buffer *all;
	struct buffer *spare;
	bool spare_wanted;
	uint32_t size;
	uint32_t nr_ring;
	uint32_t nr_spare;
	uint32_t nr_free;
	uint32_t nr_spare_free;
	uint32_t nr_in_flight;
	uint32_t returned;
	counter_t private_size;
	uint64_t private_most;
	uint64_t trimmed_ns;
};

/* Sets the ring up. @nr: rounded up to a power of two; half as many are spare.
 * -ENOMEM, -EINVAL (a kernel before 5.19).
 */
int buffers_init(struct buffers *buffers, struct loop *loop, uint32_t nr,
		 uint32_t size);
/* Frees all buffers, after the loop has ended. */
void buffers_deinit(struct buffers *buffers);

/* Returns the buffer that the kernel filled: completion @flags name it, @len
 * bytes.
 */
struct buffer *buffer_received(struct buffers *buffers, uint32_t flags,
			       uint32_t len);

/* Returns an empty spare buffer, or NULL: sends or the engine have all of them.
 * Who waits for one sets @spare_wanted.
 */
struct buffer *buffer_spare(struct buffers *buffers);

/* Returns an empty private buffer, or NULL: no memory. */
struct buffer *buffer_private(struct buffers *buffers, uint32_t size);

/* Returns the bytes of a queue's private buffers. */
uint64_t buffer_queue_private(const struct buffer_queue *queue);

/* Returns a private copy of @buffer, which is then freed: its bytes from the first reply
 * or @head on, a SCAN's request before its rows, and all that is known about it. NULL: no
 * memory, and @buffer stays.
 */
struct buffer *buffer_detach(struct buffers *buffers, struct buffer *buffer);

/* Returns the number of the ring's buffers that an engine never gets. An engine
 * may hold its buffers while memory is swapped in; meanwhile all other clients
 * must be served.
 */
static inline uint32_t buffers_reserve(const struct buffers *buffers)
{
	return buffers->nr_ring / 4;
}

/* Returns whether less than half of a kind of shared buffers is left. */
static inline bool buffers_are_few(const struct buffers *buffers,
				   enum buffer_kind kind)
{
	return (kind == BUFFER_RING &&
		buffers->nr_free < buffers->nr_ring / 2) ||
	       (kind == BUFFER_SPARE &&
		buffers->nr_spare_free < buffers->nr_spare / 2);
}

/* Frees a buffer of any kind; NULL is allowed. */
void buffer_put(struct buffers *buffers, struct buffer *buffer);

void buffer_put_all(struct buffers *buffers, struct buffer_queue *queue);

/* Provides returned buffers to the kernel in this turn, and trims freed memory.
 */
void buffers_turn(struct buffers *buffers);

#endif /* DAEMON_BUFFER_H */
