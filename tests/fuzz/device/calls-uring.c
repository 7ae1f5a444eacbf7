// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The device by io_uring. One call queues an entry and another submits, so that
 * several go together, linked or not. Requests in flight meet all other events.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "calls.h"
#include "oracle.h"
#include "values.h"

#define WAIT_MS_MAX	2	/* for a completion */
#define COMPLETIONS_MAX	64	/* a multishot request may post ever more */
#define FIXED_PAGES	4	/* of a thread's region, registered with its ring */
#define GROUP		1	/* of the buffers that the ring chooses from */

/* The op of a completion, and the descriptor of its queue. */
enum tag { TAG_OTHER, TAG_CMD, TAG_READ };

/*
 * Gives a ring the only write end of a pipe, as its file 0. Returns the other
 * end, which hangs up when the kernel has freed the ring, after its requests.
 */
static int ring_watch(const struct uring *ring)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	err = syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_FILES,
		      &ends[1], 1);
	close(ends[1]);
	if (!err)
		return ends[0];
	close(ends[0]);
	return -1;
}

/* Registers the first pages of a thread's region, unless some are gone. */
static void ring_register(struct worker *worker)
{
	struct iovec iov = {
		.iov_base = state.user[worker->number],
		.iov_len = FIXED_PAGES * PAGE,
	};

	syscall(__NR_io_uring_register, worker->ring.fd, IORING_REGISTER_BUFFERS,
		&iov, 1);
}

static bool ring_make(struct worker *worker, const struct call *call)
{
	static const unsigned int setups[] = {
		0, 0, 0, 0, IORING_SETUP_SQPOLL, IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_SQE128, IORING_SETUP_CQE32,
		IORING_SETUP_SQE128 | IORING_SETUP_CQE32, IORING_SETUP_IOPOLL,
	};
	unsigned int setup = setups[call->seed % ARRAY_SIZE(setups)];

	/* Making one takes longer than most programs. */
	if (worker->has_ring && (!worker->kept || worker->setup == setup)) {
		worker->kept = false;
		return true;
	}
	if (worker->has_ring)
		ring_close(worker);
	worker->kept = false;
	worker->setup = setup;
	if (uring_init_flags(&worker->ring, RING_ENTRIES, setup))
		return false;
	worker->ring_end = ring_watch(&worker->ring);
	worker->has_ring = worker->ring_end >= 0;
	if (worker->has_ring)
		ring_register(worker);
	else
		uring_fini(&worker->ring);
	return worker->has_ring;
}

static struct io_uring_sqe *entry(struct worker *worker, const struct call *call,
				  uint8_t opcode, int fd, enum tag tag)
{
	static const uint8_t flags[] = {
		0, 0, 0, 0, IOSQE_ASYNC, IOSQE_IO_LINK, IOSQE_IO_HARDLINK,
		IOSQE_IO_DRAIN, IOSQE_ASYNC | IOSQE_IO_LINK, IOSQE_FIXED_FILE,
		IOSQE_BUFFER_SELECT, 0x80, 0, IOSQE_ASYNC, IOSQE_IO_LINK, 0,
	};
	struct io_uring_sqe *sqe;

	if (!ring_make(worker, call) || worker->ring.queued == RING_ENTRIES)
		return NULL;
	sqe = uring_sqe(&worker->ring, opcode, fd, tag);
	sqe->flags = flags[call_how(call)];
	return sqe;
}

/* A struct of another size than this program's, as old and new programs have. */
static void resize_batch(const struct worker *worker, const struct call *call,
			 struct io_uring_sqe *sqe)
{
	static const unsigned int sizes[] = { 12, 16, 20, 24, 80, 81, 0, 11 };
	unsigned int size = sizes[call->more % ARRAY_SIZE(sizes)];

	sqe->cmd_op = _IOC(_IOC_DIR(EXPIRY_IOC_SUBMIT),
			   _IOC_TYPE(EXPIRY_IOC_SUBMIT),
			   _IOC_NR(EXPIRY_IOC_SUBMIT), size);
	/* The tail must be 0. */
	if (worker->setup & IORING_SETUP_SQE128 && call->more & 8)
		sqe->cmd[call->more % 80] = 1;
}

void call_uring_cmd(struct worker *worker, const struct call *call,
		    unsigned int queue, int fd)
{
	static const uint32_t commands[] = {
		EXPIRY_IOC_STAT, EXPIRY_IOC_CONFIG, 0, 0xffffffff,
	};
	struct place place = place_of(worker->number, call->place);
	struct expiry_batch batch = {
		.addr = (uintptr_t)place.user,
		.count = count_of(call->count),
	};
	struct io_uring_sqe *sqe = entry(worker, call, IORING_OP_URING_CMD, fd,
					 TAG_CMD);
	uint32_t count = batch.count;

	if (!sqe)
		return;
	if (count > place.room / RECORD)
		count = place.room / RECORD;
	if (place.mine)
		records_fill((void *)place.mine, count, queue, call);
	sqe->cmd_op = call->seed < 250 ? EXPIRY_IOC_SUBMIT :
		commands[call->seed % ARRAY_SIZE(commands)];
	if (call->more >= 240)
		batch.flags = call->more;
	memcpy(sqe->cmd, &batch, sizeof(batch));
	if (call->seed % 16 == 7)
		resize_batch(worker, call, sqe);
	if (call->seed % 8 == 6)
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
}

/* The ring chooses a buffer: its address and, for a multishot read, its size. */
static void read_chosen(struct io_uring_sqe *sqe, const struct call *call)
{
	sqe->opcode = call->what & 1 ? READ_MULTISHOT : IORING_OP_READ;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->addr = 0;
	sqe->len = call->what & 1 ? 0 : size_of(call->count);
}

