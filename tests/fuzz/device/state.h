/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of a program's calls: queues, memory, the module's parameters. One for
 * the whole process; made anew before each program.
 */
#ifndef FUZZ_DEVICE_STATE_H
#define FUZZ_DEVICE_STATE_H

#include <stdbool.h>
#include <linux/expiry.h>

#include "../../device/files.h"
#include "../../device/uring.h"
#include "program.h"

#define PAGE		4096UL
#define REGION_PAGES	8		/* of each thread */
#define REGION		(REGION_PAGES * PAGE)
#define READ_ONLY_PAGE	(REGION_PAGES - 2)
#define HOLE_PAGE	(REGION_PAGES - 1)
#define IDS		16		/* remembered of a queue */
#define RING_ENTRIES	32

#define RECORD		sizeof(struct expiry_record)

/**
 * struct worker - a thread that makes calls
 * @number: 0 is the process's first thread
 * @ring: its own, made at first use
 * @has_ring: there is one
 * @setup: IORING_SETUP_* of the ring
 * @kept: an earlier program's ring, left empty
 * @flying: submitted to it and not seen completed
 * @ring_end: a pipe that hangs up when the ring is freed
 * @ending: the same of rings closed with requests in flight
 * @nr_ending: how many
 * @epoll: its own epoll instance, or -1
 * @fail_nth: the next call is to fail there, 0 = nowhere
 */
struct worker {
	unsigned int number;
	struct uring ring;
	bool has_ring;
	unsigned int setup;
	bool kept;
	unsigned int flying;
	int ring_end;
	int ending[CALLS_MAX];
	unsigned int nr_ending;
	int epoll;
	unsigned int fail_nth;
};

/**
 * struct state - the queues, memory and threads of a program
 * @fd: the queues, -1 where there is none
 * @mode: EXPIRY_MODE_* of each
 * @clock_id: of each
 * @ids: some present or former ids of each
 * @nr_ids: how many were ever remembered
 * @mine: all regions, always mapped, for the fuzzer's own use
 * @user: each thread's region as passed to the kernel
 * @memory_touched: @user was changed since it was made, by thread
 * @threads: of this program
 * @alone: one thread, and no request in flight writes to memory
 * @faults: allocations were made to fail
 * @closes: descriptors were closed, so numbers may be reused
 * @rings_closed: a ring was closed with requests in flight
 * @time_set: CLOCK_REALTIME was set
 * @offset_ns: how far CLOCK_REALTIME was set forward
 * @params_changed: the module's parameters were changed
 *
 * Pages of @user may be unmapped, as are those before and behind it.
 */
struct state {
	int fd[QUEUES];
	uint32_t mode[QUEUES];
	int clock_id[QUEUES];
	uint64_t ids[QUEUES][IDS];
	unsigned int nr_ids[QUEUES];
	uint8_t *mine;
	uint8_t *user[THREADS];
	bool memory_touched[THREADS];
	unsigned int threads;
	bool alone;
	bool faults;
	bool closes;
	bool rings_closed;
	bool time_set;
	int64_t offset_ns;
	bool params_changed;
	struct worker workers[THREADS];
};

extern struct state state;

/**
 * struct options - abilities of this machine
 * @device: path
 * @settime: its clock may be set, the module's parameters too
 * @fail: calls can fail by fault injection
 * @trace: print each call before it is made
 * @reclaim: a file whose writing reclaims memory, or NULL
 */
struct options {
	const char *device;
	bool settime;
	bool fail;
	bool trace;
	const char *reclaim;
};

extern struct options options;

/*
 * Queues' descriptors are these and above, all others below: the number of a
 * queue that another thread has just closed never is a ring's. A ring that reads
 * itself holds its own file, and io_uring frees it only with the process.
 */
#define QUEUE_FD_MIN	128

int queue_open(int flags);
void state_init(void);
void state_begin(const struct program_head *head, unsigned int threads);
void state_quiesce(void);
void state_end(void);
void ring_close(struct worker *worker);
void state_remap(unsigned int thread);
void state_unmap(void *page);
void params_set(uint8_t choice);

bool machine_reclaim_init(void);
bool machine_fail_init(void);

/* Returns a queue's fd for use; it may be closed at any time. */
static inline int queue_fd(unsigned int queue)
{
	return __atomic_load_n(&state.fd[queue], __ATOMIC_RELAXED);
}

#endif /* FUZZ_DEVICE_STATE_H */
