// SPDX-License-Identifier: LGPL-2.1-or-later
/* poll and epoll: readable when an expiration can be read, and only then. */
#include "device.h"

#include <sys/epoll.h>

FIXTURE(poll) {
	int fd;
	int epfd;
};

FIXTURE_SETUP(poll)
{
	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
	self->epfd = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->epfd);
}

FIXTURE_TEARDOWN(poll)
{
	close(self->epfd);
	close(self->fd);
}

static int watch(int epfd, int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.u64 = 77 };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* The events of one wait; 0 when it timed out. */
static int wait_events(int epfd, int ms)
{
	struct epoll_event event = { 0 };
	int ret = epoll_wait(epfd, &event, 1, ms);

	return ret > 0 ? (int)event.events : ret;
}

TEST_F(poll, not_readable_before_the_deadline)
{
	struct expiry_record record = arm_in(50 * NSEC_PER_MSEC, 1);

	EXPECT_EQ(0, queue_poll(self->fd, 0));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(POLLIN, queue_poll(self->fd, WAIT_MS));
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	/* Level: it stays so until it is read. */
	EXPECT_EQ(POLLIN, queue_poll(self->fd, 0));
	ASSERT_EQ(1, receive(self->fd, &record, 1));
	EXPECT_EQ(0, queue_poll(self->fd, 0));
}

TEST_F(poll, waiter_is_woken_by_an_earlier_timer_of_another_process)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);
	pid_t pid;

	ASSERT_EQ(0, request(self->fd, &record));
	pid = fork();
	if (!pid)
		_exit(queue_poll(self->fd, WAIT_MS) == POLLIN ? 0 : 1);
	sleep_ms(50);
	record = arm_in(20 * NSEC_PER_MSEC, 2);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, child_status(pid));
}

TEST_F(poll, cancelled_timer_wakes_nobody)
{
	struct expiry_record record = arm_in(100 * NSEC_PER_MSEC, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	record = ask(EXPIRY_OP_CANCEL, record.id);
	if (request(self->fd, &record))
		SKIP(return, "too slow a machine: due before the cancel");
	EXPECT_EQ(0, queue_poll(self->fd, 100 + QUIET_MS));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(poll, cancel_of_a_due_timer_ends_readiness)
{
	struct expiry_record record = arm_in(0, 1);

	ASSERT_EQ(0, watch(self->epfd, self->fd, EPOLLIN));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(POLLIN, queue_poll(self->fd, WAIT_MS));
	record = ask(EXPIRY_OP_CANCEL, record.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, queue_poll(self->fd, 0));
	EXPECT_EQ(0, wait_events(self->epfd, 0));
}

TEST_F(poll, refresh_of_a_due_timer_ends_readiness)
{
	struct expiry_record record = arm_in(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(POLLIN, queue_poll(self->fd, WAIT_MS));
	record = ask(EXPIRY_OP_REFRESH, record.id);
	record.flags = EXPIRY_F_RELATIVE;
	record.deadline_ns = HOUR_NS;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, queue_poll(self->fd, 0));
}

TEST_F(poll, many_cancelled_due_timers_leave_no_readiness)
{
	enum { COUNT = 5000 };
	static struct expiry_record records[COUNT];
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		records[i] = arm_at(i + 1, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	for (i = 0; i < COUNT; i++)
		records[i] = ask(EXPIRY_OP_CANCEL, records[i].id);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	EXPECT_EQ(0, queue_poll(self->fd, QUIET_MS));
	EXPECT_EQ(-EAGAIN, receive(self->fd, records, 1));
}

TEST_F(poll, epoll_level_reports_until_read)
{
	struct expiry_record record = arm_in(20 * NSEC_PER_MSEC, 1);

	ASSERT_EQ(0, watch(self->epfd, self->fd, EPOLLIN));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(EPOLLIN, wait_events(self->epfd, WAIT_MS));
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	EXPECT_EQ(EPOLLIN, wait_events(self->epfd, 0));
	ASSERT_EQ(1, receive(self->fd, &record, 1));
	EXPECT_EQ(0, wait_events(self->epfd, 0));
}

TEST_F(poll, epoll_edge_reports_each_coming)
{
	struct expiry_record record;
	int i;

	ASSERT_EQ(0, watch(self->epfd, self->fd, EPOLLIN | EPOLLET));
	for (i = 0; i < 20; i++) {
		record = arm_in(i % 2 * 5 * NSEC_PER_MSEC, i);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(EPOLLIN, wait_events(self->epfd, WAIT_MS));
		EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
		/*
		 * Edge-triggered: no event repeats without a change. Arming and
		 * the timer may each have caused one.
		 */
		wait_events(self->epfd, 0);
		EXPECT_EQ(0, wait_events(self->epfd, 0));
		ASSERT_EQ(1, receive(self->fd, &record, 1));
		ASSERT_EQ(i, record.cookie);
		ASSERT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	}
}

TEST_F(poll, epoll_edge_misses_nothing_when_drained_each_time)
{
	enum { COUNT = 2000 };
	static struct expiry_record records[COUNT];
	unsigned int i, got = 0;
	int ret;

	ASSERT_EQ(0, watch(self->epfd, self->fd, EPOLLIN | EPOLLET));
	for (i = 0; i < COUNT; i++)
		records[i] = arm_in(i * 50000ULL, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	while (got < COUNT) {
		ASSERT_EQ(EPOLLIN, wait_events(self->epfd, WAIT_MS));
		for (;;) {
			ret = receive(self->fd, records, COUNT);
			if (ret == -EAGAIN)
				break;
			ASSERT_LT(0, ret);
			got += ret;
		}
	}
	EXPECT_EQ(COUNT, got);
}

TEST_F(poll, watch_added_after_the_deadline_sees_it)
{
	struct expiry_record record = arm_in(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	sleep_ms(20);
	ASSERT_EQ(0, watch(self->epfd, self->fd, EPOLLIN | EPOLLET));
	EXPECT_EQ(EPOLLIN, wait_events(self->epfd, WAIT_MS));
}

TEST_F(poll, oneshot_reports_once)
{
	struct expiry_record record = arm_in(0, 1);
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	ASSERT_EQ(0, watch(self->epfd, self->fd, EPOLLIN | EPOLLONESHOT));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(EPOLLIN, wait_events(self->epfd, WAIT_MS));
	EXPECT_EQ(0, wait_events(self->epfd, 0));
	ASSERT_EQ(0, epoll_ctl(self->epfd, EPOLL_CTL_MOD, self->fd, &event));
	EXPECT_EQ(EPOLLIN, wait_events(self->epfd, WAIT_MS));
}

TEST_HARNESS_MAIN
