// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: load SOCKET QUEUE
 *
 * A program that depends on the daemon and does not look after it: arms timers
 * of ids of its own, moves some, takes what is due and acknowledges it a turn later,
 * by one handle that reconnects. SIGTERM ends the arming; then it waits for what is
 * outstanding, and prints one line of NAME=NUMBER, what each timer came to:
 *
 *	armed		ARM was answered with success
 *	moved		REFRESH was
 *	delivered	expirations that were not marked as redelivered
 *	redelivered	those that were
 *	again		of those, what had come before for the same deadline
 *	lost		armed, and nothing came for the last deadline confirmed
 *	early		before the deadline it names, or none later came
 *	duplicate	a second time for the same deadline, unmarked
 *	unknown		of a timer that nobody armed
 *	errors		calls that failed, requests that were refused; error is
 *			the first's errno
 *	left		timers that the queue says it still has
 *	reconnects	connections after the first
 *	pause_ms	the longest time without an answer
 *
 * Exit status 1 if any is as it must not be.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <expiry/expiry.h>

#define MS		1000000ULL
#define BATCH		24	/* timers armed in a turn, at most */
#define SPREAD_MS	1500	/* how far ahead, at most */
#define DUE		256	/* taken at once, at most */
#define TURN_MS		10
#define DRAIN_S		120	/* what is outstanding must come within */
#define QUIET_MS	1000	/* and nothing more within, after that */

/**
 * struct timer - one timer; its number is its id
 * @deadline_ns: the last one confirmed, 0 = not armed as far as is known
 * @delivered_ns: the one it was delivered for last, 0 = not yet
 */
struct timer {
	uint64_t deadline_ns;
	uint64_t delivered_ns;
};

/* The sums that are printed at the end, see above. @nr: timers armed so far, of
 * @room; @outstanding: of those, not yet delivered; @answered_ns: the server's
 * last answer; @acks: for timers taken and not acknowledged yet.
 */
struct load {
	struct expiry *handle;
	struct timer *timers;
	uint64_t nr, room;
	uint64_t outstanding;
	uint64_t armed, moved, delivered, redelivered, again, early;
	uint64_t duplicate, unknown, errors;
	int error;
	uint64_t answered_ns, pause_ns;
	struct expiry_record acks[DUE];
	uint32_t nr_acks;
};

static volatile sig_atomic_t stop;

static void stopped(int number)
{
	(void)number;
	stop = 1;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void failed(struct load *load, int error)
{
	if (!load->errors++)
		load->error = -error;
}

static bool is_owed(const struct timer *timer)
{
	return timer->deadline_ns > timer->delivered_ns;
}

/* An expiration and the reply to what armed it can cross on their way. */
static void confirm(struct load *load, const struct expiry_record *reply)
{
	struct timer *timer = &load->timers[reply->id];

	load->outstanding -= is_owed(timer);
	timer->deadline_ns = reply->deadline_ns;
	load->outstanding += is_owed(timer);
}

static void replied(struct load *load, const struct expiry_record *reply)
{
	switch (reply->op) {
	case EXPIRY_OP_ARM:
		if (reply->status) {
			failed(load, reply->status);
			break;
		}
		load->armed++;
		confirm(load, reply);
		break;
	case EXPIRY_OP_REFRESH:
		/* Too late is no error: it had just gone out. */
		if (reply->status && reply->status != -ENOENT) {
			failed(load, reply->status);
		} else if (!reply->status) {
			load->moved++;
			confirm(load, reply);
		}
		break;
	default:
		/* ACK: the first time may have counted. */
		if (reply->status && reply->status != -ENOENT)
			failed(load, reply->status);
	}
}

static void submit(struct load *load, struct expiry_record *records,
		   uint32_t count)
{
	int i, nr = expiry_submit(load->handle, records, count);
	uint64_t now_ns = monotonic_ns();

	if (nr < 0) {
		failed(load, nr);
		return;
	}
	if ((uint32_t)nr < count)
		failed(load, -EIO);
	for (i = 0; i < nr; i++)
		replied(load, &records[i]);
	if (now_ns - load->answered_ns > load->pause_ns)
		load->pause_ns = now_ns - load->answered_ns;
	load->answered_ns = now_ns;
}

/* For the next few timers. */
static bool more_room(struct load *load)
{
	uint64_t room = load->room ? 2 * load->room : 65536;
	struct timer *timers;

	if (load->nr + BATCH < load->room)
		return true;
	timers = realloc(load->timers, room * sizeof(*timers));
	if (!timers) {
		failed(load, -ENOMEM);
		return false;
	}
	memset(timers + load->room, 0, (room - load->room) * sizeof(*timers));
	load->timers = timers;
	load->room = room;
	return true;
}

/* A few new timers, and a later deadline for one of those before them that has not
 * come yet.
 */
static void send_some(struct load *load)
{
	struct expiry_record records[BATCH + 1];
	uint64_t id, now_ns = monotonic_ns();
	uint32_t i, count = 1 + random() % BATCH;

	for (i = 0; i < count; i++)
		records[i] = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.id = ++load->nr,
			.deadline_ns = now_ns + random() % (SPREAD_MS * MS),
			.cookie = load->nr,
		};
	id = load->nr > 10 * BATCH ? load->nr - BATCH - random() % BATCH : 0;
	if (id && !load->timers[id].delivered_ns)
		records[count++] = (struct expiry_record) {
			.op = EXPIRY_OP_REFRESH,
			.flags = EXPIRY_F_LATER,
			.id = id,
			.deadline_ns = now_ns + SPREAD_MS * MS,
		};
	submit(load, records, count);
}

