// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Views of queues from outside: fdinfo, the list of all of them in debugfs,
 * tracepoints.
 */
#include "device.h"
#include "files.h"

#include <pthread.h>
#include <sys/epoll.h>

#define QUEUES	"/sys/kernel/debug/expiry/queues"
#define TRACING	"/sys/kernel/tracing/"

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text));
	close(fd);
	return ret == (ssize_t)strlen(text) ? 0 : -EIO;
}

/* Returns the first line of @path with @what in it, and the rest of that line.
 */
static const char *find_line(const char *path, const char *what)
{
	static char line[1024];
	FILE *file = fopen(path, "re");
	const char *found = NULL;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, what);
	if (file)
		fclose(file);
	return found ? found + strlen(what) : NULL;
}

FIXTURE(seen) {
	int fd;
	unsigned int serial;
};

FIXTURE_SETUP(seen)
{
	self->fd = queue_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->serial = fdinfo_number(self->fd, "expiry-queue:");
	ASSERT_LT(0, self->serial);
}

FIXTURE_TEARDOWN(seen)
{
	close(self->fd);
}

TEST_F(seen, fdinfo_tells_what_is_armed)
{
	struct expiry_record records[3] = {
		arm_in(HOUR_NS, 1), arm_in(HOUR_NS, 2), arm_in(0, 3),
	};

	EXPECT_EQ(-1, fdinfo_number(self->fd, "armed:"));
	ASSERT_EQ(0, queue_config(self->fd, CLOCK_BOOTTIME, 0, 77));
	ASSERT_EQ(3, submit(self->fd, records, 3));
	ASSERT_EQ(1, receive_wait(self->fd, records, 1));
	EXPECT_EQ(2, fdinfo_number(self->fd, "armed:"));
	EXPECT_EQ(77, fdinfo_number(self->fd, "limit:"));
	EXPECT_EQ(1, fdinfo_number(self->fd, "delivered:"));
}

TEST_F(seen, list_of_all_queues_has_it_as_long_as_it_is_open)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);
	char start[32], line[256];
	const char *rest;

	if (access(QUEUES, R_OK))
		SKIP(return, "no " QUEUES);
	snprintf(start, sizeof(start), "%u %u ", self->serial, getuid());
	rest = find_line(QUEUES, start);
	ASSERT_NE(NULL, rest);
	EXPECT_EQ(0, strncmp(rest, "- - -", 5));

	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, EXPIRY_MODE_ACK,
				  0));
	ASSERT_EQ(0, request(self->fd, &record));
	rest = find_line(QUEUES, start);
	ASSERT_NE(NULL, rest);
	snprintf(line, sizeof(line), "%s", rest);
	EXPECT_EQ(0, strncmp(line, "monotonic plain,ack sorted 1 0 1 ", 33))
		TH_LOG("%s", line);

	close(self->fd);
	EXPECT_EQ(NULL, find_line(QUEUES, start));
}

/* Of each clock that this kernel and this caller can have. */
TEST_F(seen, clocks_have_their_names)
{
	static const struct {
		clockid_t clock;
		const char *name;
	} clocks[] = {
		{ CLOCK_REALTIME, "realtime" },
		{ CLOCK_MONOTONIC, "monotonic" },
		{ CLOCK_BOOTTIME, "boottime" },
		{ CLOCK_BOOTTIME_ALARM, "boottime-alarm" },
	};
	char what[64], wanted[64];
	const char *rest;
	unsigned int i;
	int fd;

	if (write_file(TRACING "events/expiry/expiry_config/enable", "1"))
		SKIP(return, "no " TRACING);
	EXPECT_EQ(0, write_file(TRACING "trace", ""));
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		fd = queue_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		if (queue_config(fd, clocks[i].clock, 0, 0)) {
			EXPECT_EQ(CLOCK_BOOTTIME_ALARM, clocks[i].clock);
			close(fd);
			continue;
		}
		snprintf(what, sizeof(what), "expiry_config: queue=%lld ",
			 fdinfo_number(fd, "expiry-queue:"));
		snprintf(wanted, sizeof(wanted), "clock=%s ", clocks[i].name);
		rest = find_line(TRACING "trace", what);
		ASSERT_NE(NULL, rest);
		EXPECT_NE(NULL, strstr(rest, wanted))
			TH_LOG("%s", rest);
		close(fd);
	}
	EXPECT_EQ(0, write_file(TRACING "events/expiry/expiry_config/enable", "0"));
}

