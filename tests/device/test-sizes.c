// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The structs of the commands may grow. Each is tried with every size, as from
 * an older and from a newer program, and with each kind of bytes behind what the
 * kernel knows. Then the bits that FEATURES names are those that are taken.
 */
#include <stddef.h>

#include "device.h"
#include "uring.h"

#define ROOM		1024U
#define MORE		96U	/* larger by that much at most, and by ROOM */

enum tail { TAIL_ZERO, TAIL_FIRST, TAIL_LAST, TAILS };

/* @least: bytes that a caller must have; @is_input: the kernel reads it */
struct command {
	const char *name;
	unsigned long cmd;
	size_t size;
	size_t least;
	bool is_input;
};

static const struct command commands[] = {
	{ "config", EXPIRY_IOC_CONFIG, sizeof(struct expiry_config),
	  offsetof(struct expiry_config, slack_ns), true },
	{ "batch", EXPIRY_IOC_SUBMIT, sizeof(struct expiry_batch),
	  offsetof(struct expiry_batch, flags), true },
	{ "scan", EXPIRY_IOC_SCAN, sizeof(struct expiry_scan),
	  sizeof(struct expiry_scan), true },
	{ "stat", EXPIRY_IOC_STAT, sizeof(struct expiry_stat),
	  offsetof(struct expiry_stat, armed), false },
	{ "info", EXPIRY_IOC_FEATURES, sizeof(struct expiry_features),
	  offsetof(struct expiry_features, features), false },
};

static unsigned long with_size(unsigned long cmd, size_t size)
{
	return _IOC(_IOC_DIR(cmd), EXPIRY_IOC_MAGIC, _IOC_NR(cmd), size);
}

/* Returns 0 or -errno, by the rules. */
static int expected(const struct command *command, size_t size, enum tail tail)
{
	if (size < command->least)
		return -EINVAL;
	if (command->is_input && size > command->size && tail != TAIL_ZERO)
		return -E2BIG;
	return 0;
}

/*
 * Fills in a valid struct. What is behind @size is not the kernel's to read: it
 * is full of ones, as are the fields that an older program does not have.
 */
static void fill(const struct command *command, unsigned char *bytes,
		 size_t size, enum tail tail, struct expiry_record *record)
{
	struct expiry_config config = { .clock_id = CLOCK_REALTIME,
					.limit = 7,
					.flags = EXPIRY_CONFIG_CLOCK_SET };
	struct expiry_batch batch = { .addr = (uintptr_t)record, .count = 1 };
	struct expiry_scan scan = { .addr = (uintptr_t)record, .count = 1 };

	memset(bytes, 0, ROOM);
	if (command->cmd == EXPIRY_IOC_CONFIG)
		memcpy(bytes, &config, sizeof(config));
	else if (command->cmd == EXPIRY_IOC_SUBMIT)
		memcpy(bytes, &batch, sizeof(batch));
	else if (command->cmd == EXPIRY_IOC_SCAN)
		memcpy(bytes, &scan, sizeof(scan));
	else
		memset(bytes, 0xff, ROOM);
	if (size > command->size && tail == TAIL_FIRST)
		bytes[command->size] = 1;
	if (size > command->size && tail == TAIL_LAST)
		bytes[size - 1] = 0x80;
	memset(bytes + size, 0xff, ROOM - size);
}

static size_t next_size(const struct command *command, size_t size)
{
	return size == command->size + MORE ? ROOM : size + 1;
}

static void try_size(struct __test_metadata *_metadata,
		     const struct command *command, size_t size, enum tail tail)
{
	size_t both = size < command->size ? size : command->size, i;
	unsigned char bytes[ROOM], before[ROOM], full[ROOM];
	bool configures = command->cmd == EXPIRY_IOC_CONFIG;
	struct expiry_record record = arm_in(HOUR_NS, 1);
	struct expiry_stat stat;
	int fd = queue_open(O_NONBLOCK), ret, wrong = 0;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, configures ? 0 : queue_config(fd, CLOCK_BOOTTIME, 0, 0));
	memset(full, 0xff, ROOM);
	ASSERT_EQ(0, command->is_input ? 0 : ioctl(fd, command->cmd, full));
	fill(command, bytes, size, tail, &record);
	memcpy(before, bytes, ROOM);

	ret = ioctl(fd, with_size(command->cmd, size), bytes) < 0 ? -errno : 0;
	ASSERT_EQ(expected(command, size, tail), ret)
		TH_LOG("%s, size %zu, tail %d", command->name, size, tail);
	/* Nothing is written behind it; nothing at all where it is refused. */
	EXPECT_EQ(0, memcmp(bytes + size, before + size, ROOM - size));
	EXPECT_EQ(0, ret ? memcmp(bytes, before, size) : 0);
	if (command->cmd == EXPIRY_IOC_SUBMIT)
		EXPECT_EQ(!ret, queue_armed(fd));
	if (ret)
		goto out;
	for (i = command->size; !command->is_input && i < size; i++)
		wrong += bytes[i] != 0;
	EXPECT_EQ(0, wrong);
	if (command->cmd == EXPIRY_IOC_FEATURES)
		EXPECT_EQ(0, memcmp(bytes, full, both));
	if (configures) {
		ASSERT_EQ(0, queue_stat(fd, &stat));
		EXPECT_EQ(size > offsetof(struct expiry_config, limit),
			  stat.limit == 7);
	}
