/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of io_uring that sends a few requests and sees each completed; the
 * kernel's selftests have no liburing. One thread, never more requests at once
 * than the ring has entries.
 */
#ifndef TESTS_URING_H
#define TESTS_URING_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <linux/io_uring.h>

/* From Linux 6.7 on; newer than the headers of Debian 12. */
#define READ_MULTISHOT	49

struct uring {
	int fd;
	unsigned int entries;
	unsigned int shift;		/* 1: entries of 128 bytes */
	unsigned int cq_shift;		/* 1: completions of 32 bytes */
	unsigned int queued;		/* not yet submitted */
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	void *rings;
	size_t rings_size, sqes_size;
};

/* @flags: IORING_SETUP_* */
static inline int uring_init_flags(struct uring *ring, unsigned int entries,
				   unsigned int flags)
{
	struct io_uring_params p = { .flags = flags };
	size_t sq_size, cq_size;

	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(__NR_io_uring_setup, entries, &p);
	if (ring->fd < 0)
		return -errno;
	ring->entries = p.sq_entries;
	ring->shift = flags & IORING_SETUP_SQE128 ? 1 : 0;
	sq_size = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	ring->cq_shift = flags & IORING_SETUP_CQE32 ? 1 : 0;
	cq_size = p.cq_off.cqes + (p.cq_entries * sizeof(struct io_uring_cqe) <<
				   ring->cq_shift);
	ring->rings_size = sq_size > cq_size ? sq_size : cq_size;
	ring->sqes_size = p.sq_entries * sizeof(struct io_uring_sqe) <<
			  ring->shift;
	ring->rings = mmap(NULL, ring->rings_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, ring->fd,
			   IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, ring->sqes_size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, ring->fd,
			  IORING_OFF_SQES);
	if (ring->rings == MAP_FAILED || ring->sqes == MAP_FAILED)
		return -ENOMEM;
	ring->sq_tail = ring->rings + p.sq_off.tail;
	ring->sq_mask = ring->rings + p.sq_off.ring_mask;
	ring->sq_array = ring->rings + p.sq_off.array;
	ring->cq_head = ring->rings + p.cq_off.head;
	ring->cq_tail = ring->rings + p.cq_off.tail;
	ring->cq_mask = ring->rings + p.cq_off.ring_mask;
	ring->cqes = ring->rings + p.cq_off.cqes;
	return 0;
}

static inline int uring_init(struct uring *ring, unsigned int entries)
{
	return uring_init_flags(ring, entries, 0);
}

/* Where the kernel fails an allocation of the first munmap(), the mapping would stay, and
 * with it the ring.
 */
static inline void uring_unmap(void *start, size_t size)
{
	if (munmap(start, size))
		munmap(start, size);
}

static inline void uring_fini(struct uring *ring)
{
	uring_unmap(ring->sqes, ring->sqes_size);
	uring_unmap(ring->rings, ring->rings_size);
	close(ring->fd);
}

/* Returns an empty entry, to be filled in before uring_submit(). */
static inline struct io_uring_sqe *uring_sqe(struct uring *ring, __u8 opcode,
					     int fd, __u64 user_data)
{
	unsigned int tail = *ring->sq_tail + ring->queued++;
	unsigned int index = tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = &ring->sqes[index << ring->shift];

	ring->sq_array[index] = index;
	memset(sqe, 0, sizeof(*sqe) << ring->shift);
	sqe->opcode = opcode;
	sqe->fd = fd;
	sqe->user_data = user_data;
	return sqe;
}

/* Returns how many entries the kernel took, or -errno. */
static inline int uring_submit(struct uring *ring)
{
	unsigned int nr = ring->queued;
	int ret;

	__atomic_store_n(ring->sq_tail, *ring->sq_tail + nr, __ATOMIC_RELEASE);
	ring->queued = 0;
	ret = syscall(__NR_io_uring_enter, ring->fd, nr, 0, 0, NULL, 0);
	return ret < 0 ? -errno : ret;
}

/* Takes the next completion, if there is one. */
static inline bool uring_next(struct uring *ring, struct io_uring_cqe *cqe)
{
	unsigned int head = *ring->cq_head;

	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return false;
	memcpy(cqe, &ring->cqes[(head & *ring->cq_mask) << ring->cq_shift],
	       sizeof(*cqe));
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

/* Waits for the next completion within @ms: 0, or -ETIMEDOUT. */
static inline int uring_wait(struct uring *ring, struct io_uring_cqe *cqe,
			     int ms)
{
	struct pollfd pollfd = { .fd = ring->fd, .events = POLLIN };

	while (!uring_next(ring, cqe)) {
		/* Task work, if any, runs on the way out of the kernel. */
		if (poll(&pollfd, 1, ms) == 0)
			return uring_next(ring, cqe) ? 0 : -ETIMEDOUT;
	}
	return 0;
}

#endif /* TESTS_URING_H */