static void expired(struct load *load, const struct expiry_record *record,
		    uint64_t now_ns)
{
	bool marked = record->flags & EXPIRY_F_REDELIVERED, again;
	struct timer *timer;

	if (!record->id || record->id > load->nr || record->cookie != record->id) {
		load->unknown++;
		return;
	}
	timer = &load->timers[record->id];
	if (record->deadline_ns > now_ns)
		load->early++;
	again = timer->delivered_ns == record->deadline_ns;
	if (marked) {
		load->redelivered++;
		load->again += again;
	} else {
		load->delivered++;
		load->duplicate += again;
	}
	load->outstanding -= is_owed(timer);
	timer->delivered_ns = record->deadline_ns;
	load->outstanding += is_owed(timer);
}

/* Acknowledges earlier timers, and takes those that are due: how many. */
static int take_some(struct load *load, int timeout_ms)
{
	struct expiry_record due[DUE];
	uint64_t now_ns;
	int i, nr;

	if (load->nr_acks)
		submit(load, load->acks, load->nr_acks);
	load->nr_acks = 0;
	nr = expiry_receive(load->handle, due, DUE, timeout_ms);
	if (nr < 0 && nr != -EINTR)
		failed(load, nr);
	now_ns = monotonic_ns();
	for (i = 0; i < nr; i++) {
		if (due[i].op != EXPIRY_OP_EXPIRED) {
			failed(load, -EPROTO);
			continue;
		}
		expired(load, &due[i], now_ns);
		load->acks[load->nr_acks++] = (struct expiry_record) {
			.op = EXPIRY_OP_ACK,
			.id = due[i].id,
		};
	}
	return nr > 0 ? nr : 0;
}

/* Counts timers without an expiration for their last confirmed deadline: @lost
 * if none came at all, @early if only one for an earlier deadline.
 */
static uint64_t unkept(struct load *load)
{
	uint64_t lost = 0, i;

	for (i = 1; i <= load->nr; i++) {
		const struct timer *timer = &load->timers[i];

		if (is_owed(timer) && !timer->delivered_ns)
			lost++;
		else if (is_owed(timer))
			load->early++;
	}
	return lost;
}

static void run(struct load *load)
{
	const struct timespec pause = { .tv_nsec = TURN_MS * MS };
	uint64_t limit_ns;

	load->answered_ns = monotonic_ns();
	while (!stop && !load->errors && more_room(load)) {
		send_some(load);
		nanosleep(&pause, NULL);
		while (take_some(load, 0) == DUE)
			;
	}
	limit_ns = monotonic_ns() + DRAIN_S * 1000 * MS;
	while (!load->errors && load->outstanding && monotonic_ns() < limit_ns)
		take_some(load, 100);
	while (!load->errors && take_some(load, QUIET_MS))
		;
}

int main(int argc, char **argv)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK |
			 EXPIRY_OPEN_KEYED | EXPIRY_OPEN_RECONNECT,
		.clock_id = CLOCK_MONOTONIC,
	};
	struct sigaction action = { .sa_handler = stopped };
	struct expiry_stat stat = { 0 };
	struct load load = { 0 };
	struct expiry_info info;
	uint64_t lost, left;
	char address[128];
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: load SOCKET QUEUE\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	snprintf(address, sizeof(address), "unix:%s", argv[1]);
	options.queue = argv[2];
	r = expiry_open(&load.handle, address, &options);
	if (r) {
		fprintf(stderr, "load: %s: %s\n", address, strerror(-r));
		return 2;
	}
	run(&load);
	lost = unkept(&load);
	r = expiry_stat(load.handle, &stat, NULL, 0);
	if (r)
		failed(&load, r);
	left = stat.armed + stat.unacked;
	expiry_info(load.handle, &info, sizeof(info));
	printf("armed=%" PRIu64 " moved=%" PRIu64 " delivered=%" PRIu64
	       " redelivered=%" PRIu64 " again=%" PRIu64 " lost=%" PRIu64 " early=%" PRIu64
	       " duplicate=%" PRIu64 " unknown=%" PRIu64 " errors=%" PRIu64
	       " error=%d left=%" PRIu64 " reconnects=%" PRIu32
	       " pause_ms=%" PRIu64 "\n", load.armed, load.moved,
	       load.delivered, load.redelivered, load.again, lost, load.early,
	       load.duplicate, load.unknown, load.errors, load.error, left,
	       info.reconnects, (uint64_t)(load.pause_ns / MS));
	expiry_close(load.handle);
	free(load.timers);
	return lost || left || load.early || load.duplicate || load.unknown ||
	       load.errors || !load.armed;
}
