// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: how late expiryd's expirations are. Orders (batch and connections
 * are ignored):
 *
 *	drain		a number of timers, all due within one millisecond: how
 *			long after it the first and the last one come (p50, max)
 *	late, late-busy	a number of timers, one at a time, alternating between
 *			three queues, one on each clock: how late each comes. Each
 *			queue has timers hours later than these. busy: another
 *			client arms and cancels at full speed. After each there is
 *			one of a timerfd, without the daemon, and one of a relay:
 *			a process that waits for a timerfd and notifies by a
 *			socket, the minimum for any daemon. So all three meet the
 *			same machine. Prints late_us, timerfd_us, relay_us, too.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/mix.h"
#include "bench/daemon/driver.h"
#include "bench/daemon/waiter.h"
#include "bench/daemon/wire.h"

#define QUEUE		"bench"
#define BATCH		512U
#define FAR_NS		(3600 * NSEC_PER_SEC)
#define MSEC		1000000ULL
#define DRAIN_ARM_NS	1000ULL		/* a timer, from arming to the deadlines */
#define DRAIN_WINDOW	(1U << 20)	/* credit: the most that a daemon gives */
#define SAMPLES		(1U << 16)
#define LOAD_TIMERS	(64 * BATCH)

static const char *socket_path;
static struct consumer consumer;
static int producer;
static uint64_t random_state = 1;

static void drain(uint32_t nr, struct traffic_cost *cost)
{
	uint64_t due_ns = bench_now() + nr * DRAIN_ARM_NS + 2000 * MSEC;

	consumer.got = 0;
	wire_arm(producer, &(struct wire_arming) {
		.nr = nr, .from_ns = due_ns, .within_ns = MSEC,
	});
	if (bench_now() > due_ns)
		die("%u timers were not armed in time", nr);
	while (consumer.got < nr)
		consumer_take(&consumer, NULL);
	cost->took_ns = consumer.last_ns - due_ns;
	cost->p50_ns = consumer.first_ns - due_ns;
	cost->max_ns = consumer.last_ns - due_ns;
}

/* ------------------------------------------------------------------------
 * One at a time
 */

static uint64_t late_ns;

static uint64_t soon(uint32_t clock_id)
{
	return bench_clock(clock_id) + MSEC + bench_below(&random_state, 2 * MSEC);
}

static void note(const struct expiry_record *record, uint64_t now_ns)
{
	late_ns = now_ns - record->deadline_ns;
}

static uint64_t one_of(int fd, struct consumer *from)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = soon(from->clock_id),
	};

	wire_send(fd, &record, 1);
	wire_receive(fd, &record, 1);
	if (record.status)
		die("ARM is refused: %d", record.status);
	while (!consumer_take(from, note))
		;
	return late_ns;
}

static uint64_t one_of_the_daemon(uint32_t number)
{
	uint32_t i = number % (WIRE_CLOCKS + 1);

	return i < WIRE_CLOCKS ?
	       one_of(wire_clocks[i].producer, &wire_clocks[i].consumer) :
	       one_of(producer, &consumer);
}

static uint64_t one_of_a_timerfd(uint64_t deadline_ns)
{
	static int fd = -1;

	if (fd < 0)
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return waiter_late(fd, deadline_ns);
}

/* Runs the relay: returns each deadline it gets when it is due. */
static void relay(int fd)
{
	uint64_t deadline_ns;

	while (recv(fd, &deadline_ns, sizeof(deadline_ns), 0) > 0) {
		one_of_a_timerfd(deadline_ns);
		send(fd, &deadline_ns, sizeof(deadline_ns), MSG_NOSIGNAL);
	}
	_exit(0);
}

