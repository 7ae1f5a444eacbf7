// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel engine: a queue is an open file of /dev/expiry.
 *
 * Batches use IORING_OP_URING_CMD and expirations IORING_OP_READ, both in the
 * loop's ring. Waiting is a one-shot poll after an empty read. The poll checks
 * the state once it is armed, so that no event between the two is missed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/engine/engine.h"
#include "daemon/loop/clock-watch.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

/* Empty reads of a readable queue: the page they need is not in memory. The
 * next read may wait for it, in a thread of the ring.
 */
#define EMPTY_READS_MAX	2

/**
 * struct kernel - the engine
 * @device: path of the device
 * @queues: all with a pending poll, freed ones included
 */
struct kernel {
	struct engine base;
	char *device;
	struct list queues;
};

/**
 * struct kernel_queue - a queue
 * @fd: its file, open while @poll is pending
 * @mode: EXPIRY_MODE_*
 * @clock_id: as configured
 * @past_ns: latest deadline already passed when set
 * @empty_reads: consecutive empty reads of the readable queue
 * @poll_turn: the turn in which @poll was armed
 * @waiting: due() must be called
 * @polling: @poll is pending
 * @freed: only @poll keeps it
 */
struct kernel_queue {
	struct engine_queue base;
	struct list all;
	struct loop_op poll;
	uint64_t poll_turn;
	int fd;
	uint32_t mode;
	uint32_t clock_id;
	uint64_t past_ns;
	uint32_t empty_reads;
	bool waiting;
	bool polling;
	bool freed;
};

static struct kernel_queue *kernel_queue(struct engine_queue *queue)
{
	return container_of(queue, struct kernel_queue, base);
}

static struct kernel *kernel(struct engine *engine)
{
	return container_of(engine, struct kernel, base);
}

static void kernel_queue_end(struct kernel_queue *queue)
{
	close(queue->fd);
	free(queue);
}

static void poll_done(struct loop_op *op, int result, uint32_t flags)
{
	struct kernel_queue *queue = container_of(op, struct kernel_queue,
						  poll);

	(void)result;
	(void)flags;
	queue->polling = false;
	list_del(&queue->all);
	/* The poll has waited for an event: the read before it was empty. */
	if (queue->base.engine->loop->turns - queue->poll_turn > 1)
		queue->empty_reads = 0;
	if (queue->freed) {
		kernel_queue_end(queue);
	} else if (queue->waiting) {
		queue->waiting = false;
		queue->base.due(&queue->base);
	}
}

static void kernel_queue_init(struct kernel_queue *queue, struct engine *base,
			      uint32_t mode, uint32_t clock_id)
{
	queue->base.engine = base;
	queue->mode = mode;
	queue->clock_id = clock_id;
	queue->poll.done = poll_done;
	list_init(&queue->all);
}

static int kernel_queue_new(struct engine *base, struct expiry_config *config,
			    uint32_t layout, struct engine_queue **queuep)
{
	struct kernel_queue *queue = calloc(1, sizeof(*queue));
	int r;

	if (!queue)
		return -ENOMEM;
	queue->fd = open(kernel(base)->device, O_RDWR | O_CLOEXEC);
	if (queue->fd < 0) {
		r = -errno;
		goto err_queue;
	}
	if (layout && ioctl(queue->fd, EXPIRY_IOC_LAYOUT, layout) < 0) {
		r = -errno;
		goto err_fd;
	}
	if (ioctl(queue->fd, EXPIRY_IOC_CONFIG, config) < 0) {
		/* Above the module's limit: take the limit. */
		config->limit = 0;
		if (errno != EPERM ||
		    ioctl(queue->fd, EXPIRY_IOC_CONFIG, config) < 0) {
			r = -errno;
			goto err_fd;
		}
	}
	kernel_queue_init(queue, base, config->mode, config->clock_id);
	*queuep = &queue->base;
	return 0;

err_fd:
	close(queue->fd);
err_queue:
	free(queue);
	return r;
}

static int kernel_queue_adopt(struct engine *base, int fd,
			      struct expiry_stat *stat,
			      struct engine_queue **queuep)
{
	struct kernel_queue *queue;

	if (ioctl(fd, EXPIRY_IOC_STAT, stat) < 0)
		return -errno;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->fd = fd;
	queue->base.timers = stat->armed + stat->unacked;
	kernel_queue_init(queue, base, stat->mode, stat->clock_id);
	*queuep = &queue->base;
	return 0;
}

static int kernel_queue_fd(struct engine_queue *base)
{
	return kernel_queue(base)->fd;
}

static void kernel_queue_free(struct engine_queue *base)
{
	struct kernel_queue *queue;

	if (!base)
		return;
	queue = kernel_queue(base);
	/* Keep the file open while it is watched: the service manager may have
	 * it, too.
	 */
	queue->freed = true;
	if (queue->polling)
		loop_cancel(base->engine->loop, &queue->poll);
	else
		kernel_queue_end(queue);
}

