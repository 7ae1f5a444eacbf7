// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <linux/expiry.h>

#include "daemon/loop/buffer.h"

/* Trim malloc's free memory above this, at most this often: trimming 256 MiB
 * takes a turn of 30 ms, which no client may cause repeatedly.
 */
#define PRIVATE_KEPT	(1024 * 1024)
#define TRIM_NS		10000000000ULL

static size_t buffers_stride(const struct buffers *buffers)
{
	return BUFFER_HEADROOM + buffers->size;
}

static size_t ring_size(const struct buffers *buffers)
{
	return buffers->nr_ring * sizeof(struct io_uring_buf);
}

static size_t memory_size(const struct buffers *buffers)
{
	return buffers_stride(buffers) * (buffers->nr_ring + buffers->nr_spare);
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int buffers_init(struct buffers *buffers, struct loop *loop, uint32_t nr,
		 uint32_t size)
{
	uint32_t i;
	int r;

	*buffers = (struct buffers) { .loop = loop, .size = size };
	for (buffers->nr_ring = 1; buffers->nr_ring < nr; )
		buffers->nr_ring *= 2;
	buffers->nr_spare = buffers->nr_ring / 2 + 1;

	buffers->ring = map(ring_size(buffers));
	buffers->memory = map(memory_size(buffers));
	buffers->all = calloc(buffers->nr_ring + buffers->nr_spare,
			      sizeof(*buffers->all));
	if (!buffers->ring || !buffers->memory || !buffers->all)
		return -ENOMEM;

	r = loop->ops->provide(loop, buffers->ring, buffers->nr_ring);
	if (r < 0)
		return r;
	io_uring_buf_ring_init(buffers->ring);

	for (i = buffers->nr_ring + buffers->nr_spare; i--; ) {
		struct buffer *buffer = &buffers->all[i];

		buffer->data = buffers->memory + i * buffers_stride(buffers) +
			       BUFFER_HEADROOM;
		buffer->size = size;
		buffer->number = i;
		buffer->kind = i < buffers->nr_ring ? BUFFER_RING :
						      BUFFER_SPARE;
		buffer_put(buffers, buffer);
	}
	buffers_turn(buffers);
	return 0;
}

void buffers_deinit(struct buffers *buffers)
{
	if (buffers->memory)
		munmap(buffers->memory, memory_size(buffers));
	if (buffers->ring)
		munmap(buffers->ring, ring_size(buffers));
	free(buffers->all);
	buffers->memory = NULL;
	buffers->ring = NULL;
	buffers->all = NULL;
	/* Other threads may still read the count of private memory. */
}

static void buffer_reset(struct buffer *buffer, uint32_t len)
{
	buffer->head = buffer->data;
	buffer->tail = buffer->data + len;
	buffer->reply = NULL;
	buffer->reply_tail = NULL;
	buffer->received_ns = 0;
	buffer->commit = 0;
	buffer->content = BUFFER_OTHER;
}

struct buffer *buffer_received(struct buffers *buffers, uint32_t flags,
			       uint32_t len)
{
	struct buffer *buffer = &buffers->all[flags >> IORING_CQE_BUFFER_SHIFT];

	assert(buffer->kind == BUFFER_RING && len <= buffer->size);
	assert(buffers->nr_free);
	buffers->nr_free--;
	buffer_reset(buffer, len);
	return buffer;
}

struct buffer *buffer_spare(struct buffers *buffers)
{
	struct buffer *buffer = buffers->spare;

	if (!buffer)
		return NULL;
	buffers->spare = buffer->next;
	buffers->nr_spare_free--;
	buffer_reset(buffer, 0);
	return buffer;
}

static size_t private_size(uint32_t size)
{
	return sizeof(struct buffer) + BUFFER_HEADROOM + size;
}

struct buffer *buffer_private(struct buffers *buffers, uint32_t size)
{
	struct buffer *buffer = malloc(private_size(size));

	if (!buffer)
		return NULL;
	counter_add(&buffers->private_size, private_size(size));
	if (buffers->private_most < counter_read(&buffers->private_size))
		buffers->private_most = counter_read(&buffers->private_size);
	buffer->kind = BUFFER_PRIVATE;
	buffer->number = 0;
	buffer->data = (char *)(buffer + 1) + BUFFER_HEADROOM;
	buffer->size = size;
	buffer_reset(buffer, 0);
	return buffer;
}

struct buffer *buffer_detach(struct buffers *buffers, struct buffer *buffer)
{
	char *start = buffer->reply_tail ? buffer->reply : buffer->head;
	struct buffer *copy;

	if (buffer->kind == BUFFER_PRIVATE)
		return buffer;
	if (buffer->content == BUFFER_ROWS)
		start -= sizeof(struct expiry_record);
	assert(start <= buffer->head && buffer->head <= buffer->tail);
	copy = buffer_private(buffers, buffer->tail - start);
	if (!copy)
		return NULL;
	memcpy(copy->data, start, copy->size);
	copy->head = copy->data + (buffer->head - start);
	copy->tail = copy->data + copy->size;
	copy->received_ns = buffer->received_ns;
	copy->commit = buffer->commit;
	copy->content = buffer->content;
	if (buffer->reply_tail) {
		copy->reply = copy->data;
		copy->reply_tail = copy->data + (buffer->reply_tail - start);
	}
	buffer_put(buffers, buffer);
	return copy;
}

uint64_t buffer_queue_private(const struct buffer_queue *queue)
{
	const struct buffer *buffer;
	uint64_t size = 0;

	for (buffer = queue->first; buffer; buffer = buffer->next)
		if (buffer->kind == BUFFER_PRIVATE)
			size += private_size(buffer->size);
	return size;
}

void buffer_put(struct buffers *buffers, struct buffer *buffer)
{
	if (!buffer)
		return;
	switch (buffer->kind) {
	case BUFFER_RING:
		assert(buffers->nr_free < buffers->nr_ring);
		io_uring_buf_ring_add(buffers->ring, buffer->data, buffers->size,
				      buffer->number,
				      io_uring_buf_ring_mask(buffers->nr_ring),
				      buffers->returned++);
		buffers->nr_free++;
		break;
	case BUFFER_SPARE:
		buffer->next = buffers->spare;
		buffers->spare = buffer;
		buffers->nr_spare_free++;
		break;
	case BUFFER_PRIVATE:
		assert(counter_read(&buffers->private_size) >=
		       private_size(buffer->size));
		counter_add(&buffers->private_size,
			    -(uint64_t)private_size(buffer->size));
		free(buffer);
		break;
	}
}

void buffer_put_all(struct buffers *buffers, struct buffer_queue *queue)
{
	struct buffer *buffer;

	while ((buffer = buffer_pop(queue)))
		buffer_put(buffers, buffer);
}

/* Trims malloc's memory: it keeps freed pieces between used ones until then. */
static void private_trim(struct buffers *buffers)
{
	uint64_t now_ns = loop_now(buffers->loop, CLOCK_MONOTONIC);

	if (buffers->trimmed_ns && now_ns - buffers->trimmed_ns < TRIM_NS)
		return;
	malloc_trim(0);
	buffers->trimmed_ns = now_ns;
	buffers->private_most = 0;
}

void buffers_turn(struct buffers *buffers)
{
	if (!counter_read(&buffers->private_size) &&
	    buffers->private_most > PRIVATE_KEPT)
		private_trim(buffers);
	if (!buffers->returned)
		return;
	assert(buffers->returned <= buffers->nr_free);
	io_uring_buf_ring_advance(buffers->ring, buffers->returned);
	buffers->returned = 0;
}
