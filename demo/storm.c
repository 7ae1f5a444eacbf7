// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A storm: a million timers over ten seconds through three queues of expiryd,
 * one on each clock. Some of them are cancelled or refreshed on the way, and
 * every expiration is checked against the requests (ledger.h).
 *
 * Two connections a queue, one thread. All timers are armed as fast as the
 * daemon answers, mixed with half of the changes. The other half is spread over
 * the time in which the timers expire.
 *
 * With --durable the queues are durable, and the daemon may end and start again
 * meanwhile, in any way.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"
#include "rows.h"

#define QUEUE		"storm-"	/* and the clock's name */
#define QUEUE_DURABLE	"durable-"	/* likewise */
#define BATCH		512U
#define CREDIT		65536U

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL

/* Least time from sending to the deadline. */
#define LEAD_NS		(10 * NSEC_PER_MSEC)
/* Changes are over after this share of the time. */
#define CHANGES_PERCENT	90
/* An expiration missing this long after the last deadline and the last arrival
 * is lost. LINGER_NS is the wait for duplicates.
 */
#define PATIENCE_NS	(15 * NSEC_PER_SEC)
#define LINGER_NS	(200 * NSEC_PER_MSEC)
#define TICK_MS		10
#define TRIES		32	/* attempts to find a timer to change */

/**
 * struct storm - one queue of it
 * @clock: its clock's name
 * @producer: one connection; @consumer: the other
 * @start_ns: of the storm; @end_ns: its last deadline
 * @armed_ns: when the last ARM was answered; 0 = not yet
 * @arrived_ns: time of the last arrival
 * @changes: number of cancels and refreshes
 * @changed: how many were sent, or dropped without a timer
 * @requests: records answered until @armed_ns
 * @batch: @nr_batch requests, @nr_posted of them sent
 * @acks: acknowledgements, @nr_acks of them, @nr_acked of them sent; room for
 *	@max_acks
 * @reconnects: of @producer; likewise @returns, of @consumer
 */
struct storm {
	const char *clock;
	struct expiry *producer;
	struct expiry *consumer;
	struct ledger ledger;
	uint64_t seed;
	uint64_t random;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t armed_ns;
	uint64_t arrived_ns;
	uint64_t changes;
	uint64_t changed;
	uint64_t requests;
	uint64_t answered;
	struct expiry_record batch[BATCH];
	uint32_t nr_batch;
	uint32_t nr_posted;
	struct expiry_record *acks;
	uint32_t nr_acks;
	uint32_t nr_acked;
	uint32_t max_acks;
	uint32_t reconnects;
	uint32_t returns;
};

static const struct {
	const char *name;
	uint32_t id;
} clocks[] = {
	{ "realtime", CLOCK_REALTIME },
	{ "monotonic", CLOCK_MONOTONIC },
	{ "boottime", CLOCK_BOOTTIME },
};

#define STORMS	(sizeof(clocks) / sizeof(clocks[0]))

static struct storm storms[STORMS];
static bool durable;