/* Updates the count after a batch. The reply does not show an ARM that replaced
 * or an ACK of a periodic timer. After these the count is too high, never too
 * low, until the next recount().
 */
static void count_batch(struct kernel_queue *queue,
			const struct expiry_record *records, uint32_t count)
{
	uint64_t now_ns = loop_now(queue->base.engine->loop, queue->clock_id);
	uint64_t *timers = &queue->base.timers;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (records[i].status)
			continue;
		if (records[i].op <= EXPIRY_OP_REFRESH &&
		    records[i].deadline_ns < now_ns &&
		    records[i].deadline_ns > queue->past_ns)
			queue->past_ns = records[i].deadline_ns;
		if (records[i].op == EXPIRY_OP_ARM)
			++*timers;
		else if (records[i].op == EXPIRY_OP_CLEAR)
			*timers = 0;
		else if (records[i].op == EXPIRY_OP_CANCEL &&
			 !(queue->mode & EXPIRY_MODE_ACK) && *timers)
			--*timers;
	}
}

static struct expiry_batch rest_of(const struct engine_io *io)
{
	return (struct expiry_batch) {
		.addr = (uintptr_t)(io->records + io->progress),
		.count = io->count - io->progress,
	};
}

static void submit_rest(struct kernel_queue *queue, struct engine_io *io)
{
	struct io_uring_sqe *sqe = loop_sqe(queue->base.engine->loop, &io->op);
	struct expiry_batch batch = rest_of(io);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, queue->fd, NULL, 0, 0);
	sqe->cmd_op = EXPIRY_IOC_SUBMIT;
	memcpy(sqe->cmd, &batch, sizeof(batch));
	queue->base.engine->submit_pending = true;
}

static void submit_done(struct loop_op *op, int result, uint32_t flags)
{
	struct engine_io *io = container_of(op, struct engine_io, op);
	struct kernel_queue *queue = kernel_queue(io->queue);

	(void)flags;
	if (result > 0) {
		count_batch(queue, io->records + io->progress, result);
		io->progress += result;
		if (io->progress < io->count) {
			submit_rest(queue, io);
			return;
		}
		result = 0;
	} else if (!result) {
		result = -EIO;
	}
	io->done(io, result);
}

static int kernel_submit(struct engine_queue *base, struct engine_io *io)
{
	io->queue = base;
	io->op.done = submit_done;
	submit_rest(kernel_queue(base), io);
	return -EINPROGRESS;
}

static int kernel_submit_now(struct engine_queue *base, struct engine_io *io)
{
	struct kernel_queue *queue = kernel_queue(base);
	struct expiry_batch batch;
	int r;

	while (io->progress < io->count) {
		batch = rest_of(io);
		r = ioctl(queue->fd, EXPIRY_IOC_SUBMIT, &batch);
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		count_batch(queue, io->records + io->progress, r);
		io->progress += r;
	}
	return 0;
}

/* Removes records that the daemon reports itself (clock.c). Returns how many
 * are left.
 */
static int keep_expired(struct expiry_record *records, int count)
{
	int i, kept = 0;

	for (i = 0; i < count; i++) {
		if (records[i].op != EXPIRY_OP_EXPIRED)
			continue;
		if (kept < i)
			records[kept] = records[i];
		kept++;
	}
	return kept;
}

/* Returns the most lateness of @records. Leaves out timers armed with a passed
 * deadline: timers due later than these come after all of them.
 */
static uint64_t lateness(struct kernel_queue *queue,
			 const struct expiry_record *records, int count)
{
	uint64_t from_ns = queue->base.taken_ns;
	uint64_t now_ns = loop_now(queue->base.engine->loop, queue->clock_id);
	uint64_t late_ns;
	int i;

	/* The clock was set back. */
	if (queue->past_ns > now_ns)
		queue->past_ns = 0;
	if (from_ns <= queue->past_ns)
		from_ns = queue->past_ns + 1;
	for (i = 0; i < count; i++)
		if (!(records[i].flags & EXPIRY_F_REDELIVERED) &&
		    records[i].deadline_ns >= from_ns)
			break;
	/* Not late if it became due in this turn. */
	if (i == count || records[i].deadline_ns >= now_ns)
		return 0;
	late_ns = now_ns - records[i].deadline_ns;
	/* Nor if it became due by a step. */
	if (queue->clock_id == CLOCK_REALTIME && late_ns > CLOCK_STEP_NS &&
	    clock_is_ahead_of_watch(queue->base.engine->loop)) {
		queue->base.taken_ns = now_ns;
		return 0;
	}
	return late_ns;
}

