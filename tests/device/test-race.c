// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Several processes use one queue at the same time: in any order, each timer
 * ends exactly once, by delivery or by cancel.
 */
#include "device.h"

#define WORKERS		4
#define ROUNDS		60
#define BATCH		50
#define TIMERS		(WORKERS * ROUNDS * BATCH)

/* Shared by all processes; entries change only by atomic operations. */
struct ledger {
	unsigned char ended[TIMERS];	/* times: delivered or cancelled */
	unsigned int total;		/* of these */
	unsigned int early;
	unsigned int bad;
};

FIXTURE(race) {
	int fd;
	struct ledger *ledger;
};

FIXTURE_VARIANT(race) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(race, plain) {
	.mode = 0,
};

FIXTURE_VARIANT_ADD(race, keyed) {
	.mode = EXPIRY_MODE_KEYED,
};

FIXTURE_VARIANT_ADD(race, keyed_ack) {
	.mode = EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

FIXTURE_SETUP(race)
{
	self->fd = queue_new(variant->mode);
	ASSERT_LE(0, self->fd);
	self->ledger = mmap(NULL, sizeof(*self->ledger),
			    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	ASSERT_NE(MAP_FAILED, self->ledger);
}

FIXTURE_TEARDOWN(race)
{
	munmap(self->ledger, sizeof(*self->ledger));
	close(self->fd);
}

static void add(unsigned int *counter, unsigned int n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static void end_timer(struct ledger *ledger, __u64 cookie)
{
	if (cookie >= TIMERS) {
		add(&ledger->bad, 1);
		return;
	}
	__atomic_fetch_add(&ledger->ended[cookie], 1, __ATOMIC_RELAXED);
	add(&ledger->total, 1);
}

/* Arms a batch, moves some of it, tries to cancel the odd ones. */
static void produce(int fd, __u32 mode, unsigned int worker,
		    struct ledger *ledger)
{
	struct expiry_record records[BATCH], moved;
	unsigned int round, i, base;

	for (round = 0; round < ROUNDS; round++) {
		base = (worker * ROUNDS + round) * BATCH;
		for (i = 0; i < BATCH; i++) {
			records[i] = arm_in(i % 7 * 100000, base + i);
			if (mode & EXPIRY_MODE_KEYED)
				records[i].id = base + i + 1;
		}
		if (submit(fd, records, BATCH) != BATCH)
			add(&ledger->bad, 1);
		for (i = 0; i < BATCH; i += 3) {
			moved = ask(EXPIRY_OP_REFRESH, records[i].id);
			moved.flags = EXPIRY_F_RELATIVE;
			moved.deadline_ns = i % 2 * 300000;
			request(fd, &moved);
		}
		for (i = 0; i < BATCH; i++)
			records[i] = ask(i % 2 ? EXPIRY_OP_CANCEL :
						 EXPIRY_OP_QUERY,
					 records[i].id);
		if (submit(fd, records, BATCH) != BATCH)
			add(&ledger->bad, 1);
		for (i = 0; i < BATCH; i++) {
			if (records[i].status && records[i].status != -ENOENT)
				add(&ledger->bad, 1);
			if (i % 2 && !records[i].status)
				end_timer(ledger, records[i].cookie);
		}
	}
}

static void consume(int fd, __u32 mode, struct ledger *ledger)
{
	struct expiry_record records[33];
	int i, ret;
	__u64 now;

	while (__atomic_load_n(&ledger->total, __ATOMIC_RELAXED) < TIMERS) {
		queue_poll(fd, 10);
		ret = receive(fd, records, ARRAY_SIZE(records));
		if (ret == -EAGAIN)
			continue;
		if (ret <= 0) {
			add(&ledger->bad, 1);
			return;
		}
		now = clock_ns(CLOCK_MONOTONIC);
		for (i = 0; i < ret; i++) {
			add(&ledger->early, records[i].deadline_ns > now);
			end_timer(ledger, records[i].cookie);
			records[i] = ask(EXPIRY_OP_ACK, records[i].id);
		}
		if (!(mode & EXPIRY_MODE_ACK))
			continue;
		if (submit(fd, records, ret) != ret)
			add(&ledger->bad, 1);
		for (i = 0; i < ret; i++)
			add(&ledger->bad, records[i].status != 0);
	}
}

TEST_F(race, producers_and_consumers)
{
	pid_t pids[WORKERS + 2];
	struct expiry_stat stat;
	unsigned int i, wrong = 0;

	for (i = 0; i < WORKERS + 2; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (pids[i])
			continue;
		if (i < WORKERS)
			produce(self->fd, variant->mode, i, self->ledger);
		else
			consume(self->fd, variant->mode, self->ledger);
		_exit(0);
	}
	for (i = 0; i < WORKERS + 2; i++)
		EXPECT_EQ(0, child_status(pids[i]));
	for (i = 0; i < TIMERS; i++)
		wrong += self->ledger->ended[i] != 1;
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, self->ledger->early);
	EXPECT_EQ(0, self->ledger->bad);
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(0, stat.armed);
	EXPECT_EQ(0, stat.unacked);
	EXPECT_EQ(TIMERS, stat.arms);
	EXPECT_EQ(TIMERS, stat.cancels + stat.delivered);
	EXPECT_EQ(0, queue_poll(self->fd, 0));
}

TEST_F(race, clear_rewind_and_scan_meanwhile)
{
	struct expiry_record clear, rows[64];
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)rows,
		.count = ARRAY_SIZE(rows),
	};
	struct expiry_stat stat;
	pid_t pids[WORKERS];
	unsigned int i, turns, bad = 0;
	int ret;

	for (i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (pids[i])
			continue;
		produce(self->fd, variant->mode, i, self->ledger);
		_exit(0);
	}
	for (turns = 0; turns < 300; turns++) {
		ret = receive(self->fd, rows, ARRAY_SIZE(rows));
		bad += ret < 0 && ret != -EAGAIN;
		bad += ioctl(self->fd, EXPIRY_IOC_SCAN, &scan) < 0;
		bad += queue_stat(self->fd, &stat) != 0;
		if (variant->mode & EXPIRY_MODE_ACK)
			bad += ioctl(self->fd, EXPIRY_IOC_REWIND) != 0;
		if (turns % 10 == 0) {
			clear = ask(EXPIRY_OP_CLEAR, 0);
			bad += request(self->fd, &clear) != 0;
		}
	}
	for (i = 0; i < WORKERS; i++)
		EXPECT_EQ(0, child_status(pids[i]));
	EXPECT_EQ(0, bad);
	EXPECT_EQ(0, self->ledger->bad);
	clear = ask(EXPIRY_OP_CLEAR, 0);
	ASSERT_EQ(0, request(self->fd, &clear));
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(0, stat.armed + stat.unacked);
	EXPECT_EQ(-EAGAIN, receive(self->fd, rows, 1));
}

TEST_HARNESS_MAIN