__attribute__((noreturn, format(printf, 1, 2)))
static void die(const char *format, ...)
{
	va_list args;

	fputs("storm: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* Returns a number from 0 to @limit - 1, by SplitMix64. */
static uint64_t below(struct storm *storm, uint64_t limit)
{
	uint64_t z = storm->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (unsigned __int128)z * limit >> 64;
}

/* ------------------------------------------------------------------------
 * Making requests
 */

/* Returns a random deadline from @from_ns to the end of the storm. */
static uint64_t some_deadline(struct storm *storm, uint64_t from_ns)
{
	return from_ns < storm->end_ns ?
	       from_ns + below(storm, storm->end_ns - from_ns) : from_ns;
}

static void make_arm(struct storm *storm, struct expiry_record *record,
		     uint64_t now_ns)
{
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		/* The client of a keyed queue names its timers. */
		.id = durable ? storm->ledger.nr + 1 : 0,
		.deadline_ns = some_deadline(storm, now_ns + LEAD_NS),
	};
}

/* Returns the cookie of a timer that was named, and neither changed nor
 * expired, or -1.
 */
static int64_t some_timer(struct storm *storm)
{
	const struct ledger_timer *timer;
	uint32_t i, cookie;

	for (i = 0; i < TRIES && storm->ledger.named; i++) {
		cookie = below(storm, storm->ledger.named);
		timer = &storm->ledger.timers[cookie];
		if (timer->id && !timer->changed && !timer->delivered)
			return cookie;
	}
	return -1;
}

/* Makes a change in turn: later, cancelled, earlier, cancelled. */
static void make_change(struct storm *storm, struct expiry_record *record,
			uint32_t cookie, uint64_t now_ns)
{
	const struct ledger_timer *timer = &storm->ledger.timers[cookie];
	uint64_t from_ns = now_ns + LEAD_NS;

	*record = (struct expiry_record) {
		.op = storm->changed & 1 ? EXPIRY_OP_CANCEL : EXPIRY_OP_REFRESH,
		.id = timer->id,
		.cookie = cookie,
	};
	if (record->op == EXPIRY_OP_CANCEL)
		return;
	if (storm->changed & 2 && timer->deadline > from_ns)
		record->deadline_ns =
			from_ns + below(storm, timer->deadline - from_ns);
	else
		record->deadline_ns = some_deadline(storm, timer->deadline + 1);
}

/* Returns how many changes should have been sent by now. */
static uint64_t changes_due(const struct storm *storm, uint64_t now_ns)
{
	const struct ledger *ledger = &storm->ledger;
	uint64_t first = storm->changes / 2, until_ns, past_ns;

	if (!storm->armed_ns)
		return first * ledger->named / ledger->nr_max;
	until_ns = (storm->end_ns - storm->start_ns) * CHANGES_PERCENT / 100;
	past_ns = now_ns - storm->start_ns;
	if (past_ns >= until_ns)
		return storm->changes;
	return first + (storm->changes - first) * past_ns / until_ns;
}

/* Makes the next batch, if there is enough for one or nothing more will follow.
 */
static void make_batch(struct storm *storm, uint64_t now_ns)
{
	struct ledger *ledger = &storm->ledger;
	uint64_t due = changes_due(storm, now_ns);
	uint64_t enough = storm->changes / 128 + 1;
	struct expiry_record *record;
	int64_t cookie;

	storm->nr_batch = 0;
	storm->nr_posted = 0;
	if (enough > BATCH)
		enough = BATCH;
	if (ledger->nr == ledger->nr_max && due < storm->changes &&
	    due < storm->changed + enough)
		return;
	while (storm->nr_batch < BATCH) {
		record = &storm->batch[storm->nr_batch];
		if (storm->changed < due) {
			cookie = some_timer(storm);
			if (cookie >= 0)
				make_change(storm, record, cookie, now_ns);
			storm->changed++;
			if (cookie < 0)
				continue;
		} else if (ledger->nr < ledger->nr_max) {
			make_arm(storm, record, now_ns);
		} else {
			break;
		}
		ledger_sent(ledger, record);
		storm->nr_batch++;
	}
}

/* ------------------------------------------------------------------------
 * Sending and receiving; each returns whether it made progress
 */

static bool send_batch(struct storm *storm)
{
	uint32_t left;
	int ret;

	if (storm->nr_posted == storm->nr_batch)
		make_batch(storm, expiry_now(storm->producer));
	left = storm->nr_batch - storm->nr_posted;
	if (!left)
		return false;
	ret = expiry_post(storm->producer, storm->batch + storm->nr_posted,
			  left);
	if (ret >= 0 && expiry_flush(storm->producer) < 0)
		ret = -ECONNRESET;
	if (ret < 0)
		die("sending: %s", expiry_explain(ret, EXPIRY_OP_ARM));
	storm->nr_posted += ret;
	return ret;
}

/* Returns whether the handle has connected again since the last call. */
static bool has_reconnected(struct expiry *handle, uint32_t *reconnects)
{
	struct expiry_info info;
	uint32_t before = *reconnects;

	expiry_info(handle, &info, sizeof(info));
	*reconnects = info.reconnects;
	return *reconnects != before;
}

static bool take_answers(struct storm *storm)
{
	struct expiry_record records[BATCH];
	uint64_t now_ns;
	int i, nr;

	nr = expiry_next(storm->producer, records, BATCH);
	if (nr < 0)
		die("receiving answers: %s",
		    expiry_explain(nr, EXPIRY_OP_ARM));
	if (has_reconnected(storm->producer, &storm->reconnects))
		ledger_broken(&storm->ledger);
	now_ns = expiry_now(storm->producer);
	for (i = 0; i < nr; i++)
		ledger_answer(&storm->ledger, &records[i], now_ns);
	storm->answered += nr;
	if (!storm->armed_ns && storm->ledger.named == storm->ledger.nr_max) {
		storm->armed_ns = now_ns;
		storm->requests = storm->answered;
	}
	return nr;
}

static void add_ack(struct storm *storm, uint64_t id)
{
	uint32_t max = storm->max_acks ? 2 * storm->max_acks : 2 * BATCH;

	if (storm->nr_acks == storm->max_acks) {
		storm->acks = realloc(storm->acks, max * sizeof(*storm->acks));
		if (!storm->acks)
			die("no memory");
		storm->max_acks = max;
	}
	storm->acks[storm->nr_acks++] = (struct expiry_record) {
		.op = EXPIRY_OP_ACK,
		.id = id,
	};
}

/* Sends acknowledgements, as many as may be in flight. */
static void send_acks(struct storm *storm)
{
	uint32_t left = storm->nr_acks - storm->nr_acked;
	int ret = 0;

	if (left)
		ret = expiry_post(storm->consumer,
				  storm->acks + storm->nr_acked, left);
	if (ret > 0 && expiry_flush(storm->consumer) < 0)
		ret = -ECONNRESET;
	if (ret < 0)
		die("acknowledging: %s", expiry_explain(ret, EXPIRY_OP_ACK));
	storm->nr_acked += ret;
	if (storm->nr_acked < storm->nr_acks)
		return;
	storm->nr_acked = 0;
	storm->nr_acks = 0;
}

/* Takes a record of the consumer: an expiration, or the answer to ACK, which is
 * -ENOENT if the first attempt was carried out.
 */
static void take_record(struct storm *storm, const struct expiry_record *record,
			uint64_t now_ns)
{
	if (record->op != EXPIRY_OP_ACK) {
		ledger_expired(&storm->ledger, record, now_ns);
		if (durable)
			add_ack(storm, record->id);
	} else if (record->status && record->status != -ENOENT) {
		die("acknowledging: %s",
		    expiry_explain(record->status, EXPIRY_OP_ACK));
	}
}

static bool take_expirations(struct storm *storm)
{
	struct expiry_record records[BATCH];
	uint64_t now_ns;
	int i, nr;

	send_acks(storm);
	nr = expiry_next(storm->consumer, records, BATCH);
	if (nr < 0)
		die("receiving expirations: %s",
		    expiry_explain(nr, EXPIRY_OP_EXPIRED));
	/* Read the time after the records: an early expiration must show. */
	now_ns = expiry_now(storm->consumer);
	has_reconnected(storm->consumer, &storm->returns);
	for (i = 0; i < nr; i++)
		take_record(storm, &records[i], now_ns);
	if (nr)
		storm->arrived_ns = now_ns;
	return nr;
}

static void wait_a_tick(void)
{
	struct pollfd fds[2 * STORMS];
	size_t i;

	for (i = 0; i < STORMS; i++) {
		const struct storm *storm = &storms[i];

		fds[2 * i] = (struct pollfd) {
			.fd = expiry_fd(storm->producer),
			.events = expiry_events(storm->producer),
		};
		if (storm->nr_posted < storm->nr_batch)
			fds[2 * i].events |= POLLOUT;
		fds[2 * i + 1] = (struct pollfd) {
			.fd = expiry_fd(storm->consumer),
			.events = expiry_events(storm->consumer),
		};
	}
	if (poll(fds, 2 * STORMS, TICK_MS) < 0 && errno != EINTR)
		die("poll: %m");
}

static bool is_over(const struct storm *storm)
{
	uint64_t now_ns = expiry_now(storm->consumer), quiet_ns;
	const struct ledger *ledger = &storm->ledger;

	if (now_ns < storm->end_ns || ledger->nr < ledger->nr_max)
		return false;
	quiet_ns = now_ns - (storm->arrived_ns > storm->end_ns ?
			     storm->arrived_ns : storm->end_ns);
	if (ledger->outstanding || ledger->unanswered)
		return quiet_ns > PATIENCE_NS;
	return quiet_ns > LINGER_NS;
}

static struct ledger sums(void)
{
	struct ledger sums = { 0 };
	size_t i;

	for (i = 0; i < STORMS; i++)
		ledger_add(&sums, &storms[i].ledger);
	return sums;
}

/* Prints one line, repeatedly on a terminal, from time to time in a log. */
static void show_progress(const struct storm *first)
{
	static uint64_t next_ns;
	uint64_t now_ns = expiry_now(first->consumer);
	bool terminal = isatty(STDERR_FILENO);
	struct ledger all;

	if (now_ns < next_ns)
		return;
	next_ns = now_ns + (terminal ? NSEC_PER_SEC / 5 : 2 * NSEC_PER_SEC);
	all = sums();
	fprintf(stderr, "%s  %4.1f s: %u armed, %llu changed, %llu delivered%s",
		terminal ? "\r" : "",
		(double)(now_ns - first->start_ns) / NSEC_PER_SEC, all.named,
		(unsigned long long)(all.refreshed + all.cancelled),
		(unsigned long long)all.delivered, terminal ? " " : "\n");
}

/* Does the possible work for one queue. Returns whether it made progress. */
static bool run_one(struct storm *storm)
{
	bool moved = send_batch(storm);

	/* Answers first: they define the expected expirations. */
	moved |= take_answers(storm);
	moved |= take_expirations(storm);
	return moved;
}

static void run(void)
{
	bool moved, over;
	size_t i;

	do {
		moved = false;
		over = true;
		for (i = 0; i < STORMS; i++) {
			moved |= run_one(&storms[i]);
			over &= is_over(&storms[i]);
		}
		if (!moved && !over)
			wait_a_tick();
		show_progress(&storms[0]);
	} while (!over);
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* ------------------------------------------------------------------------
 * Reporting
 */

/* Reports the rate of all queues, until the last ARM was answered. */
static void report_rate(void)
{
	uint64_t requests = 0, took_ns = 0, ns;
	char text[96];
	size_t i;

	for (i = 0; i < STORMS; i++) {
		if (!storms[i].armed_ns)
			return;
		requests += storms[i].requests;
		ns = storms[i].armed_ns - storms[i].start_ns;
		if (ns > took_ns)
			took_ns = ns;
	}
	snprintf(text, sizeof(text),
		 "%llu requests answered in %.2f s, while arming",
		 (unsigned long long)requests, (double)took_ns / NSEC_PER_SEC);
	row("per second", requests * NSEC_PER_SEC / took_ns, text);
}

static uint64_t sum_reconnects(void)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < STORMS; i++)
		sum += storms[i].reconnects + storms[i].returns;
	return sum;
}

