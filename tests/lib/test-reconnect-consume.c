// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT's handling of expirations and credit, with a fake server
 * whose connections break at the worst moments.
 */
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "support-reconnect.h"

static void expire_and_go(int fd)
{
	struct expiry_record credit, request;

	greet(fd, 1000);
	get(fd, &credit, 1);
	script_expect(credit.op == EXPIRY_OP_CREDIT && credit.period_ms == 8,
		      "the first credit");
	get(fd, &request, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 3);
}

static sem_t credited;

/* Reads until the client goes. Of the credit for @given records that were taken, more than
 * half comes at once. The rest comes with later records, by how many are taken together.
 */
static void get_credit(int fd, uint32_t given)
{
	struct expiry_record record;
	uint32_t sum = 0, before;

	while (get(fd, &record, 1)) {
		before = sum;
		if (record.op == EXPIRY_OP_CREDIT)
			sum += record.period_ms;
		if (before <= given / 2 && sum > given / 2)
			sem_post(&credited);
	}
	script_expect(sum <= given, "there is more credit");
}

static void expire_again(int fd)
{
	struct expiry_record record = { .op = EXPIRY_OP_EXPIRED };

	greet_again(fd);
	answer(fd, 77);
	get(fd, &record, 1);
	script_expect(record.op == EXPIRY_OP_CREDIT && record.period_ms == 8,
		      "the credit is not as it was");
	for (record.cookie = 1; record.cookie < 9; record.cookie++) {
		record.op = EXPIRY_OP_EXPIRED;
		record.flags = EXPIRY_F_REDELIVERED;
		put(fd, &record, 1);
	}
	get_credit(fd, 8);
}

/* Waits until the server has the credit that it waits for. */
static void wait_for_credit(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_MS / 1000;
	assert_int_equal(sem_timedwait(&credited, &end), 0);
	sem_destroy(&credited);
}

/* Expirations of the handle come once, marked; credit is given anew, after the
 * repeated requests.
 */
static void held_expirations_come_once(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		expire_and_go, expire_again
	};
	struct expiry_record record = reconnect_request(EXPIRY_OP_ARM, 77), got[9];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	sem_init(&credited, 0, 0);
	h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	take(h, got, 9);
	wait_for_credit();
	assert_int_equal(got[0].op, EXPIRY_OP_CLOCK_SET);
	for (i = 1; i < 9; i++) {
		assert_int_equal(got[i].cookie, i);
		assert_int_equal(got[i].flags, EXPIRY_F_REDELIVERED);
	}
	reconnect_end(&server, h);
}

static void steps_and_go(int fd)
{
	struct expiry_record record;

	greet(fd, 1000);
	get(fd, &record, 1);
	get(fd, &record, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 3);
}

static void step_again(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 4);
	while (get(fd, &record, 1))
		if (record.op != EXPIRY_OP_CREDIT)
			put(fd, &record, 1);
}

