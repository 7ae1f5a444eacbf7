// SPDX-License-Identifier: LGPL-2.1-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/ioctl.h>

#include "report.h"
#include "values.h"
#include "state.h"

struct state state;
struct options options = { .device = "/dev/expiry" };

static int memory_fd;
static int refcnt_before;	/* of the module: others' queues */

#define GONE_S		30	/* seconds until a ring or a queue is freed */
#define PARAMS		"/sys/module/expiry/parameters/"

/* Values of the module's parameters, by the head's byte; the first is the
 * former one.
 */
static const struct {
	const char *name;
	const char *value;
} params[] = {
	{ NULL, NULL },
	{ "pageable", "N" }, { "unpin_ms", "0" }, { "unpin_ms", "1" },
	{ "unpin_ms", "5" }, { "pin_max", "0" }, { "pin_max", "1" },
	{ "pin_max", "3" }, { "timers_default", "0" },
	{ "timers_default", "7" }, { "timers_max", "0" },
	{ "timers_max", "50" }, { "queues_per_user", "0" },
	{ "queues_per_user", "2" }, { "timers_max", "18446744073709551615" },
	{ "unpin_ms", "4294967295" }, { "scan_ms", "0" }, { "scan_ms", "1" },
};

static struct {
	const char *name;
	char value[32];
} params_before[] = {
	{ .name = "pageable" }, { .name = "unpin_ms" }, { .name = "pin_max" },
	{ .name = "timers_default" }, { .name = "timers_max" },
	{ .name = "queues_per_user" }, { .name = "scan_ms" },
};

static void params_read(void)
{
	char path[128];
	unsigned int i;
	ssize_t ret;
	int fd;

	for (i = 0; i < ARRAY_SIZE(params_before); i++) {
		snprintf(path, sizeof(path), PARAMS "%s", params_before[i].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		ret = fd < 0 ? -1 : read(fd, params_before[i].value,
					 sizeof(params_before[i].value) - 1);
		if (ret <= 0)
			params_before[i].name = NULL;
		close(fd);
	}
}

/* Changes one of the module's parameters; others may be using it right now. */
void params_set(uint8_t choice)
{
	char path[128];

	choice %= ARRAY_SIZE(params);
	if (!choice || !options.settime)
		return;
	snprintf(path, sizeof(path), PARAMS "%s", params[choice].name);
	__atomic_store_n(&state.params_changed, true, __ATOMIC_RELAXED);
	write_text(path, params[choice].value);
}

static void params_restore(void)
{
	char path[128];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(params_before); i++) {
		if (!params_before[i].name)
			continue;
		snprintf(path, sizeof(path), PARAMS "%s", params_before[i].name);
		write_text(path, params_before[i].value);
	}
	state.params_changed = false;
}