static void report(void)
{
	char text[96], p50[32], p99[32], max[32];
	struct ledger all = sums();
	size_t i;

	snprintf(text, sizeof(text),
		 "in %zu queues, in batches of %u, seed %llu", STORMS, BATCH,
		 (unsigned long long)storms[0].seed);
	row("armed", all.armed, text);
	row("refreshed", all.refreshed, "half of them to later");
	row("cancelled", all.cancelled, "");
	row("too late", all.too_late,
	    "to refresh or cancel: just delivered");
	if (all.refused)
		row("refused", all.refused,
		    expiry_explain(all.refusal, EXPIRY_OP_ARM));
	report_rate();
	if (durable)
		row("connected", sum_reconnects(), "times again, all connections");
	row("delivered", all.delivered, "");
	row("lost", all.outstanding, "");
	row("early", all.early, "");
	row("out of order", all.disorder, "");
	if (durable)
		row("again", all.again,
		    "not acknowledged when the daemon ended, and marked");
	row("duplicate", all.duplicate, "");
	row("misdated", all.misdated,
	    "not the deadline or the id last answered");
	row("revived", all.cancelled_delivered,
	    "delivered although cancelled");
	if (all.unknown)
		row("unknown", all.unknown, "answers or expirations");
	for (i = 0; i < STORMS; i++) {
		struct ledger *ledger = &storms[i].ledger;

		ledger_sort(ledger);
		printf("  lateness     p50 %s, p99 %s, max %s (%s)\n",
		       milliseconds(p50, ledger_percentile(ledger, 500)),
		       milliseconds(p99, ledger_percentile(ledger, 990)),
		       milliseconds(max, ledger_percentile(ledger, 1000)),
		       storms[i].clock);
	}
}