/* A clock that was set before and after the break is one step, the later. */
static void steps_on_two_connections_are_one(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { steps_and_go, step_again };
	struct expiry_record record = reconnect_request(EXPIRY_OP_ARM, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(reconnect_count(h), 1);
	assert_int_equal(expiry_pending(h), 1);
	take(h, &record, 1);
	assert_int_equal(record.op, EXPIRY_OP_CLOCK_SET);
	assert_int_equal(record.cookie, 4);
	reconnect_end(&server, h);
}

static void go_before_the_answer(int fd)
{
	greet_and_get(fd, 2);
}

static void answer_and_wait_for_credit(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	answer(fd, 77);
	if (get(fd, &record, 1) && record.op == EXPIRY_OP_CREDIT)
		sem_post(&credited);
	drain(fd);
}

/* A call that ends on another connection has given the credit there: the program
 * may wait for expirations by the descriptor alone.
 */
static void credit_follows_the_answer(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		go_before_the_answer, answer_and_wait_for_credit
	};
	struct expiry_record record = reconnect_request(EXPIRY_OP_ARM, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	sem_init(&credited, 0, 0);
	h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	wait_for_credit();
	reconnect_end(&server, h);
}

static void take_acks_and_go(int fd)
{
	greet_and_get(fd, 4);
}

static void expect_credit(int fd)
{
	struct expiry_record record;

	script_expect(get(fd, &record, 1) && record.op == EXPIRY_OP_CREDIT,
		      "credit follows");
	drain(fd);
}

/* Another daemon: none of the ACKs finds a delivery. One timer is gone, one is due, one
 * has another time.
 */
static void find_no_delivery(int fd)
{
	static const uint64_t deadlines[] = { 0, 1, EXPIRY_NEVER };
	struct expiry_record records[3];
	int i;

	greet_again(fd);
	script_expect(get(fd, records, 3), "the ACKs");
	for (i = 0; i < 3; i++) {
		script_expect(records[i].op == EXPIRY_OP_ACK, "an ACK");
		records[i].status = -ENOENT;
	}
	put(fd, records, 3);
	script_expect(get(fd, records, 3), "the QUERYs");
	for (i = 0; i < 3; i++) {
		script_expect(records[i].op == EXPIRY_OP_QUERY &&
			      records[i].id == 7U + i, "QUERY of its timer");
		records[i].status = i ? 0 : -ENOENT;
		records[i].deadline_ns = deadlines[i];
	}
	put(fd, records, 3);
	expect_credit(fd);
}

/* An ACK that was carried out before the connection broke has succeeded. Only one whose
 * expiration comes again finds none.
 */
static void acks_that_were_carried_out(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		take_acks_and_go, find_no_delivery
	};
	struct expiry_record acks[3];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		acks[i] = reconnect_request(EXPIRY_OP_ACK, i);
		acks[i].id = 7 + i;
	}
	h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, acks, 3), 3);
	assert_int_equal(acks[0].status, 0);
	assert_int_equal(acks[1].status, -ENOENT);
	assert_int_equal(acks[2].status, 0);
	reconnect_end(&server, h);
}

/* Answers the next request, a QUERY for timer 7 + @nr, or an ACK that finds no delivery. */
static void answer_about(int fd, uint8_t op, int nr)
{
	static const uint64_t deadlines[] = { 0, 1, EXPIRY_NEVER };
	struct expiry_record record;

	script_expect(get(fd, &record, 1) && record.op == op &&
		      record.id == 7U + nr, "another request about the ACKs");
	record.status = op == EXPIRY_OP_ACK || !nr ? -ENOENT : 0;
	record.deadline_ns = deadlines[nr];
	put(fd, &record, 1);
}

/* On another connection: answers requests about timers 7 + @first to 9. */
static void greet_and_answer(int fd, uint8_t op, int first)
{
	int nr;

	greet_again(fd);
	for (nr = first; nr < 3; nr++)
		answer_about(fd, op, nr);
}

/* Ends before the second QUERY is answered. */
static void find_one_and_go(int fd)
{
	struct expiry_record record;

	greet_and_answer(fd, EXPIRY_OP_ACK, 0);
	answer_about(fd, EXPIRY_OP_QUERY, 0);
	script_expect(get(fd, &record, 1), "the second QUERY");
}

static void find_the_others(int fd)
{
	greet_and_answer(fd, EXPIRY_OP_QUERY, 1);
	expect_credit(fd);
}

/* Another break, while ACKs are looked for: the others are looked for on the next
 * connection, before credit is given.
 */
static void acks_over_two_breaks(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		take_acks_and_go, find_one_and_go, find_the_others
	};
	struct expiry_record acks[3];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		acks[i] = reconnect_request(EXPIRY_OP_ACK, 6 + i);
	h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, acks, 3), 3);
	assert_int_equal(acks[0].status, 0);
	assert_int_equal(acks[1].status, -ENOENT);
	assert_int_equal(acks[2].status, 0);
	assert_int_equal(reconnect_count(h), 2);
	reconnect_end(&server, h);
}

static void take_posted_and_go(int fd)
{
	greet_and_get(fd, 6);
}