static uint64_t one_of_a_relay(uint64_t deadline_ns)
{
	static int fd = -1;
	int pair[2];

	if (fd < 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			die("socketpair: %m");
		if (!fork()) {
			close(pair[0]);
			relay(pair[1]);
		}
		close(pair[1]);
		fd = pair[0];
	}
	if (send(fd, &deadline_ns, sizeof(deadline_ns), MSG_NOSIGNAL) < 0 ||
	    recv(fd, &deadline_ns, sizeof(deadline_ns), 0) <= 0)
		die("relay: %m");
	return bench_now() - deadline_ns;
}

/* Arms and cancels for ever, over a connection of its own to the same queue. */
static void load(void)
{
	static struct expiry_record records[LOAD_TIMERS];
	static struct batch batches[LOAD_TIMERS / BATCH];
	struct stream stream = { .fd = wire_attach(socket_path, QUEUE, 0) };
	struct traffic traffic = {
		.streams = &stream,
		.nr_streams = 1,
		.depth = TRAFFIC_DEPTH_MAX,
		.batches = batches,
		.nr_batches = LOAD_TIMERS / BATCH,
		.side_fd = -1,
	};
	uint32_t i;

	for (i = 0; i < traffic.nr_batches; i++)
		batches[i] = (struct batch) {
			.out = (char *)(records + i * BATCH),
			.len = BATCH * sizeof(*records),
		};
	for (;;) {
		uint64_t from_ns = bench_now() + FAR_NS;

		for (i = 0; i < LOAD_TIMERS; i++)
			records[i] = (struct expiry_record) {
				.op = EXPIRY_OP_ARM,
				.deadline_ns = from_ns +
					bench_below(&random_state, FAR_NS),
			};
		traffic_run(&traffic);
		for (i = 0; i < LOAD_TIMERS; i++)
			records[i] = (struct expiry_record) {
				.op = EXPIRY_OP_CANCEL,
				.id = records[i].id,
			};
		traffic_run(&traffic);
	}
}

static uint64_t *late, *timerfd_late, *relay_late;
static uint32_t nr_late;

static void lateness(uint32_t nr, bool busy, struct traffic_cost *cost)
{
	uint64_t began_ns = bench_now();
	pid_t child = 0;

	if (nr > SAMPLES)
		die("%u timers are more than %u", nr, SAMPLES);
	if (busy) {
		child = fork();
		if (child < 0)
			die("fork: %m");
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			load();
		}
	}
	for (nr_late = 0; nr_late < nr; nr_late++) {
		late[nr_late] = one_of_the_daemon(nr_late);
		timerfd_late[nr_late] = one_of_a_timerfd(soon(CLOCK_MONOTONIC));
		relay_late[nr_late] = one_of_a_relay(soon(CLOCK_MONOTONIC));
	}
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	cost->took_ns = bench_now() - began_ns;
}

static void print_late(void)
{
	if (!nr_late)
		return;
	driver_times("late_us", late, nr_late);
	driver_times("timerfd_us", timerfd_late, nr_late);
	driver_times("relay_us", relay_late, nr_late);
}

static void fill(const char *path, uint32_t timers)
{
	socket_path = path;
	wire_clocks_fill(path);
	consumer_attach(&consumer, path, QUEUE, DRAIN_WINDOW);
	producer = wire_attach(path, QUEUE, 0);
	wire_arm(producer, &(struct wire_arming) {
		.nr = timers, .from_ns = bench_now() + FAR_NS,
		.within_ns = FAR_NS,
	});
	late = driver_map(SAMPLES * sizeof(*late));
	timerfd_late = driver_map(SAMPLES * sizeof(*late));
	relay_late = driver_map(SAMPLES * sizeof(*late));
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	const char *op = order->op;

	nr_late = 0;
	if (!strcmp(op, "drain"))
		drain(order->requests, cost);
	else if (!strcmp(op, "late") || !strcmp(op, "late-busy"))
		lateness(order->requests, op[4], cost);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static struct driver driver = {
		.name = "expiryd",
		.fill = fill,
		.measure = measure,
		.more = print_late,
	};

	return driver_main(&driver, argc, argv);
}