TEST_F(seen, tracepoints_follow_a_timer)
{
	static const char *const events[] = {
		"expiry_config", "expiry_submit", "expiry_fire",
		"expiry_deliver", "expiry_sweep",
	};
	enum { COUNT = 4096, TRIES = 500 };
	struct expiry_record *records = calloc(COUNT, RECORD);
	unsigned int i;
	char what[64];

	ASSERT_NE(NULL, records);
	if (write_file(TRACING "events/expiry/enable", "1"))
		SKIP(return, "no " TRACING);
	EXPECT_EQ(0, write_file(TRACING "trace", ""));

	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
	/* Where a slow machine is past the deadline at once no alarm is set. */
	snprintf(what, sizeof(what), "expiry_fire: queue=%u ", self->serial);
	for (i = 0; i < TRIES && !find_line(TRACING "trace", what); i++) {
		records[0] = arm_in(i * NSEC_PER_MSEC, 1);
		ASSERT_EQ(0, request(self->fd, records));
		EXPECT_EQ(1, receive_wait(self->fd, records, 1));
	}
	for (i = 0; i < COUNT; i++)
		records[i] = arm_in(HOUR_NS + i, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	/* Behind the first, where only a sweep finds them. */
	for (i = 1; i < COUNT; i++)
		records[i] = ask(EXPIRY_OP_CANCEL, records[i].id);
	ASSERT_EQ(COUNT - 1, submit(self->fd, records + 1, COUNT - 1));

	EXPECT_EQ(0, write_file(TRACING "events/expiry/enable", "0"));
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(what, sizeof(what), "%s: queue=%u ", events[i],
			 self->serial);
		EXPECT_NE(NULL, find_line(TRACING "trace", what))
			TH_LOG("no %s", what);
	}
	snprintf(what, sizeof(what), "queue=%u taken=1 given=1 ",
		 self->serial);
	EXPECT_NE(NULL, find_line(TRACING "trace", what));
	free(records);
}

struct racer {
	int fd;
	bool stop;
};

/* Reads each timer at once, which sets the queue's hrtimer for the next. */
static void *read_at_once(void *arg)
{
	struct racer *racer = arg;
	struct expiry_record record;

	while (!__atomic_load_n(&racer->stop, __ATOMIC_RELAXED))
		receive(racer->fd, &record, 1);
	return NULL;
}

#define POLLERS		200
#define TIMES		300

/*
 * Reads the reports of a queue's interrupts. Returns 0 if each names a deadline of
 * @armed_ns and is no earlier, -ENOENT if there is none, or the number of a false
 * one, which it prints.
 */
static int reports_of(unsigned int serial, const __u64 armed_ns[TIMES])
{
	FILE *file = fopen(TRACING "trace", "re");
	long long deadline_ns, late_ns;
	int reports = 0, armed = 0, i;
	char line[512], what[64];
	const char *found;

	if (!file)
		return -errno;
	snprintf(what, sizeof(what), "expiry_fire: queue=%u ", serial);
	while (reports == armed && fgets(line, sizeof(line), file)) {
		found = strstr(line, what);
		if (!found)
			continue;
		reports++;
		if (sscanf(found + strlen(what), "deadline_ns=%lld late_ns=%lld",
			   &deadline_ns, &late_ns) != 2 || late_ns < 0)
			break;
		for (i = 0; i < TIMES && armed_ns[i] != (__u64)deadline_ns; i++)
			;
		armed += i < TIMES;
	}
	fclose(file);
	if (reports != armed) {
		printf("# report %d: %s", reports, line);
		return reports;
	}
	return reports ? 0 : -ENOENT;
}

/*
 * The lateness is that of the timer which fired, though a reader on another
 * processor sets the next one, an hour later, while the interrupt still wakes
 * the pollers.
 */
TEST_F(seen, lateness_is_that_of_the_timer_that_fired)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct expiry_record record = arm_in(HOUR_NS, 1);
	struct racer racer = { .fd = self->fd };
	__u64 armed_ns[TIMES];
	int pollers[POLLERS], i;
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one processor");
	if (write_file(TRACING "events/expiry/expiry_fire/enable", "1"))
		SKIP(return, "no " TRACING);
	EXPECT_EQ(0, write_file(TRACING "trace", ""));
	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
	ASSERT_EQ(0, request(self->fd, &record));
	for (i = 0; i < POLLERS; i++) {
		pollers[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_LE(0, pollers[i]);
		ASSERT_EQ(0, epoll_ctl(pollers[i], EPOLL_CTL_ADD, self->fd,
				       &event));
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_at_once, &racer));
	for (i = 0; i < TIMES; i++) {
		record = arm_in(NSEC_PER_MSEC, 2);
		ASSERT_EQ(0, request(self->fd, &record));
		armed_ns[i] = record.deadline_ns;
		while (clock_ns(CLOCK_MONOTONIC) < armed_ns[i] + NSEC_PER_MSEC)
			;
	}
	__atomic_store_n(&racer.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, write_file(TRACING "events/expiry/expiry_fire/enable",
				"0"));
	EXPECT_EQ(0, reports_of(self->serial, armed_ns));
	for (i = 0; i < POLLERS; i++)
		close(pollers[i]);
}

TEST_HARNESS_MAIN
