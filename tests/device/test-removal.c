// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The module is loaded and removed: never while a queue is held, and otherwise
 * after any use, with readers of its files and traces.
 *
 * EXPIRY_TEST_MODULE: the file of the loaded module, which may then be removed
 * and loaded again with its parameters. Skipped without.
 */
#include "device.h"
#include "files.h"
#include "uring.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LOADED		"/sys/module/expiry/initstate"
#define PARAMETERS	"/sys/module/expiry/parameters"
#define QUEUES		"/sys/kernel/debug/expiry/queues"
#define TRACING		"/sys/kernel/tracing/"
#define EVENTS		TRACING "events/expiry/enable"

#define ROUNDS		50		/* where another process tries to interfere */
#define FEW_ROUNDS	15

/* Runs before main(), like device_needed(). */
static void __attribute__((constructor)) module_needed(void)
{
	const char *path = getenv("EXPIRY_TEST_MODULE");

	if (path && *path && access(path, R_OK) == 0)
		return;
	if (!getenv("KSFT_TAP_LEVEL"))
		printf("TAP version 13\n");
	printf("1..0 # SKIP EXPIRY_TEST_MODULE names no module to remove\n");
	fflush(stdout);
	_exit(KSFT_SKIP);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "expiry", O_NONBLOCK) ? -errno : 0;
}

/* Unloads as soon as the last holder has released it; while @lock is held, if that is a
 * file.
 */
static int unload_soon_with(int lock)
{
	int ms, ret = -EAGAIN;

	for (ms = 0; ms < WAIT_MS && ret == -EAGAIN; ms++) {
		if (ms)
			sleep_ms(1);
		if (lock >= 0)
			MUST(lockf(lock, F_LOCK, 0) == 0);
		ret = unload();
		if (lock >= 0)
			MUST(lockf(lock, F_ULOCK, 0) == 0);
	}
	return ret;
}

static int unload_soon(void)
{
	return unload_soon_with(-1);
}

static int load(const char *parameters)
{
	int fd = open(getenv("EXPIRY_TEST_MODULE"), O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return ret;
}

static ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t ret;

	if (fd < 0)
		return -errno;
	ret = read(fd, text, size - 1);
	if (ret >= 0)
		text[ret] = '\0';
	close(fd);
	return ret;
}

/* The module's parameters for loading it again. */
static void get_parameters(char *text, size_t size)
{
	DIR *dir = opendir(PARAMETERS);
	char path[512], value[128];
	struct dirent *entry;
	size_t used = 0;

	*text = '\0';
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), PARAMETERS "/%s", entry->d_name);
		if (entry->d_name[0] == '.' ||
		    read_text(path, value, sizeof(value)) < 1)
			continue;
		value[strcspn(value, "\n")] = '\0';
		used += snprintf(text + used, size - used, "%s=%s ",
				 entry->d_name, value);
	}
	if (dir)
		closedir(dir);
}

FIXTURE(removal) {
	char parameters[1024];
};

FIXTURE_SETUP(removal)
{
	ASSERT_EQ(0, access(LOADED, F_OK));
	get_parameters(self->parameters, sizeof(self->parameters));
}

/* The next program needs it. */
FIXTURE_TEARDOWN(removal)
{
	if (access(LOADED, F_OK))
		EXPECT_EQ(0, load(self->parameters));
}

/* Uses that hold the module: by a child, until it is killed. */

static void hold_open(int fd)
{
	(void)fd;
}

static void hold_armed(int fd)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);

	MUST(request(fd, &record) == 0);
}

static void hold_poll(int fd)
{
	queue_poll(fd, -1);
}

static void hold_read(int fd)
{
	struct expiry_record record;

	receive(fd, &record, 1);
}

static void hold_by_ring(int fd, __u8 flags)
{
	struct expiry_record record;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;

	MUST(uring_init(&ring, 4) == 0);
	sqe = uring_sqe(&ring, IORING_OP_READ, fd, 1);
	sqe->addr = (__u64)(uintptr_t)&record;
	sqe->len = RECORD;
	sqe->off = -1;
	sqe->flags = flags;
	sqe = uring_sqe(&ring, IORING_OP_POLL_ADD, fd, 2);
	sqe->poll32_events = POLLIN;
	MUST(uring_submit(&ring) == 2);
	/* A submitted command holds it, too. */
	close(fd);
	uring_wait(&ring, &cqe, -1);
}

static void hold_ring_read(int fd)
{
	hold_by_ring(fd, 0);
}

static void hold_ring_worker(int fd)
{
	hold_by_ring(fd, IOSQE_ASYNC);
}

