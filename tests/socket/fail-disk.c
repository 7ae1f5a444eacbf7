// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by disk_faults.py: lets calls about the journal's files
 * fail, by rules in a file that both have mapped, EXPIRY_FAIL_DISK.
 *
 * A commit on io_uring does not pass the C library. It is changed before it is
 * submitted: into a write to /dev/full, which has no space, or to address 0 of
 * /proc/self/mem, which is an I/O error. So the kernel itself answers with the error,
 * and severs the link to the request behind it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/socket/shared-map.h"

#define ALIGN	4096U
#define RULES	4
#define FILES	1024
#define DELAY	(1U << 20)

/* As in disk_faults.py. */
enum call {
	CALL_WRITE, CALL_SYNC, CALL_OPEN, CALL_RENAME, CALL_UNLINK,
	CALL_SYNC_NAMES, CALL_READ, CALL_LIST, CALLS,
};

/* Calls number @first to @last fail with @error; 0: they are cut short; from DELAY on:
 * they take that many milliseconds more.
 */
struct rule {
	_Atomic uint64_t call;
	_Atomic uint64_t first;
	_Atomic uint64_t last;
	_Atomic uint64_t error;
};

static struct {
	_Atomic uint64_t nr[CALLS];
	struct rule rules[RULES];
} *map, none;

static _Atomic bool is_journal[FILES];
static int full_fd = -1, fault_fd = -1, busy_fd = -1;

static int (*real_openat)(int folder, const char *name, int flags, ...);
static int (*real_close)(int fd);
static ssize_t (*real_pwrite)(int fd, const void *data, size_t len, off_t at);
static ssize_t (*real_pread)(int fd, void *data, size_t len, off_t at);
static int (*real_fdatasync)(int fd);
static int (*real_fsync)(int fd);
static int (*real_renameat)(int folder, const char *from, int to_folder,
			    const char *to);
static int (*real_unlinkat)(int folder, const char *name, int flags);
static int (*real_submit)(struct io_uring *ring);
static int (*real_submit_and_wait)(struct io_uring *ring, unsigned int nr);
static int (*real_submit_and_get_events)(struct io_uring *ring);

/* Waits as long as the rule says, or until it is lifted. */
static void wait_by(const struct rule *rule, uint64_t number)
{
	uint64_t steps = (rule->error - DELAY) / 10;

	usleep((rule->error - DELAY) % 10 * 1000);
	while (steps-- && number <= rule->last)
		usleep(10 * 1000);
}

/* Counts a call. Returns the error that it fails with: 0 = a part of it is done,
 * -1 = it does not fail.
 */
static int fault_of(enum call call)
{
	uint64_t number = atomic_fetch_add(&map->nr[call], 1) + 1;
	const struct rule *rule;

	for (rule = map->rules; rule < map->rules + RULES; rule++)
		if (rule->call == call && number >= rule->first &&
		    number <= rule->last) {
			if (rule->error < DELAY)
				return rule->error;
			wait_by(rule, number);
		}
	return -1;
}

/* Likewise; returns whether it fails, with errno. */
static bool fails(enum call call)
{
	int error = fault_of(call);

	if (error < 0)
		return false;
	errno = error ? error : EIO;
	return true;
}

static bool is_file(int fd)
{
	return fd >= 0 && fd < FILES && is_journal[fd];
}

/* ---------------------------------------------------------------------- calls */