/* ------------------------------------------------------------------------
 * Beginning
 */

static struct expiry *attach(const char *address, const char *queue,
			     uint32_t clock_id, uint32_t flags)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.queue = queue,
		.clock_id = clock_id,
		.credit = flags & EXPIRY_OPEN_CONSUME ? CREDIT : 0,
		.timeout_ms = 30000,
	};
	struct expiry_info info;
	struct expiry *handle;
	int ret;

	if (durable)
		options.flags |= EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_KEYED |
				 EXPIRY_OPEN_ACK | EXPIRY_OPEN_RECONNECT;
	ret = expiry_open(&handle, address, &options);
	if (ret)
		die("%s: %s", address ?: "the default socket",
		    expiry_explain(ret, EXPIRY_OP_HELLO));
	expiry_info(handle, &info, sizeof(info));
	if (info.timers)
		die("the queue %s is not empty: expiryctl --queue %s drop",
		    queue, queue);
	return handle;
}

static void begin(struct storm *storm, const char *address, size_t number,
		  uint32_t timers, uint64_t seconds, uint64_t seed)
{
	uint32_t clock_id = clocks[number].id;
	char queue[32];

	if (ledger_init(&storm->ledger, timers))
		die("no memory for %u timers", timers);
	storm->clock = clocks[number].name;
	snprintf(queue, sizeof(queue), "%s%s",
		 durable ? QUEUE_DURABLE : QUEUE, storm->clock);
	storm->consumer = attach(address, queue, clock_id,
				 EXPIRY_OPEN_CONSUME);
	storm->producer = attach(address, queue, clock_id, 0);
	storm->seed = seed;
	storm->random = seed + number;
	storm->changes = timers / 5;
	storm->start_ns = expiry_now(storm->producer);
	storm->end_ns = storm->start_ns + seconds * NSEC_PER_SEC;
}

