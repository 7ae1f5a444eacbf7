// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs that use the library on the simulated daemon. Each is a thread of its
 * own, which waits for a step, makes one call of the library or a few, and waits
 * again.
 */
#include <errno.h>
#include <string.h>

#include "tests/sim/program.h"

#define BATCH_MAX	40
#define CREDIT_MAX	64

static struct program programs[PROGRAMS];
static uint32_t nr_programs;

/* ------------------------------------------------------------------ connections */

struct stream *program_connect(void)
{
	struct program *p = thread_data();
	struct rng *rng = &sim.kernel;
	struct peer *peer;

	peer = peer_new(1000, 64 + rng_below(rng, 1 << (4 + rng_below(rng, 12))),
			64 + rng_below(rng, 1 << (4 + rng_below(rng, 12))));
	if (!peer)
		return NULL;
	trace("client %u is a connection of program %u", peer->number, p->number);
	peer->kind = PEER_PROGRAM;
	peer->program = p;
	peer->topic = p->topic;
	peer->cut_up = SIZE_MAX;
	peer->cut_down = SIZE_MAX;
	if (sim.phase == SIM_RUN && rng_hits(rng, 300))
		peer->cut_up = 1 + rng_below(rng, 1 << rng_below(rng, 13));
	if (sim.phase == SIM_RUN && rng_hits(rng, 300))
		peer->cut_down = 1 + rng_below(rng, 1 << rng_below(rng, 13));
	p->peer = peer;
	return peer->stream;
}

static void record_sent(struct peer *peer, const struct expiry_record *record)
{
	struct request *request = peer_add(peer, record);

	request->is_credit = record->op == EXPIRY_OP_CREDIT;
	if (request == peer->requests)
		memcpy(&peer->hello, record, sizeof(peer->hello));
	oracle_sent(peer, record);
	peer_written(peer, request);
}

void program_send(struct peer *peer, const void *data, size_t n)
{
	const char *bytes = data;

	for (; n; n--, bytes++) {
		peer->outgoing[peer->written++ % SIM_RECORD] = *bytes;
		if (!(peer->written % SIM_RECORD))
			record_sent(peer, (void *)peer->outgoing);
	}
}

void program_hang_up(struct peer *peer)
{
	struct program *p = peer->program;

	if (p->peer == peer)
		oracle_lost(p);
	peer_leave(peer);
}

void programs_cut(struct rng *rng)
{
	struct program *p = &programs[rng_below(rng, PROGRAMS)];

	if (!p->peer || p->peer->is_gone || !p->peer->stream->other)
		return;
	trace("program %u: its connection is cut", p->number);
	p->peer->may_end = true;
	stream_cut(p->peer->stream, rng);
}

/* ------------------------------------------------------------------------ calls */

static void begin(struct program *p, const char *action)
{
	trace("program %u: %s", p->number, action);
	p->action = action;
	p->call_ns = sim.mono_ns;
	/* Expirations that an earlier call lost come again. */
	if (p->nr_taken < p->nr_droppable)
		p->nr_taken = p->nr_droppable;
}

static void program_open(struct program *p, struct rng *rng)
{
	static const uint32_t windows[] = { 0, 1, 8, 64 };
	static const uint32_t timeouts[] = { 0, 0, 20, 3000 };
	int r;

	p->topic = topic_any(rng);
	p->options = (struct expiry_options) {
		.size = sizeof(p->options),
		.flags = p->topic->mode,
		.queue = p->topic->name,
		.clock_id = p->topic->clock_id,
		.credit = 1 + rng_below(rng, CREDIT_MAX),
		.window = windows[rng_below(rng, 4)],
		.timeout_ms = timeouts[rng_below(rng, 4)],
	};
	if (rng_hits(rng, 600))
		p->options.flags |= EXPIRY_OPEN_CONSUME;
	else if (rng_hits(rng, 300))
		p->options.flags |= EXPIRY_OPEN_OBSERVE;
	if (p->options.flags & EXPIRY_OPEN_CONSUME && rng_hits(rng, 200))
		p->options.flags |= EXPIRY_OPEN_MANUAL;
	if (rng_hits(rng, 800) && (!(p->options.flags & EXPIRY_OPEN_CONSUME) ||
				   p->topic->mode & EXPIRY_MODE_ACK))
		p->options.flags |= EXPIRY_OPEN_RECONNECT;
	oracle_reset(p);
	begin(p, "open");
	r = expiry_open(&p->handle, "unix:/simulated", &p->options);
	trace("program %u opens '%s', flags %#x: %d", p->number,
	      p->topic->name, p->options.flags, r);
	if (r < 0)
		p->handle = NULL;
}