/* The ACKs' timers first, then all that was posted, then credit. */
static void find_what_was_posted(int fd)
{

	greet_and_answer(fd, EXPIRY_OP_QUERY, 0);
	answer(fd, 1);
	answer_about(fd, EXPIRY_OP_ACK, 0);
	answer_about(fd, EXPIRY_OP_ACK, 1);
	answer(fd, 2);
	answer_about(fd, EXPIRY_OP_ACK, 2);
	expect_credit(fd);
}

static void look_and_go(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	answer_about(fd, EXPIRY_OP_QUERY, 0);
	script_expect(get(fd, &record, 1), "the second QUERY");
}

/* The ACKs are sent again, and one is answered. */
static void acknowledge_one_and_go(int fd)
{
	struct expiry_record record;

	greet_and_answer(fd, EXPIRY_OP_QUERY, 0);
	answer(fd, 1);
	answer_about(fd, EXPIRY_OP_ACK, 0);
	script_expect(get(fd, &record, 1), "the second ACK");
}

static void find_the_rest(int fd)
{
	greet_and_answer(fd, EXPIRY_OP_QUERY, 1);
	answer_about(fd, EXPIRY_OP_ACK, 1);
	answer(fd, 2);
	answer_about(fd, EXPIRY_OP_ACK, 2);
	expect_credit(fd);
}

/* Posts three ACKs in doubt among other requests, and takes the answers @most at a
 * time. A later ACK is in no doubt.
 */
static void post_acks(fake_script *const *scripts, uint32_t most)
{
	struct expiry_record posted[5], got[5];
	struct fake server;
	struct expiry *h;
	int i, nr = 0;

	posted[0] = reconnect_request(EXPIRY_OP_REFRESH, 1);
	posted[1] = reconnect_request(EXPIRY_OP_ACK, 6);
	posted[2] = reconnect_request(EXPIRY_OP_ACK, 7);
	posted[3] = reconnect_request(EXPIRY_OP_REFRESH, 2);
	posted[4] = reconnect_request(EXPIRY_OP_ACK, 8);
	h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_post(h, posted, 5), 5);
	while (nr < 5) {
		i = expiry_next(h, got + nr, most < 5U - nr ? most : 5U - nr);
		assert_true(i >= 0);
		nr += i;
		if (!i)
			assert_true(expiry_wait(h, WAIT_MS) >= 0);
	}
	for (i = 0; i < 5; i++) {
		assert_int_equal(got[i].op, posted[i].op);
		assert_int_equal(got[i].id, posted[i].id);
		assert_int_equal(got[i].status, i == 2 ? -ENOENT : 0);
	}
	reconnect_end(&server, h);
}

static void posted_acks_that_were_carried_out(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		take_posted_and_go, find_what_was_posted
	};
	uint32_t most;

	(void)state;
	for (most = 1; most <= 5; most++)
		post_acks(scripts, most);
}

static void posted_acks_over_breaks(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		take_posted_and_go, look_and_go, acknowledge_one_and_go,
		find_the_rest
	};
	uint32_t most;

	(void)state;
	for (most = 1; most <= 5; most++)
		post_acks(scripts, most);
}

static void answer_about_another(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	get(fd, &record, 1);
	record.id++;
	put(fd, &record, 1);
	drain(fd);
}

static void answer_too_much(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	get(fd, &record, 1);
	record.status = 1;
	put(fd, &record, 1);
	drain(fd);
}

/* A server that answers something else breaks the handle. */
static void another_answer_about_acks(void **state)
{
	static fake_script *const wrong[] = { answer_about_another, answer_too_much };
	struct expiry_record ack = reconnect_request(EXPIRY_OP_ACK, 6);
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fake_script *const scripts[FAKE_SCRIPTS] = { go_before_the_answer,
							     wrong[i] };

		h = reconnect_open(&server, scripts, KEYED | ACKING, WAIT_MS);
		assert_int_equal(expiry_post(h, &ack, 1), 1);
		assert_int_equal(next_error(h), -EPROTO);
		reconnect_end(&server, h);
	}
}

static void copy_and_go(int fd)
{
	struct expiry_record request;

	greet(fd, 1000);
	get(fd, &request, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 2);
	put_event(fd, EXPIRY_OP_MISSED, 3);
}