static void end(struct storm *storm)
{
	expiry_close(storm->producer);
	expiry_close(storm->consumer);
	ledger_deinit(&storm->ledger);
	free(storm->acks);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text || value < min || value > max) {
		fprintf(stderr, "storm: %s: expected a number from %llu to %llu\n",
			text, (unsigned long long)min, (unsigned long long)max);
		exit(2);
	}
	return value;
}

static void usage(int status)
{
	fputs("usage: storm [--socket PATH] [--timers N] [--seconds N] [--seed N] [--durable]\n"
	      "\n"
	      "Arm N timers (1000000) over the next N seconds (10) through expiryd, in a queue\n"
	      "on each clock, cancel and refresh a tenth each, and check every expiration. The\n"
	      "queues, \"" QUEUE "realtime\" and so on, are left behind, empty. Exit status:\n"
	      "0 = all as it must be, 1 = not, 2 = a wrong call.\n"
	      "\n"
	      "With --durable the queues \"" QUEUE_DURABLE "realtime\" and so on are durable, and the\n"
	      "daemon may be killed and started meanwhile.\n", status ? stderr : stdout);
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "timers", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 'd' },
		{ "seed", required_argument, NULL, 'r' },
		{ "durable", no_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	uint64_t timers = 1000000, seconds = 10, seed = 1;
	char *address = NULL;
	struct ledger all;
	size_t i;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			free(address);
			if (asprintf(&address, "unix:%s", optarg) < 0)
				die("no memory");
			break;
		case 't':
			timers = number(optarg, STORMS, 100000000);
			break;
		case 'd':
			seconds = number(optarg, 1, 3600);
			break;
		case 'r':
			seed = number(optarg, 0, UINT64_MAX);
			break;
		case 'u':
			durable = true;
			break;
		default:
			usage(c == 'h' ? 0 : 2);
		}
	}
	if (optind < argc)
		usage(2);

	for (i = 0; i < STORMS; i++)
		begin(&storms[i], address, i,
		      (timers + STORMS - 1 - i) / STORMS, seconds, seed);
	run();
	report();
	all = sums();
	for (i = 0; i < STORMS; i++)
		end(&storms[i]);
	free(address);
	return ledger_clean(&all) ? 0 : 1;
}