/* Batches by io_uring, without a pause. */
static void hold_ring_commands(int fd)
{
	static struct expiry_record records[8][1000];
	struct expiry_batch batch = { .count = 1000 };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	unsigned int i, j;

	MUST(uring_init(&ring, 8) == 0);
	for (;;) {
		for (i = 0; i < 8; i++) {
			for (j = 0; j < 1000; j++)
				records[i][j] = ask(EXPIRY_OP_QUERY, 1);
			batch.addr = (__u64)(uintptr_t)records[i];
			sqe = uring_sqe(&ring, IORING_OP_URING_CMD, fd, i);
			sqe->cmd_op = EXPIRY_IOC_SUBMIT;
			sqe->flags = IOSQE_ASYNC;
			memcpy(sqe->cmd, &batch, sizeof(batch));
		}
		MUST(uring_submit(&ring) == 8);
		for (i = 0; i < 8; i++)
			MUST(uring_wait(&ring, &cqe, -1) == 0);
	}
}

TEST_F(removal, not_while_a_queue_is_held)
{
	static void (*const holds[])(int fd) = {
		hold_open, hold_armed, hold_poll, hold_read, hold_ring_read,
		hold_ring_worker, hold_ring_commands,
	};
	unsigned int i, round;
	int ready[2], fd;
	char byte;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(holds); i++) {
		ASSERT_EQ(0, pipe(ready));
		pid = fork();
		if (!pid) {
			fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
			MUST(fd >= 0);
			MUST(write(ready[1], "", 1) == 1);
			holds[i](fd);
			pause();
		}
		ASSERT_EQ(1, read(ready[0], &byte, 1));
		for (round = 0; round < 20; round++) {
			EXPECT_EQ(-EAGAIN, unload());
			sleep_ms(5);
		}
		/* It existed all the time. */
		EXPECT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(-1, child_status(pid));
		ASSERT_EQ(0, unload_soon());
		EXPECT_EQ(-1, access(LOADED, F_OK));
		ASSERT_EQ(0, load(self->parameters));
		close(ready[0]);
		close(ready[1]);
	}
}

/* Shared with the process that opens repeatedly. */
struct tally {
	unsigned int opened;
	unsigned int refused;
	unsigned int other;		/* unexpected errors */
	bool stop;
};

static void open_for_ever(struct tally *tally)
{
	struct expiry_record record;
	int fd;

	while (!__atomic_load_n(&tally->stop, __ATOMIC_RELAXED)) {
		fd = queue_new(0);
		if (fd >= 0) {
			record = arm_in(1000 * (tally->opened % 100), 1);
			tally->other += request(fd, &record) != 0;
			tally->opened++;
			close(fd);
		} else if (fd == -ENOENT || fd == -ENODEV || fd == -ENXIO) {
			tally->refused++;
		} else {
			tally->other++;
		}
		sched_yield();
	}
	_exit(0);
}

static struct tally *tally_new(void)
{
	struct tally *tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return tally == MAP_FAILED ? NULL : tally;
}

TEST_F(removal, open_works_or_finds_nothing)
{
	struct tally *tally = tally_new();
	unsigned int round;
	pid_t pid;

	ASSERT_NE(NULL, tally);
	pid = fork();
	if (!pid)
		open_for_ever(tally);
	for (round = 0; round < ROUNDS; round++) {
		ASSERT_EQ(0, unload_soon());
		sched_yield();
		ASSERT_EQ(0, load(self->parameters));
		sleep_ms(round % 5);
	}
	tally->stop = true;
	EXPECT_EQ(0, child_status(pid));
	EXPECT_LT(0, tally->opened);
	EXPECT_EQ(0, tally->other);
}

TEST_F(removal, right_after_a_queue_is_closed)
{
	static const clockid_t clocks[] = {
		CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME,
	};
	struct expiry_record records[200];
	unsigned int round, i;
	int fd;

	for (round = 0; round < FEW_ROUNDS; round++) {
		fd = queue_new_flags(clocks[round % 3], 0, O_NONBLOCK);
		ASSERT_LE(0, fd);
		/* The interrupt is about to come, with work for it. */
		for (i = 0; i < ARRAY_SIZE(records); i++)
			records[i] = arm_in(round * 60000 + i * 5000, i);
		ASSERT_EQ(ARRAY_SIZE(records),
			  submit(fd, records, ARRAY_SIZE(records)));
		for (i = 0; i < ARRAY_SIZE(records); i += 2)
			records[i] = ask(EXPIRY_OP_CANCEL, records[i].id);
		for (i = 1; i < ARRAY_SIZE(records); i += 2)
			records[i] = ask(EXPIRY_OP_QUERY, records[i].id);
		submit(fd, records, ARRAY_SIZE(records));
		close(fd);
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load(self->parameters));
	}
}

/* Opens the list, but not while the module's removal begins (docs/kernels.md), and
 * reads it.
 */