void call_uring_read(struct worker *worker, const struct call *call,
		     unsigned int queue, int fd)
{
	static struct iovec iov[THREADS];
	struct place place = place_of(worker->number, call->place);
	struct io_uring_sqe *sqe;

	(void)queue;
	sqe = entry(worker, call, call->what & 1 ? IORING_OP_READ :
		    IORING_OP_READV, fd, TAG_READ);
	if (!sqe)
		return;
	sqe->addr = (uintptr_t)place.user;
	sqe->len = size_of(call->count);
	sqe->off = call->more < 250 ? -1 : 0;
	if (call->what % 8 == 7) {
		sqe->opcode = IORING_OP_READ_FIXED;
		/* io_uring refuses to choose from two sorts of buffers. */
		if (sqe->flags & IOSQE_BUFFER_SELECT)
			sqe->user_data = TAG_OTHER;
	} else if (call->what % 8 >= 5) {
		read_chosen(sqe, call);
	} else if (sqe->opcode == IORING_OP_READV) {
		iov[worker->number].iov_base = place.user;
		iov[worker->number].iov_len = sqe->len;
		sqe->addr = (uintptr_t)&iov[worker->number];
		sqe->len = 1;
	}
}

/* Gives the ring some buffers, of a few records each. */
static void provide(const struct worker *worker, const struct call *call,
		    struct io_uring_sqe *sqe)
{
	unsigned int size = RECORD * (1 + call->count % 8);

	sqe->opcode = IORING_OP_PROVIDE_BUFFERS;
	sqe->addr = (uintptr_t)place_of(worker->number, call->place).user;
	sqe->len = size;
	sqe->fd = 1 + call->more % 8;
	sqe->buf_group = GROUP;
}

void call_uring_poll(struct worker *worker, const struct call *call,
		     unsigned int queue, int fd)
{
	static struct __kernel_timespec time = { .tv_nsec = 500000 };
	struct io_uring_sqe *sqe;

	(void)queue;
	switch (call->what % 4) {
	case 0:	/* of what is linked before it */
		sqe = entry(worker, call, IORING_OP_LINK_TIMEOUT, -1, TAG_OTHER);
		if (!sqe)
			return;
		sqe->addr = (uintptr_t)&time;
		sqe->len = 1;
		break;
	case 1:
		sqe = entry(worker, call, IORING_OP_CLOSE, fd, TAG_OTHER);
		if (!sqe)
			return;
		if (call->seed % 16 == 0)
			state.closes = true;
		else if (call->seed % 2)
			provide(worker, call, sqe);
		else
			sqe->opcode = IORING_OP_NOP;
		break;
	default:
		sqe = entry(worker, call, IORING_OP_POLL_ADD, fd, TAG_OTHER);
		if (!sqe)
			return;
		sqe->poll32_events = POLLIN | (call->more & 1 ? POLLERR : 0);
		sqe->len = call->more & 2 ? IORING_POLL_ADD_MULTI : 0;
	}
}

void call_uring_cancel(struct worker *worker, const struct call *call,
		       unsigned int queue, int fd)
{
	struct io_uring_sqe *sqe;

	(void)queue;
	sqe = entry(worker, call, call->what & 1 ? IORING_OP_POLL_REMOVE :
		    IORING_OP_ASYNC_CANCEL, -1, TAG_OTHER);
	if (!sqe)
		return;
	sqe->addr = call->more % 3;
	if (sqe->opcode == IORING_OP_ASYNC_CANCEL && call->what & 2) {
		sqe->fd = fd;
		sqe->cancel_flags = IORING_ASYNC_CANCEL_FD |
			(call->what & 4 ? IORING_ASYNC_CANCEL_ALL : 0);
	}
}

static void completed(const struct worker *worker, const struct io_uring_cqe *cqe)
{
	int err = cqe->res < 0 ? -cqe->res : 0;

	/* io_uring has errors of its own for a faulty entry. */
	if (err == EBADF || err == ENOBUFS)
		return;
	if (cqe->user_data == TAG_CMD)
		oracle_errno(RULE_URING_CMD, err);
	else if (cqe->user_data == TAG_READ && err != ESPIPE &&
		 !(err == EOPNOTSUPP && worker->setup & IORING_SETUP_IOPOLL))
		oracle_errno(RULE_URING_READ, err);
}

static void ring_enter(struct uring *ring, unsigned int nr)
{
	syscall(__NR_io_uring_enter, ring->fd, nr, 0,
		IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL, 0);
}

void call_uring_enter(struct worker *worker, const struct call *call,
		      unsigned int queue, int fd)
{
	struct uring *ring = &worker->ring;
	struct pollfd pollfd = { .fd = ring->fd, .events = POLLIN };
	struct io_uring_cqe cqe;
	unsigned int nr, i;

	(void)queue;
	(void)fd;
	if (!worker->has_ring || worker->kept)
		return;
	nr = ring->queued;
	__atomic_store_n(ring->sq_tail, *ring->sq_tail + nr, __ATOMIC_RELEASE);
	ring->queued = 0;
	worker->flying += nr;
	ring_enter(ring, nr);
	if (worker->flying && call->count % WAIT_MS_MAX) {
		poll(&pollfd, 1, call->count % WAIT_MS_MAX);
		ring_enter(ring, 0);
	}
	for (i = 0; i < COMPLETIONS_MAX && uring_next(ring, &cqe); i++) {
		completed(worker, &cqe);
		if (!(cqe.flags & IORING_CQE_F_MORE) && worker->flying)
			worker->flying--;
	}
}

/* With requests in flight. */
void call_uring_close(struct worker *worker, const struct call *call,
		      unsigned int queue, int fd)
{
	(void)call;
	(void)queue;
	(void)fd;
	if (worker->has_ring)
		ring_close(worker);
}