int openat(int folder, const char *name, int flags, ...)
{
	bool journal = !strncmp(name, "journal-", 8) ||
		       !strncmp(name, "checkpoint-", 11);
	mode_t mode = 0;
	va_list args;
	int fd;

	va_start(args, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(args, mode_t);
	va_end(args);
	if ((journal && fails(CALL_OPEN)) ||
	    (!strcmp(name, ".") && (flags & O_TMPFILE) != O_TMPFILE &&
	     fails(CALL_LIST)))
		return -1;
	fd = real_openat(folder, name, flags, mode);
	if (fd >= 0 && fd < FILES)
		is_journal[fd] = journal;
	return fd;
}

int close(int fd)
{
	if (is_file(fd))
		is_journal[fd] = false;
	return real_close(fd);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	int error = is_file(fd) ? fault_of(CALL_WRITE) : -1;

	if (error > 0) {
		errno = error;
		return -1;
	}
	if (!error && len > ALIGN)
		len = len / 2 / ALIGN * ALIGN;
	return real_pwrite(fd, data, len, at);
}

ssize_t pread(int fd, void *data, size_t len, off_t at)
{
	return is_file(fd) && fails(CALL_READ) ? -1 :
	       real_pread(fd, data, len, at);
}

int fdatasync(int fd)
{
	return is_file(fd) && fails(CALL_SYNC) ? -1 : real_fdatasync(fd);
}

/* The daemon has no other use for it than names. */
int fsync(int fd)
{
	return fails(CALL_SYNC_NAMES) ? -1 : real_fsync(fd);
}

int renameat(int folder, const char *from, int to_folder, const char *to)
{
	return fails(CALL_RENAME) ? -1 :
	       real_renameat(folder, from, to_folder, to);
}

int unlinkat(int folder, const char *name, int flags)
{
	return fails(CALL_UNLINK) ? -1 : real_unlinkat(folder, name, flags);
}

/* ----------------------------------------------------------------------- ring */

/* Changes a request into one that fails with @error. A write has carried out its first
 * @len bytes then.
 */
static void spoil(struct io_uring_sqe *sqe, int error, uint32_t len)
{
	static const char byte;
	uint8_t flags = sqe->flags;
	uint64_t data = sqe->user_data;

	if (len)
		(void)!real_pwrite(sqe->fd, (void *)(uintptr_t)sqe->addr, len,
				   sqe->off);
	/* The kernel must know it for short, to sever the link. */
	if (error == EAGAIN)
		io_uring_prep_send(sqe, busy_fd, &byte, 1, MSG_DONTWAIT);
	else
		io_uring_prep_write(sqe, error == ENOSPC ? full_fd : fault_fd,
				    &byte, 1, 0);
	sqe->flags = flags;
	sqe->user_data = data;
}

/* A write may fail, or be cut short. A write that flushes may do so when all is written. */
static void look_at_write(struct io_uring_sqe *sqe)
{
	int error = fault_of(CALL_WRITE);

	if (error >= 0) {
		spoil(sqe, error, error ? 0 : sqe->len / 2 / ALIGN * ALIGN);
	} else if (sqe->rw_flags == RWF_DSYNC) {
		error = fault_of(CALL_SYNC);
		if (error >= 0)
			spoil(sqe, error, sqe->len);
	}
}

static void look_at_sync(struct io_uring_sqe *sqe)
{
	int error = fault_of(CALL_SYNC);

	if (error >= 0)
		spoil(sqe, error, 0);
}

static void look(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	unsigned int i;

	for (i = sq->sqe_head; i != sq->sqe_tail; i++) {
		struct io_uring_sqe *sqe = &sq->sqes[i & sq->ring_mask];

		if (!is_file(sqe->fd))
			continue;
		if (sqe->opcode == IORING_OP_WRITE)
			look_at_write(sqe);
		else if (sqe->opcode == IORING_OP_FSYNC)
			look_at_sync(sqe);
	}
}

int io_uring_submit(struct io_uring *ring)
{
	look(ring);
	return real_submit(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr)
{
	look(ring);
	return real_submit_and_wait(ring, nr);
}

int io_uring_submit_and_get_events(struct io_uring *ring)
{
	look(ring);
	return real_submit_and_get_events(ring);
}

/* ------------------------------------------------------------------ beginning */

static void *next(const char *name)
{
	void *call = dlsym(RTLD_NEXT, name);

	if (!call)
		abort();
	return call;
}

/* Returns a socket that takes no more, or -1. */
static int make_busy_socket(void)
{
	static const char bytes[4096];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	while (send(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return ends[1];
}

__attribute__((constructor))
static void begin(void)
{
	real_openat = next("openat");
	real_close = next("close");
	real_pwrite = next("pwrite");
	real_pread = next("pread");
	real_fdatasync = next("fdatasync");
	real_fsync = next("fsync");
	real_renameat = next("renameat");
	real_unlinkat = next("unlinkat");
	/* The program that hands descriptors over has no ring. */
	real_submit = dlsym(RTLD_NEXT, "io_uring_submit");
	real_submit_and_wait = dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
	real_submit_and_get_events =
		dlsym(RTLD_NEXT, "io_uring_submit_and_get_events");
	map = shared_map("EXPIRY_FAIL_DISK", sizeof(*map));
	if (!map) {
		map = (void *)&none;
		return;
	}
	full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	fault_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	busy_fd = make_busy_socket();
	if (full_fd < 0 || fault_fd < 0 || busy_fd < 0)
		abort();
}