static void read_list(int lock)
{
	char line[4096];
	int fd;

	MUST(lockf(lock, F_LOCK, 0) == 0);
	fd = open(QUEUES, O_RDONLY | O_CLOEXEC);
	MUST(lockf(lock, F_ULOCK, 0) == 0);
	if (fd < 0)
		return;
	while (read(fd, line, sizeof(line)) > 0)
		;
	close(fd);
}

TEST_F(removal, list_of_queues_is_read_or_gone)
{
	char line[4096];
	unsigned int round;
	int fd, lock;
	pid_t pid;

	fd = open(QUEUES, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		SKIP(return, QUEUES ": %s", strerror(errno));
	/* An open file of it holds the module, as with the device. */
	EXPECT_LT(0, read(fd, line, sizeof(line)));
	EXPECT_EQ(-EAGAIN, unload());
	EXPECT_EQ(0, lseek(fd, 0, SEEK_SET));
	EXPECT_LT(0, read(fd, line, sizeof(line)));
	close(fd);
	ASSERT_EQ(0, unload_soon());
	EXPECT_EQ(-1, access(QUEUES, F_OK));
	ASSERT_EQ(0, load(self->parameters));

	lock = memfd_create("removal", MFD_CLOEXEC);
	ASSERT_LE(0, lock);
	pid = fork();
	if (!pid) {
		for (;;) {
			read_list(lock);
			/* Otherwise it would be open all the time. */
			usleep(rand() % 500);
		}
	}
	for (round = 0; round < FEW_ROUNDS; round++) {
		ASSERT_EQ(0, unload_soon_with(lock));
		ASSERT_EQ(0, load(self->parameters));
	}
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(-1, child_status(pid));
	close(lock);
	EXPECT_LT(0, read_text(QUEUES, line, sizeof(line)));
}

TEST_F(removal, with_tracepoints_on)
{
	struct expiry_record record;
	char enabled[8], text[64];
	unsigned int round;
	int fd, trace;

	if (access(EVENTS, W_OK))
		SKIP(return, EVENTS ": %s", strerror(errno));
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(0, write_text(EVENTS, "1"));
		trace = open(TRACING "trace", O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, trace);
		fd = queue_new(0);
		ASSERT_LE(0, fd);
		record = arm_at(0, 1);
		ASSERT_EQ(0, request(fd, &record));
		ASSERT_EQ(1, receive_wait(fd, &record, 1));
		record = arm_in(HOUR_NS, 2);
		ASSERT_EQ(0, request(fd, &record));
		close(fd);
		ASSERT_EQ(0, unload_soon());
		EXPECT_EQ(-1, access(EVENTS, F_OK));
		/* Records of a removed module are readable or gone. */
		while (read(trace, text, sizeof(text)) > 0)
			;
		close(trace);
		ASSERT_EQ(0, load(self->parameters));
		ASSERT_LT(0, read_text(EVENTS, enabled, sizeof(enabled)));
		EXPECT_EQ('0', enabled[0]);
	}
}

/* Returns whether the kernel itself makes the device's file. */
static bool has_devtmpfs(void)
{
	FILE *file = fopen("/proc/mounts", "re");
	bool found = false;
	char line[1024];

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, " /dev devtmpfs ");
	if (file)
		fclose(file);
	return found;
}

TEST_F(removal, device_comes_with_it_for_owner_and_group_alone)
{
	struct stat st;

	if (!has_devtmpfs() || strcmp(device_path(), "/dev/expiry"))
		SKIP(return, "/dev is not the kernel's own");
	ASSERT_EQ(0, unload_soon());
	EXPECT_EQ(-1, stat("/dev/expiry", &st));
	EXPECT_EQ(ENOENT, errno);
	ASSERT_EQ(0, load(self->parameters));
	ASSERT_EQ(0, stat("/dev/expiry", &st));
	EXPECT_EQ(S_IFCHR | 0660, st.st_mode);
	EXPECT_EQ(0, st.st_uid);
}

TEST_F(removal, parameters_are_taken_and_kept)
{
	char value[32];

	ASSERT_EQ(0, unload_soon());
	ASSERT_EQ(0, load("queues_per_user=7 pageable=0"));
	ASSERT_LT(0, read_text(PARAMETERS "/queues_per_user", value,
			       sizeof(value)));
	EXPECT_EQ(0, strcmp("7\n", value));
	ASSERT_LT(0, read_text(PARAMETERS "/pageable", value, sizeof(value)));
	EXPECT_EQ(0, strcmp("N\n", value));
	ASSERT_EQ(0, unload_soon());
	EXPECT_EQ(-EINVAL, load("queues_per_user=many"));
	ASSERT_EQ(0, load(self->parameters));
}

TEST_HARNESS_MAIN