out:
	close(fd);
}

TEST(every_size_with_every_tail)
{
	const struct command *command;
	enum tail tail;
	size_t size;

	for (command = commands; command < commands + ARRAY_SIZE(commands);
	     command++)
		for (size = 0; size <= ROOM; size = next_size(command, size))
			for (tail = 0; tail < TAILS; tail++)
				try_size(_metadata, command, size, tail);
}

TEST(tail_in_memory_that_is_not_there)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct command *command;
	int fd = queue_new(0);

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, mprotect(pages + page, page, PROT_NONE));
	ASSERT_LE(0, fd);
	for (command = commands; command < commands + ARRAY_SIZE(commands);
	     command++) {
		EXPECT_EQ(-1, ioctl(fd, with_size(command->cmd,
						  command->size + 8),
				    pages + page - command->size));
		EXPECT_EQ(EFAULT, errno);
	}
	close(fd);
	munmap(pages, 2 * page);
}

/* A batch in an SQE has 16 bytes, with SQE128 80. */
TEST(every_size_by_io_uring)
{
	unsigned char bytes[ROOM];
	struct expiry_record record;
	const struct command *command = &commands[1];
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	unsigned int wide, room;
	enum tail tail;
	size_t size;
	int fd, ret;

	for (wide = 0; wide < 2; wide++) {
		room = wide ? 80 : 16;
		if (uring_init_flags(&ring, 4, wide ? IORING_SETUP_SQE128 : 0))
			SKIP(return, "no io_uring");
		for (size = 0; size <= 128; size++)
			for (tail = 0; tail < TAILS; tail++) {
				fd = queue_new(0);
				ASSERT_LE(0, fd);
				record = arm_in(HOUR_NS, 1);
				fill(command, bytes, size, tail, &record);
				sqe = uring_sqe(&ring, IORING_OP_URING_CMD, fd,
						1);
				sqe->cmd_op = with_size(command->cmd, size);
				memcpy(sqe->cmd, bytes, room);
				ASSERT_EQ(1, uring_submit(&ring));
				ASSERT_EQ(0, uring_wait(&ring, &cqe, WAIT_MS));
				ret = size > room ? -EINVAL :
				      expected(command, size, tail);
				ASSERT_EQ(ret ?: 1, cqe.res)
					TH_LOG("wide %u, size %zu, tail %d",
					       wide, size, tail);
				EXPECT_EQ(!ret, queue_armed(fd));
				close(fd);
			}
		uring_fini(&ring);
	}
}