/* Returns the module's use count. */
static int module_refcnt(void)
{
	char text[16] = "";
	int fd = open("/sys/module/expiry/refcnt", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = 0;
	close(fd);
	return atoi(text);
}

/* No mapping is left, nor will other memory take its place. */
void state_unmap(void *page)
{
	mmap(page, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Maps all memory of a thread again, except the parts that are never mapped. */
void state_remap(unsigned int thread)
{
	uint8_t *user = state.user[thread];

	if (mmap(user, REGION, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 memory_fd, thread * REGION) == MAP_FAILED)
		die("mmap");
	mprotect(user + READ_ONLY_PAGE * PAGE, PAGE, PROT_READ);
	state_unmap(user + HOLE_PAGE * PAGE);
}

void state_init(void)
{
	size_t all = THREADS * REGION;
	uint8_t *users;
	unsigned int i;

	memory_fd = memfd_create("fuzz-device", MFD_CLOEXEC);
	if (memory_fd < 0 || ftruncate(memory_fd, all))
		die("memfd_create");
	state.mine = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED,
			  memory_fd, 0);
	/* An unmapped page around each region. */
	users = mmap(NULL, all + (THREADS + 1) * PAGE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (state.mine == MAP_FAILED || users == MAP_FAILED)
		die("mmap");
	for (i = 0; i < THREADS; i++) {
		state.user[i] = users + PAGE + i * (REGION + PAGE);
		state.workers[i].number = i;
		state.workers[i].epoll = -1;
		state_remap(i);
	}
	for (i = 0; i < QUEUES; i++)
		state.fd[i] = -1;
	params_read();
	refcnt_before = module_refcnt();
}

/**
 * queue_open - open the device, at QUEUE_FD_MIN or above
 *
 * Returns the descriptor, or -1 with errno set.
 */
int queue_open(int flags)
{
	int low = open(options.device, flags | O_CLOEXEC), fd, err;

	if (low < 0)
		return -1;
	fd = fcntl(low, F_DUPFD_CLOEXEC, QUEUE_FD_MIN);
	err = errno;
	close(low);
	errno = err;
	return fd;
}

static void queue_begin(unsigned int queue, const struct queue_head *head)
{
	struct expiry_config config = {
		.clock_id = clock_of(head->setup & SETUP_CLOCK),
		.mode = (head->setup & SETUP_ACK ? EXPIRY_MODE_ACK : 0) |
			(head->setup & SETUP_KEYED ? EXPIRY_MODE_KEYED : 0),
		.limit = limit_of(head->limit),
	};
	const struct call fill = { .when = head->fill, .more = 1 | 16 |
				   (head->limit & 8), .seed = head->limit };
	struct expiry_record *records = (void *)state.mine;
	struct expiry_batch batch = { .addr = (uintptr_t)state.user[0] };

	state.mode[queue] = config.mode;
	state.clock_id[queue] = config.clock_id;
	state.nr_ids[queue] = 0;
	memset(state.ids[queue], 0, sizeof(state.ids[queue]));
	if (head->setup & SETUP_CLOSED)
		return;
	state.fd[queue] = queue_open(O_RDWR | (head->setup & SETUP_BLOCKS ?
					       0 : O_NONBLOCK));
	if (state.fd[queue] < 0 || head->setup & SETUP_RAW)
		return;
	if (head->setup & SETUP_LAYOUT)
		ioctl(state.fd[queue], EXPIRY_IOC_LAYOUT,
		      head->limit & LIMIT_RADIX ? EXPIRY_LAYOUT_RADIX :
		      EXPIRY_LAYOUT_SUBTREE);
	if (ioctl(state.fd[queue], EXPIRY_IOC_CONFIG, &config))
		return;
	batch.count = count_of(head->fill) % (REGION / RECORD * 3 / 4);
	if (head->fill % 3 == 0 || !batch.count)
		return;
	records_fill(records, batch.count, queue, &fill);
	if (ioctl(state.fd[queue], EXPIRY_IOC_SUBMIT, &batch) <= 0)
		return;
	for (batch.flags = 0; batch.flags < IDS; batch.flags++)
		id_remember(queue, records[batch.flags % batch.count].id);
}

/**
 * state_begin - set everything up by a program's head
 * @head: the head
 * @threads: of the program
 */
void state_begin(const struct program_head *head, unsigned int threads)
{
	unsigned int i;

	state.threads = threads;
	state.alone = threads == 1;
	state.faults = false;
	state.closes = false;
	for (i = 0; i < THREADS; i++) {
		if (state.memory_touched[i])
			state_remap(i);
		state.memory_touched[i] = false;
	}
	params_set(head->params);
	for (i = 0; i < QUEUES; i++)
		queue_begin(i, &head->queues[i]);
}

static void time_restore(void)
{
	clock_move(-state.offset_ns);
	state.offset_ns = 0;
	state.time_set = false;
}

/*
 * Closes a worker's ring. The kernel cancels and frees requests in flight only
 * later, and uses queues and memory until then.
 */
void ring_close(struct worker *worker)
{
	uring_fini(&worker->ring);
	worker->has_ring = false;
	if (worker->flying) {
		state.rings_closed = true;
		worker->ending[worker->nr_ending++] = worker->ring_end;
	} else {
		close(worker->ring_end);
	}
	worker->flying = 0;
}

/* Waits until the kernel has freed a ring, whose pipe hangs up then. */
static void wait_until_freed(int ring_end)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + GONE_S * NSEC_PER_SEC;
	struct pollfd pollfd = { .fd = ring_end };

	/* Signals interrupt it. */
	while (poll(&pollfd, 1, 1000) <= 0 &&
	       clock_ns(CLOCK_MONOTONIC) < end_ns)
		;
	if (!pollfd.revents)
		finding("a ring is still there half a minute after its end");
	close(ring_end);
}

/**
 * state_quiesce - end the rings' remaining work, after the threads
 *
 * From here on only the caller uses the queues.
 */
void state_quiesce(void)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		struct worker *worker = &state.workers[i];

		if (worker->has_ring && worker->flying)
			ring_close(worker);
		while (worker->nr_ending)
			wait_until_freed(worker->ending[--worker->nr_ending]);
	}
}

/* The kernel may defer the last use of a queue by a ring. */
static void wait_until_unused(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < GONE_S * 1000 && module_refcnt() > refcnt_before; i++)
		nanosleep(&ms, NULL);
	if (module_refcnt() > refcnt_before)
		finding("queues are still there half a minute after their program");
}

/**
 * state_end - close everything but idle rings, and undo all changes
 */
void state_end(void)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		struct worker *worker = &state.workers[i];

		if (worker->epoll >= 0)
			close(worker->epoll);
		worker->epoll = -1;
		worker->fail_nth = 0;
		worker->kept = worker->has_ring;
		worker->ring.queued = 0;
	}
	for (i = 0; i < QUEUES; i++) {
		if (state.fd[i] >= 0)
			close(state.fd[i]);
		state.fd[i] = -1;
	}
	if (state.rings_closed)
		wait_until_unused();
	state.rings_closed = false;
	if (state.params_changed)
		params_restore();
	if (state.time_set)
		time_restore();
}