static void collect_done(struct loop_op *op, int result, uint32_t flags)
{
	struct engine_io *io = container_of(op, struct engine_io, op);
	struct kernel_queue *queue = kernel_queue(io->queue);
	int i;

	(void)flags;
	if (result == -EAGAIN) {
		queue->empty_reads++;
		result = 0;
	} else if (result == -EINTR || result == -ECANCELED) {
		result = 0;
	} else if (result > 0) {
		queue->empty_reads = 0;
		result = keep_expired(io->records,
				      result / (int)sizeof(*io->records));
		io->late_ns = lateness(queue, io->records, result);
		for (i = 0; i < result; i++)
			if (!io->records[i].count && queue->base.timers &&
			    !(queue->mode & EXPIRY_MODE_ACK))
				queue->base.timers--;
	}
	io->done(io, result);
}

static int kernel_collect(struct engine_queue *base, struct engine_io *io)
{
	struct kernel_queue *queue = kernel_queue(base);
	struct io_uring_sqe *sqe = loop_sqe(base->engine->loop, &io->op);

	io->queue = base;
	io->op.done = collect_done;
	io_uring_prep_read(sqe, queue->fd, io->records,
			   io->count * sizeof(*io->records), -1);
	if (queue->empty_reads < EMPTY_READS_MAX)
		sqe->rw_flags = RWF_NOWAIT;
	base->engine->submit_pending = true;
	return -EINPROGRESS;
}

static void kernel_stop(struct engine_queue *base, struct engine_io *io)
{
	loop_cancel(base->engine->loop, &io->op);
}

static int kernel_wait(struct engine_queue *base)
{
	struct kernel_queue *queue = kernel_queue(base);
	struct io_uring_sqe *sqe;

	queue->waiting = true;
	if (queue->polling)
		return 0;
	queue->polling = true;
	queue->poll_turn = base->engine->loop->turns;
	list_add(&kernel(base->engine)->queues, &queue->all);
	sqe = loop_sqe(base->engine->loop, &queue->poll);
	io_uring_prep_poll_add(sqe, queue->fd, POLLIN);
	return 0;
}

static void kernel_unwait(struct engine_queue *base)
{
	kernel_queue(base)->waiting = false;
}

static int kernel_rewind(struct engine_queue *base)
{
	return ioctl(kernel_queue(base)->fd, EXPIRY_IOC_REWIND) < 0 ? -errno : 0;
}

static int kernel_scan(struct engine_queue *base,
		       struct expiry_record *records, uint32_t count,
		       uint64_t *cursorp)
{
	struct expiry_scan scan = {
		.addr = (uintptr_t)records,
		.count = count,
		.cursor = *cursorp,
	};
	int r = ioctl(kernel_queue(base)->fd, EXPIRY_IOC_SCAN, &scan);

	if (r < 0)
		return -errno;
	*cursorp = scan.cursor;
	return r;
}

static int kernel_stat(struct engine_queue *base, struct expiry_stat *stat)
{
	return ioctl(kernel_queue(base)->fd, EXPIRY_IOC_STAT, stat) < 0 ?
	       -errno : 0;
}

static int kernel_recount(struct engine_queue *base)
{
	struct expiry_stat stat;
	int r = kernel_stat(base, &stat);

	if (r < 0)
		return r;
	base->timers = stat.armed + stat.unacked;
	return 0;
}

static void kernel_close(struct engine *base)
{
	struct kernel *engine;
	struct list *entry;

	if (!base)
		return;
	engine = kernel(base);
	/* Freed, but the ring ended before their polls. */
	while ((entry = list_pop(&engine->queues)))
		kernel_queue_end(container_of(entry, struct kernel_queue,
					      all));
	free(engine->device);
	free(engine);
}

static int kernel_open(struct engine **enginep, struct loop *loop,
		       const char *device, struct budget *memory)
{
	struct kernel *engine;
	int fd = open(device, O_RDWR | O_CLOEXEC);

	(void)memory;
	if (fd < 0)
		return -errno;
	close(fd);

	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->base.ops = &engine_kernel;
	engine->base.loop = loop;
	list_init(&engine->queues);
	engine->device = strdup(device);
	if (!engine->device) {
		kernel_close(&engine->base);
		return -ENOMEM;
	}
	*enginep = &engine->base;
	return 0;
}

const struct engine_ops engine_kernel = {
	.name = "kernel",
	.kind = EXPIRY_ENGINE_KERNEL,
	.open = kernel_open,
	.close = kernel_close,
	.queue_new = kernel_queue_new,
	.queue_adopt = kernel_queue_adopt,
	.queue_fd = kernel_queue_fd,
	.queue_free = kernel_queue_free,
	.submit = kernel_submit,
	.submit_now = kernel_submit_now,
	.collect = kernel_collect,
	.stop = kernel_stop,
	.wait = kernel_wait,
	.unwait = kernel_unwait,
	.rewind = kernel_rewind,
	.scan = kernel_scan,
	.stat = kernel_stat,
	.recount = kernel_recount,
};