/* Each bit that FEATURES names is taken, each other is refused. */
TEST(features_names_what_is_taken)
{
	struct expiry_config config;
	struct expiry_record record;
	struct expiry_features info;
	unsigned int bit;
	int fd, ret;

	fd = queue_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, EXPIRY_IOC_FEATURES, &info));
	EXPECT_EQ(EXPIRY_ABI, info.abi);
	EXPECT_EQ(EXPIRY_BATCH_MAX, info.batch_max);
	EXPECT_EQ(sizeof(struct expiry_config), info.config_size);
	EXPECT_EQ(sizeof(struct expiry_batch), info.batch_size);
	EXPECT_EQ(sizeof(struct expiry_scan), info.scan_size);
	EXPECT_EQ(sizeof(struct expiry_stat), info.stat_size);
	EXPECT_LE(info.limit_default, info.limit_max);
	for (bit = 0; bit < 32; bit++) {
		ret = ioctl(fd, EXPIRY_IOC_LAYOUT, bit) ? errno : 0;
		EXPECT_EQ(info.layouts >> bit & 1 ? 0 : EINVAL, ret);
	}
	close(fd);
	for (bit = 0; bit < 96; bit++) {
		config = (struct expiry_config) { .clock_id = CLOCK_REALTIME };
		if (bit < 32)
			config.clock_id = bit;
		else if (bit < 64)
			config.mode = 1U << (bit - 32);
		else
			config.flags = 1U << (bit - 64);
		fd = queue_open(O_NONBLOCK);
		ret = ioctl(fd, EXPIRY_IOC_CONFIG, &config) ? errno : 0;
		EXPECT_EQ(!(bit < 32 ? info.clocks >> bit & 1 :
			    bit < 64 ? info.modes >> (bit - 32) & 1 :
				       info.config_flags >> (bit - 64) & 1),
			  !!ret);
		close(fd);
	}
	fd = queue_new(EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK);
	ASSERT_LE(0, fd);
	for (bit = 0; bit < 32; bit++) {
		record = (struct expiry_record) { .op = bit, .id = 1 };
		ret = request(fd, &record);
		EXPECT_EQ(!(info.ops >> bit & 1), ret == -EOPNOTSUPP);
	}
	for (bit = 0; bit < 8; bit++) {
		record = arm_at(HOUR_NS, 1);
		record.id = 100 + bit;
		record.period_ms = 1000;
		record.flags = 1U << bit;
		EXPECT_EQ(info.record_flags >> bit & 1 ? 0 : -EINVAL,
			  request(fd, &record));
	}
	for (bit = 0; bit < 16; bit++) {
		record = arm_at(HOUR_NS, 1);
		record.id = 200 + bit;
		record.status = 1U << bit;
		EXPECT_EQ(1, submit(fd, &record, 1));
		EXPECT_EQ(-EINVAL, record.status);
	}
	close(fd);
}

/* Changing a queue takes a descriptor for writing, looking at it one for reading. */
TEST(each_command_with_each_mode_of_the_file)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };
	struct expiry_config config = { .clock_id = CLOCK_MONOTONIC };
	struct expiry_record record = arm_in(HOUR_NS, 1), expired;
	struct expiry_batch batch = { .addr = (uintptr_t)&record, .count = 1 };
	struct expiry_scan scan = { .addr = (uintptr_t)&expired, .count = 1 };
	struct expiry_features info;
	struct expiry_stat stat;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	unsigned int i;
	int fd;

#define DOES(can, want, call) do { \
		int ret_ = (call) < 0 ? errno : 0; \
		EXPECT_EQ((can) ? (want) : EBADF, ret_) \
			TH_LOG("mode %d: %s", modes[i], #call); \
	} while (0)

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		bool writes = modes[i] != O_RDONLY, reads = modes[i] != O_WRONLY;
		/* A queue that can be read only has nothing to look at. */
		int look = writes ? 0 : ENOTCONN;

		fd = open(device_path(), modes[i] | O_CLOEXEC | O_NONBLOCK);
		ASSERT_LE(0, fd);
		DOES(true, 0, ioctl(fd, EXPIRY_IOC_FEATURES, &info));
		DOES(writes, 0, ioctl(fd, EXPIRY_IOC_LAYOUT,
				      EXPIRY_LAYOUT_SORTED));
		DOES(writes, 0, ioctl(fd, EXPIRY_IOC_CONFIG, &config));
		DOES(writes, 0, ioctl(fd, EXPIRY_IOC_SUBMIT, &batch));
		DOES(writes, EINVAL, ioctl(fd, EXPIRY_IOC_REWIND));
		DOES(reads, look, ioctl(fd, EXPIRY_IOC_STAT, &stat));
		DOES(reads, look, ioctl(fd, EXPIRY_IOC_SCAN, &scan));
		DOES(reads, writes ? EAGAIN : ENOTCONN,
		     read(fd, &expired, sizeof(expired)));
		if (!uring_init_flags(&ring, 4, 0)) {
			record = arm_in(HOUR_NS, 1);
			sqe = uring_sqe(&ring, IORING_OP_URING_CMD, fd, 1);
			sqe->cmd_op = EXPIRY_IOC_SUBMIT;
			memcpy(sqe->cmd, &batch, sizeof(batch));
			ASSERT_EQ(1, uring_submit(&ring));
			ASSERT_EQ(0, uring_wait(&ring, &cqe, WAIT_MS));
			EXPECT_EQ(writes ? 1 : -EBADF, cqe.res);
			uring_fini(&ring);
		}
		close(fd);
	}
#undef DOES
}

TEST_HARNESS_MAIN