static void program_close(struct program *p)
{
	begin(p, "close");
	p->peer = NULL;
	expiry_close(p->handle);
	p->handle = NULL;
}

static uint32_t make_batch(struct program *p, struct expiry_record *records,
			   struct rng *rng, bool post)
{
	uint32_t i, nr = 1 + rng_below(rng, rng_hits(rng, 500) ? 3 : BATCH_MAX);

	memset(records, 0, nr * sizeof(*records));
	for (i = 0; i < nr; i++) {
		make_request(p->topic, &records[i], rng);
		oracle_call(p, &records[i], post);
	}
	return nr;
}

static void program_submit(struct program *p, struct rng *rng)
{
	struct expiry_record records[BATCH_MAX];
	uint32_t count;
	int nr;

	begin(p, "submit");
	count = make_batch(p, records, rng, false);
	nr = expiry_submit(p->handle, records, count);
	trace("program %u: submit returns %d of %u", p->number, nr, count);
	oracle_replies(p, records, nr, count);
}

static void program_post(struct program *p, struct rng *rng)
{
	struct expiry_record records[BATCH_MAX];
	uint32_t count;
	int nr;

	begin(p, "post");
	count = make_batch(p, records, rng, true);
	nr = expiry_post(p->handle, records, count);
	if (nr < 0)
		oracle_failed(p, nr);
	/* Requests that were not taken were not asked. */
	p->nr_calls -= nr < 0 ? count : count - nr;
	if (rng_hits(rng, 500))
		expiry_flush(p->handle);
}

/* Takes up to @max records. Returns how many. */
static int take(struct program *p, uint32_t max)
{
	struct expiry_record records[CREDIT_MAX * 2];
	struct expiry_record acks[CREDIT_MAX * 2];
	int i, nr, nr_acks = 0;

	nr = expiry_next(p->handle, records, max);
	if (nr > (int)max)
		sim_fail("program %u, %s: it takes %d records of %u", p->number,
			 p->action, nr, max);
	if (nr < 0)
		oracle_failed(p, nr);
	else
		oracle_took(p, records, nr);
	if (nr <= 0 || sim.phase != SIM_RUN || !(p->topic->mode & EXPIRY_MODE_ACK))
		return nr;
	for (i = 0; i < nr; i++)
		if (records[i].op == EXPIRY_OP_EXPIRED) {
			acks[nr_acks] = (struct expiry_record) {
				.op = EXPIRY_OP_ACK,
				.id = records[i].id,
			};
			oracle_call(p, &acks[nr_acks++], true);
		}
	i = expiry_post(p->handle, acks, nr_acks);
	p->nr_calls -= i < 0 ? nr_acks : nr_acks - i;
	return nr;
}

static void program_take(struct program *p, struct rng *rng)
{
	begin(p, "next");
	take(p, 1 + rng_below(rng, rng_hits(rng, 500) ? 4 : 2 * CREDIT_MAX));
}

static void program_wait(struct program *p, struct rng *rng)
{
	int r;

	begin(p, "wait");
	r = expiry_wait(p->handle, 1 + rng_below(rng, 30));
	if (r < 0 && r != -EINTR)
		oracle_failed(p, r);
	take(p, 2 * CREDIT_MAX);
}

static void program_look(struct program *p, struct rng *rng)
{
	struct expiry_record rows[32];
	struct expiry_stat stat;
	uint64_t cursor = 0;
	int r;

	if (rng_hits(rng, 500)) {
		begin(p, "scan");
		r = expiry_scan(p->handle, &cursor, rows, 1 + rng_below(rng, 32));
		oracle_scan(p, rows, r, cursor);
		return;
	}
	begin(p, "stat");
	r = expiry_stat(p->handle, &stat, NULL, 0);
	if (!r)
		oracle_stat(p, &stat);
	else if (!p->nr_units || p->units[0].status != r)
		oracle_failed(p, r);
}

