// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT on a real daemon whose queue lives on while connections
 * are cut two hundred times: every timer that was armed expires, none early,
 * twice only when marked, and no call returns an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support-cut.h"
#include "support-queue.h"

#define CUTS	200
#define BYTES	30000	/* on a connection, at most */
#define TIMERS	200000	/* at most */
#define ACKS	100	/* gathered before they are sent */

/* The program's model of the timer with id 1 + index. */
struct timer {
	uint64_t deadline_ns;
	bool armed;
	uint8_t seen;
	uint8_t unmarked;
};

/* The program. */
struct life {
	struct expiry *h;
	struct timer *timers;
	uint32_t begun;		/* ids that were sent */
	uint32_t armed;
	uint32_t expired;
	uint32_t again;
	uint32_t nr_acks;
	struct expiry_record acks[2 * ACKS];
	uint64_t seed;
};

static uint32_t draw(struct life *life, uint32_t below)
{
	life->seed = life->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (life->seed >> 33) % below;
}

static void expired(struct life *life, const struct expiry_record *event)
{
	struct timer *timer = &life->timers[event->id - 1];

	assert_in_range(event->id, 1, life->begun);
	assert_true(event->cookie == event->id);
	assert_true(event->deadline_ns <= expiry_now(life->h));
	life->expired += !timer->seen;
	life->again += timer->seen > 0;
	timer->seen = 1;
	if (!(event->flags & EXPIRY_F_REDELIVERED))
		assert_int_equal(++timer->unmarked, 1);
}

static void replied(struct life *life, const struct expiry_record *reply)
{
	struct timer *timer = &life->timers[reply->id - 1];

	if (reply->op != EXPIRY_OP_ARM) {
		/* It has expired, or was acknowledged the first time. */
		if (reply->status)
			assert_int_equal(reply->status, -ENOENT);
		/* A timer about to be redelivered was moved: it counts as new.
		 */
		else if (reply->op == EXPIRY_OP_REFRESH)
			timer->unmarked = 0;
		return;
	}
	assert_int_equal(reply->status, 0);
	assert_false(timer->armed);
	timer->armed = true;
	life->armed++;
}

/* Posts as far as the window allows, then uses a blocking call. */
static void send_records(struct life *life, struct expiry_record *records,
			 uint32_t nr, bool post)
{
	int posted = post ? expiry_post(life->h, records, nr) : 0;
	uint32_t i;

	assert_true(posted >= 0);
	assert_int_equal(expiry_submit(life->h, records + posted, nr - posted),
			 nr - posted);
	for (i = posted; i < nr; i++)
		replied(life, &records[i]);
}

/* Takes what has arrived. A cut finds some of it unacknowledged. */
static void take_all(struct life *life)
{
	struct expiry_record records[ACKS];
	int i, nr;

	nr = expiry_next(life->h, records, ACKS);
	if (nr < 0)
		fail_msg("%s", strerror(-nr));
	for (i = 0; i < nr; i++) {
		if (records[i].op != EXPIRY_OP_EXPIRED) {
			replied(life, &records[i]);
			continue;
		}
		expired(life, &records[i]);
		life->acks[life->nr_acks++] = (struct expiry_record){
			.op = EXPIRY_OP_ACK,
			.id = records[i].id,
		};
	}
	if (life->nr_acks >= ACKS || !draw(life, 8)) {
		send_records(life, life->acks, life->nr_acks, true);
		life->nr_acks = 0;
	}
}

/* Makes the next requests: some timers are new, some have their deadlines
 * moved.
 */
static void send_some(struct life *life)
{
	struct expiry_record records[50];
	uint32_t i, nr = 1 + draw(life, 50);

	for (i = 0; i < nr; i++) {
		bool old = life->begun && !draw(life, 4);

		records[i] = (struct expiry_record){
			.op = old ? EXPIRY_OP_REFRESH : EXPIRY_OP_ARM,
			.flags = EXPIRY_F_RELATIVE,
			.deadline_ns = draw(life, 10 * MS),
		};
		if (draw(life, 2)) {
			records[i].flags = 0;
			records[i].deadline_ns += expiry_now(life->h);
		}
		records[i].id = old ? 1 + draw(life, life->begun) :
				      ++life->begun;
		records[i].cookie = records[i].id;
	}
	send_records(life, records, nr, draw(life, 2));
}

static void cut_two_hundred_times(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.queue = "cuts",
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK |
			 EXPIRY_OPEN_KEYED | EXPIRY_OPEN_RECONNECT,
		.clock_id = CLOCK_MONOTONIC,
		.credit = 64,
		.window = 128,
		.timeout_ms = WAIT_MS,
	};
	struct life life = { .seed = 1 };
	struct expiry_info info;
	struct cutter cutter;

	(void)state;
	life.timers = calloc(TIMERS, sizeof(*life.timers));
	assert_non_null(life.timers);
	cutter_start(&cutter, address + strlen("unix:"), BYTES, CUTS);
	/* The first connection is the program's to make. */
	while (expiry_open(&life.h, cutter.address, &options))
		;
	while (cutter.left > 0 && life.begun < TIMERS - 50) {
		send_some(&life);
		take_all(&life);
	}
	while (life.armed < life.begun || life.expired < life.armed) {
		assert_int_equal(expiry_wait(life.h, WAIT_MS), 1);
		take_all(&life);
	}
	expiry_info(life.h, &info, sizeof(info));
	printf("# %u timers, %u came again, %u connections more\n", life.armed,
	       life.again, info.reconnects);
	assert_int_equal(cutter.left, 0);
	expiry_close(life.h);
	cutter_stop(&cutter);
	free(life.timers);
}

/* A periodic timer that was delivered is armed and not acknowledged: HELLO may take
 * it for two. The queue is no other for that.
 */
static void periodic_timer_counts_once(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.queue = "periodic",
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK |
			 EXPIRY_OPEN_KEYED,
		.clock_id = CLOCK_MONOTONIC,
	};
	struct expiry *h = open_options(&options);
	struct expiry_record record;
	struct expiry_info info;
	struct expiry_stat stat;
	struct cutter cutter;
	uint64_t id = 1;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, 0, 3600000, 0, 0), 0);
	take_due(h, &record, 1);
	expiry_close(h);

	cutter_start(&cutter, address + strlen("unix:"), 1, 0);
	options.flags = EXPIRY_OPEN_ACK | EXPIRY_OPEN_KEYED |
			EXPIRY_OPEN_RECONNECT;
	assert_int_equal(expiry_open(&h, cutter.address, &options), 0);
	expiry_info(h, &info, sizeof(info));
	assert_true(info.timers >= 1);
	cutter_cut(&cutter);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.arms == 1);
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.reconnects, 1);
	expiry_close(h);
	cutter_stop(&cutter);
}

static int start_server(void **state)
{
	(void)state;
	address = server_start();
	return address ? 0 : -1;
}

static int stop_server(void **state)
{
	(void)state;
	return server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_two_hundred_times),
		cmocka_unit_test(periodic_timer_counts_once),
	};

	return cmocka_run_group_tests_name("cuts", tests, start_server,
					   stop_server);
}