static void copy_again(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	answer(fd, 77);
	put_event(fd, EXPIRY_OP_EXPIRED, 4);
	script_expect(!get(fd, &record, 1), "an observer gives no credit");
}

/* Copies that an observer held do not come again, so they are kept. */
static void held_copies_stay(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { copy_and_go, copy_again };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 77);
	struct expiry_record got[4];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED | EXPIRY_OPEN_OBSERVE,
			 WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	take(h, got, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(got[i].cookie, i + 1);
	assert_int_equal(got[2].op, EXPIRY_OP_MISSED);
	assert_int_equal(reconnect_count(h), 1);
	reconnect_end(&server, h);
}

static void miss_without_end(int fd)
{
	uint64_t i;

	greet(fd, 1000);
	for (i = 0; i < EXPIRY_CREDIT_DEFAULT; i++)
		put_event(fd, EXPIRY_OP_EXPIRED, i);
	put_event(fd, EXPIRY_OP_MISSED, UINT64_MAX - 1);
	put_event(fd, EXPIRY_OP_MISSED, 7);
	answer(fd, 77);
	drain(fd);
}

/* Copies missed beyond the room are one sum. A server may say any number. */
static void sum_of_missed_copies_has_an_end(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { miss_without_end };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED | EXPIRY_OPEN_OBSERVE,
			   WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	do
		take(h, &record, 1);
	while (record.op == EXPIRY_OP_EXPIRED);
	assert_int_equal(record.op, EXPIRY_OP_MISSED);
	assert_true(record.cookie == UINT64_MAX);
	reconnect_end(&server, h);
}

static void expect_two_acks(int fd)
{
	struct expiry_record credit;

	greet_again(fd);
	/* Their timers first. */
	answer(fd, 0);
	answer(fd, 0);
	answer(fd, 1);
	answer(fd, 2);
	get(fd, &credit, 1);
	/* Two were handed out; what is left of eight is more than half. */
	script_expect(credit.op == EXPIRY_OP_CREDIT && credit.period_ms == 6,
		      "the credit is not behind the acknowledgements");
	put_event(fd, EXPIRY_OP_EXPIRED, 3);
	drain(fd);
}

static void expire_two_and_go(int fd)
{
	struct expiry_record records[3];

	greet(fd, 1000);
	get(fd, records, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	get(fd, records, 2);
}

/* A consumer that only receives and acknowledges does not notice. */
static void consumer_receives_on(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		expire_two_and_go, expect_two_acks
	};
	struct expiry_record got[2], acks[2];
	struct fake server;
	struct expiry *h;
	int i, nr = 0;

	(void)state;
	h = reconnect_open(&server, scripts, ACKING, WAIT_MS);
	while (nr < 2) {
		i = expiry_receive(h, got + nr, 2 - nr, WAIT_MS);
		assert_true(i > 0);
		nr += i;
	}
	for (i = 0; i < 2; i++) {
		acks[i] = reconnect_request(EXPIRY_OP_ACK, got[i].cookie);
		assert_int_equal(acks[i].cookie, i + 1);
	}
	assert_int_equal(expiry_post(h, acks, 2), 2);
	take(h, acks, 2);
	assert_int_equal(expiry_receive(h, got, 2, WAIT_MS), 1);
	assert_int_equal(got[0].cookie, 3);
	reconnect_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_expirations_come_once),
		cmocka_unit_test(held_copies_stay),
		cmocka_unit_test(sum_of_missed_copies_has_an_end),
		cmocka_unit_test(steps_on_two_connections_are_one),
		cmocka_unit_test(credit_follows_the_answer),
		cmocka_unit_test(acks_that_were_carried_out),
		cmocka_unit_test(acks_over_two_breaks),
		cmocka_unit_test(posted_acks_that_were_carried_out),
		cmocka_unit_test(posted_acks_over_breaks),
		cmocka_unit_test(another_answer_about_acks),
		cmocka_unit_test(consumer_receives_on),
	};

	return cmocka_run_group_tests_name("reconnect-consume", tests, NULL, NULL);
}