static void program_credit(struct program *p, struct rng *rng)
{
	uint32_t nr = 1 + rng_below(rng, p->options.credit);
	int r;

	if (!(p->options.flags & EXPIRY_OPEN_MANUAL))
		return;
	begin(p, "credit");
	p->granted += nr;
	r = expiry_credit(p->handle, nr);
	if (r == -ENOBUFS || (r < 0 && p->error))
		p->granted -= nr;
	if (r < 0 && r != -ENOBUFS)
		oracle_failed(p, r);
}

static void act(struct program *p, struct rng *rng)
{
	uint64_t what = rng_below(rng, 100);

	if (!p->handle)
		program_open(p, rng);
	else if (p->error && what < 50)
		program_close(p);
	else if (what < 25)
		program_submit(p, rng);
	else if (what < 55)
		program_post(p, rng);
	else if (what < 80)
		program_take(p, rng);
	else if (what < 86)
		program_wait(p, rng);
	else if (what < 93)
		program_look(p, rng);
	else if (what < 98)
		program_credit(p, rng);
	else
		program_close(p);
}

/* Takes all that is there, and waits for what is due to come. */
static void drain(struct program *p)
{
	int nr = 0;

	begin(p, "drain");
	p->is_quiet = true;
	while (p->handle && !p->error && (nr = take(p, 2 * CREDIT_MAX)) > 0)
		;
	if (!p->handle || p->error)
		return;
	if (p->done < p->nr_calls || expiry_flush(p->handle) ||
	    !p->peer->is_open || p->peer->is_gone) {
		p->is_quiet = false;
		expiry_wait(p->handle, 1500);
	}
}

/* ------------------------------------------------------------------------ threads */

static bool has_to_go(void *data)
{
	return ((struct program *)data)->go;
}

static void *program_main(void *data)
{
	struct program *p = data;
	struct rng rng;

	while (!p->is_last) {
		p->action = NULL;
		thread_wait(has_to_go, p, EXPIRY_NEVER);
		rng.state = p->go;
		p->go = 0;
		if (sim.phase == SIM_RUN)
			act(p, &rng);
		else if (!p->is_last)
			drain(p);
	}
	if (p->handle)
		program_close(p);
	sim_free(p->calls);
	sim_free(p->events);
	p->has_ended = true;
	return NULL;
}

void programs_start(struct rng *rng)
{
	uint32_t i;

	/* None outlives the machine. */
	nr_programs = sim.crashes ? 0 : rng_below(rng, PROGRAMS + 1);
	for (i = 0; i < nr_programs; i++) {
		programs[i].number = i;
		thread_start_program(program_main, &programs[i]);
	}
}

/* Gives a program its next action, if it waits for one. */
static bool start(struct program *p, uint64_t go)
{
	if (p->action || p->go || p->has_ended)
		return false;
	p->go = go | 1;
	p->is_quiet = false;
	return true;
}

void programs_step(struct rng *rng)
{
	uint32_t i;

	for (i = 0; i < nr_programs; i++)
		if (rng_hits(rng, 300))
			start(&programs[i], rng_next(rng));
}

bool programs_drain(void)
{
	bool some = false;
	uint32_t i;

	for (i = 0; i < nr_programs; i++) {
		struct program *p = &programs[i];

		if (p->action)
			continue;
		if (p->is_quiet && (!p->handle || p->error ||
				    !file_is_readable(expiry_fd(p->handle)))) {
			if (p->handle)
				oracle_quiet(p);
			continue;
		}
		some |= start(p, 1);
	}
	return some;
}

void programs_fail(void)
{
	uint32_t i;

	for (i = 0; i < nr_programs; i++)
		if (!programs[i].has_ended && programs[i].action)
			sim_fail("program %u hangs: %s", i, programs[i].action);
}

bool programs_close(void)
{
	bool all = true;
	uint32_t i;

	for (i = 0; i < nr_programs; i++) {
		struct program *p = &programs[i];

		if (p->has_ended)
			continue;
		all = false;
		p->is_last = true;
		start(p, 1);
	}
	return all;
}
