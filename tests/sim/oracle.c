// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The oracle of programs that use the library. The wire is known: each request
 * that was sent and each record that arrived. Of that the library must give the
 * program each reply once and in order, and each expiration, whatever the
 * connections go through. docs/decisions/0009-reconnect.md has the rules.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tests/sim/program.h"

#define REFUSED_NS	(5 * SIM_S)

#define fail(p, format, ...) \
	sim_fail("program %u, %s: " format, (p)->number, (p)->action, \
		 ##__VA_ARGS__)

static bool reconnects(const struct program *p)
{
	return p->options.flags & EXPIRY_OPEN_RECONNECT;
}

static bool observes(const struct program *p)
{
	return p->options.flags & EXPIRY_OPEN_OBSERVE;
}

static bool is_event(const struct expiry_record *r)
{
	return r->op == EXPIRY_OP_EXPIRED || r->op == EXPIRY_OP_CLOCK_SET ||
	       r->op == EXPIRY_OP_MISSED;
}

/* ------------------------------------------------------------------------ calls */

static struct call *call_of(struct program *p, const struct expiry_record *r)
{
	uint64_t number = r->cookie & 0xffffffff;

	if (r->cookie >> 32 != (PROGRAM_TAG >> 32 | p->number) ||
	    number >= p->nr_calls)
		fail(p, "cookie %llx is of no request of its own",
		     (unsigned long long)r->cookie);
	return &p->calls[number];
}

void oracle_call(struct program *p, struct expiry_record *record, bool post)
{
	struct call *call;

	if (p->nr_calls == p->max_calls) {
		p->max_calls = p->max_calls * 2 + 64;
		p->calls = sim_realloc(p->calls,
				       p->max_calls * sizeof(*p->calls));
	}
	record->cookie = PROGRAM_TAG | (uint64_t)p->number << 32 | p->nr_calls;
	call = &p->calls[p->nr_calls++];
	*call = (struct call) {
		.asked = *record,
		.begun_ns = sim_now(p->options.clock_id),
		.is_posted = post,
	};
}

/* Returns whether a request may be carried out twice. */
static bool is_idempotent(const struct program *p, const struct call *call)
{
	switch (call->asked.op) {
	case EXPIRY_OP_ARM:
		return p->topic->mode & EXPIRY_MODE_KEYED &&
		       !(call->asked.flags & EXPIRY_F_NEW);
	case EXPIRY_OP_REFRESH:
	case EXPIRY_OP_CANCEL:
	case EXPIRY_OP_ACK:
	case EXPIRY_OP_QUERY:
		return true;
	default:
		return false;
	}
}

/* Returns the request with an absolute deadline. */
static struct expiry_record absolute(const struct call *call)
{
	struct expiry_record r = call->asked;

	if (r.flags & EXPIRY_F_RELATIVE &&
	    (r.op == EXPIRY_OP_ARM || r.op == EXPIRY_OP_REFRESH)) {
		r.flags &= ~EXPIRY_F_RELATIVE;
		r.deadline_ns = r.deadline_ns > UINT64_MAX - call->begun_ns ?
				EXPIRY_NEVER : call->begun_ns + r.deadline_ns;
	}
	return r;
}

static bool same(const struct expiry_record *a, const struct expiry_record *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* --------------------------------------------------------------------- the wire */

/* Returns whether the present call has taken as long as it may. */
static bool is_overdue(const struct program *p)
{
	return p->options.timeout_ms &&
	       sim.mono_ns - p->call_ns >= p->options.timeout_ms * SIM_MS;
}

/* Checks that no request in doubt is overtaken: its timer could expire twice. Those of
 * a call that times out are the program's.
 */
static void check_credit(struct program *p, struct peer *peer, uint32_t credit)
{
	uint64_t open = peer->given + credit - peer->nr_taken;
	uint32_t i;

	if (open > p->options.credit)
		fail(p, "it gives credit for %llu expirations of %u",
		     (unsigned long long)open, p->options.credit);
	for (i = p->done; i < p->nr_calls; i++) {
		const struct call *call = &p->calls[i];

		if (!call->is_posted && is_overdue(p))
			continue;
		if (call->nr_sent && !call->is_done && !call->is_answered &&
		    !call->is_doomed && call->sent_on != peer)
			fail(p, "credit is sent before request %u, which is in doubt",
			     i);
	}
}

static void check_order(struct program *p, const struct peer *peer,
			const struct call *call)
{
	uint32_t i, number = call - p->calls;

	for (i = p->done; i < number; i++) {
		const struct call *earlier = &p->calls[i];

		if (!earlier->is_done && !earlier->is_answered &&
		    !earlier->is_doomed && earlier->sent_on != peer)
			fail(p, "request %u is sent before %u", number, i);
	}
}

static void check_window(struct program *p, const struct peer *peer)
{
	uint32_t i, nr = 1;

	for (i = p->done; i < p->nr_calls; i++)
		nr += !p->calls[i].is_done && !p->calls[i].is_answered &&
		      p->calls[i].sent_on == peer;
	if (p->options.window && nr > p->options.window)
		fail(p, "%u requests are under way, and the window is %u", nr,
		     p->options.window);
}

static void request_sent(struct program *p, struct peer *peer,
			 const struct expiry_record *record)
{
	struct call *call = call_of(p, record);
	struct expiry_record fixed = absolute(call);
	uint32_t number = call - p->calls;

	if (call->is_done || call->is_answered)
		fail(p, "request %u is sent after its answer", number);
	if (call->sent_on == peer)
		fail(p, "request %u is sent twice", number);
	if (call->nr_sent && !reconnects(p))
		fail(p, "request %u is sent again", number);
	if (call->nr_sent && !is_idempotent(p, call))
		fail(p, "request %u is repeated, which is not idempotent", number);
	if (!same(record, &fixed) &&
	    (call->nr_sent || (reconnects(p) && call->is_posted) ||
	     !same(record, &call->asked)))
		fail(p, "request %u is sent as op %u, flags %u, deadline %llu",
		     number, record->op, record->flags,
		     (unsigned long long)record->deadline_ns);
	check_order(p, peer, call);
	check_window(p, peer);
	call->sent_on = peer;
	call->nr_sent++;
	call->is_doomed = false;
}

/* Returns whether an ACK may be in doubt. A posted one is before it is sent again, one of
 * a blocking call when it was.
 */
static bool is_ack_in_doubt(const struct call *call, const struct peer *peer)
{
	if (call->asked.op != EXPIRY_OP_ACK || !peer->program->losses)
		return false;
	if (call->is_posted)
		return !call->is_answered && call->sent_on != peer;
	return call->is_answered && call->answer.status == -ENOENT;
}

/* Notes the answer to a QUERY of the library's own, by which it looks for the timer of
 * an ACK. NULL: it is sent. Returns whether there is such an ACK.
 */
static bool note_query(const struct peer *peer, uint64_t id,
		       const struct expiry_record *answer)
{
	struct program *p = peer->program;
	bool is_there = false;
	uint32_t i;

	for (i = p->done; i < p->nr_calls; i++) {
		struct call *call = &p->calls[i];

		if (!is_ack_in_doubt(call, peer) || call->asked.id != id)
			continue;
		is_there = true;
		if (!answer)
			continue;
		if (answer->status == -ENOENT ||
		    (!answer->status &&
		     answer->deadline_ns > sim_now(p->options.clock_id)))
			call->is_over = true;
		else if (!answer->status)
			call->clock_sets = sim.clock_sets + 1;
	}
	return is_there;
}

static bool is_own_query(const struct expiry_record *request)
{
	return request->op == EXPIRY_OP_QUERY && !request->cookie;
}

void oracle_sent(struct peer *peer, const struct expiry_record *record)
{
	struct program *p = peer->program;
	const struct expiry_hello *hello = (const void *)record;

	trace("client %u sends op %u, flags %u, id %llx, cookie %llx",
	      peer->number, record->op, record->flags,
	      (unsigned long long)record->id,
	      (unsigned long long)record->cookie);
	switch (record->op) {
	case EXPIRY_OP_HELLO:
		if (peer->nr != 1)
			fail(p, "it sends HELLO twice");
		if (hello->flags != (p->options.flags & 0xff) ||
		    hello->clock_id != p->options.clock_id ||
		    hello->version != EXPIRY_WIRE_VERSION ||
		    strncmp(hello->name, p->options.queue, EXPIRY_NAME_MAX))
			fail(p, "its HELLO is not of this queue");
		break;
	case EXPIRY_OP_CREDIT:
		check_credit(p, peer, record->period_ms);
		break;
	case EXPIRY_OP_STAT:
	case EXPIRY_OP_SCAN:
		p->nr_units = 0;
		break;
	default:
		if (!is_own_query(record))
			request_sent(p, peer, record);
		else if (!note_query(peer, record->id, NULL))
			fail(p, "it looks for a timer of no ACK in doubt");
	}
}

void oracle_unit(struct peer *peer, const struct expiry_record *record)
{
	struct program *p = peer->program;

	if (p->nr_units < PROGRAM_UNITS)
		p->units[p->nr_units++] = *record;
}

void oracle_answered(struct peer *peer, const struct expiry_record *record)
{
	const struct expiry_record *request =
		&peer->requests[peer->answered].record;
	struct program *p = peer->program;
	struct call *call;

	if (record->op == EXPIRY_OP_HELLO) {
		/* It is connected again once STAT is answered, too. */
		if (!record->status)
			return;
		if (!p->refused_ns)
			p->refused_ns = sim.mono_ns;
		p->refusal = record->status;
		return;
	}
	if (record->op == EXPIRY_OP_STAT || record->op == EXPIRY_OP_SCAN) {
		if (record->status && record->op == EXPIRY_OP_STAT) {
			if (!p->refused_ns)
				p->refused_ns = sim.mono_ns;
			p->refusal = record->status;
			/* It came after HELLO, to tell the queue from another. */
			if (p->losses && peer->answered == 1)
				p->nr_before = p->nr_events;
		} else if (record->op == EXPIRY_OP_STAT) {
			p->refused_ns = 0;
		}
		oracle_unit(peer, record);
		return;
	}
	if (is_own_query(request)) {
		note_query(peer, request->id, record);
		return;
	}
	call = &p->calls[request->cookie & 0xffffffff];
	call->answer = *record;
	call->is_answered = true;
}

static void add_event(struct program *p, const struct expiry_record *record)
{
	if (p->nr_events == p->max_events) {
		p->max_events = p->max_events * 2 + 64;
		p->events = sim_realloc(p->events,
					p->max_events * sizeof(*p->events));
	}
	p->events[p->nr_events++] = *record;
}

void oracle_event(struct peer *peer, const struct expiry_record *record)
{
	struct program *p = peer->program;
	uint64_t i;

	if (record->op == EXPIRY_OP_MISSED)
		/* In its place, copies that nobody has. */
		for (i = 0; i < record->cookie; i++)
			add_event(p, record);
	else if (record->op == EXPIRY_OP_CLOCK_SET && !observes(p))
		p->nr_clock_sets++;
	else
		add_event(p, record);
}

void oracle_lost(struct program *p)
{
	uint32_t i, last = 0;

	trace("program %u loses its connection", p->number);
	p->losses++;
	for (i = p->done; i < p->nr_calls; i++)
		if (!p->calls[i].is_done && !p->calls[i].is_answered &&
		    !is_idempotent(p, &p->calls[i]))
			last = i + 1;
	for (i = p->done; i < last; i++)
		p->calls[i].is_doomed = !p->calls[i].is_answered;
	if (!observes(p))
		p->nr_droppable = p->nr_events;
	/* The pause went on: copies that came with it are not the program's. */
	else if (p->nr_before < p->nr_events)
		p->nr_events = p->nr_before;
	p->nr_before = UINT32_MAX;
	/* One that came with the end may be lost, as those without a connection. */
	p->nr_clock_lost = p->nr_clock_sets;
}

void oracle_unconnected(struct program *p, int error)
{
	/* A server that does not run is waited for. */
	if (error == -ECONNREFUSED || error == -ENOENT) {
		p->refused_ns = 0;
		return;
	}
	if (!p->refused_ns)
		p->refused_ns = sim.mono_ns;
	p->refusal = error;
}

void oracle_reset(struct program *p)
{
	p->done = p->nr_calls;
	p->next = p->nr_calls;
	p->nr_events = 0;
	p->nr_taken = 0;
	p->nr_droppable = 0;
	p->missed = 0;
	p->nr_before = UINT32_MAX;
	p->has_clock_set = false;
	p->nr_clock_sets = 0;
	p->nr_clock_lost = 0;
	p->is_late = false;
	p->granted = 0;
	p->losses = 0;
	p->error = 0;
	p->refusal = 0;
	p->refused_ns = 0;
}

/* ------------------------------------------------------------------ the program */

/* Returns whether the timer of an ACK may have been found not to be due. */
static bool may_be_over(const struct program *p, const struct call *call)
{
	/* The library may have looked at the clock after a step. */
	return call->is_over ||
	       (call->clock_sets && p->options.clock_id == CLOCK_REALTIME &&
		call->clock_sets != sim.clock_sets + 1);
}

static void check_reply(struct program *p, struct call *call,
			const struct expiry_record *r)
{
	struct expiry_record lost = absolute(call);
	uint32_t number = call - p->calls;

	call->is_done = true;
	if (call->is_answered) {
		/* It may be due meanwhile, or the QUERY's answer may be lost. */
		if (may_be_over(p, call) && call->answer.status == -ENOENT &&
		    !r->status)
			call->answer.status = 0;
		if (!same(&call->answer, r))
			fail(p, "request %u is answered %d, and was %d", number,
			     r->status, call->answer.status);
		return;
	}
	if (r->status != -ECONNRESET || !reconnects(p) || !p->losses)
		fail(p, "request %u is answered %d before the daemon did", number,
		     r->status);
	if (!call->is_doomed)
		fail(p, "request %u could have been repeated", number);
	lost.status = -ECONNRESET;
	if (same(&lost, r))
		return;
	lost = call->asked;
	lost.status = -ECONNRESET;
	if (!same(&lost, r))
		fail(p, "request %u returns changed", number);
}

static void forget_done(struct program *p)
{
	while (p->done < p->nr_calls && p->calls[p->done].is_done)
		p->done++;
}

void oracle_replies(struct program *p, const struct expiry_record *records,
		    int nr, uint32_t count)
{
	uint32_t i, first = p->nr_calls - count;

	for (i = 0; i < count; i++) {
		struct call *call = &p->calls[first + i];

		if ((int)i >= nr) {
			call->is_done = true;
			continue;
		}
		check_reply(p, call, &records[i]);
	}
	forget_done(p);
	if (nr == (int)count)
		return;
	oracle_failed(p, nr < 0 ? nr : 0);
}

static void took_reply(struct program *p, const struct expiry_record *r)
{
	while (p->next < p->nr_calls && !p->calls[p->next].is_posted)
		p->next++;
	if (p->next == p->nr_calls)
		fail(p, "a reply to nothing that was posted, op %u", r->op);
	check_reply(p, &p->calls[p->next++], r);
}

/* A copy: those before it are left out if MISSED counted them. */
static void took_copy(struct program *p, const struct expiry_record *r)
{
	if (r->op == EXPIRY_OP_MISSED) {
		p->missed += r->cookie;
		return;
	}
	while (p->nr_taken < p->nr_events && !same(&p->events[p->nr_taken], r)) {
		if (!p->missed)
			fail(p, "copy %u is left out", p->nr_taken);
		p->missed--;
		p->nr_taken++;
	}
	if (p->nr_taken == p->nr_events)
		fail(p, "a copy that did not arrive");
	p->nr_taken++;
}

/* Of several that it had not taken, the program gets the last. */
static void took_clock_set(struct program *p)
{
	if (!p->nr_clock_sets)
		fail(p, "CLOCK_SET, which did not arrive");
	p->nr_clock_sets--;
	if (p->nr_clock_lost > p->nr_clock_sets)
		p->nr_clock_lost = p->nr_clock_sets;
	p->has_clock_set = true;
}

/* Returns whether the first @old of @nr expirations are the next, and the others
 * are the first after those that a lost connection left.
 */
static bool expirations_fit(const struct program *p,
			    const struct expiry_record *records, uint32_t nr,
			    uint32_t old)
{
	uint32_t first = p->nr_taken + old, i;

	if (first < p->nr_droppable)
		first = p->nr_droppable;
	if (first + nr - old > p->nr_events)
		return false;
	for (i = 0; i < nr; i++)
		if (!same(&records[i], i < old ? &p->events[p->nr_taken + i] :
					       &p->events[first + i - old]))
			return false;
	return true;
}

static void took_expirations(struct program *p,
			     const struct expiry_record *records, uint32_t nr)
{
	uint32_t old = 0, most = 0;

	if (p->nr_droppable > p->nr_taken)
		most = p->nr_droppable - p->nr_taken;
	if (most > nr)
		most = nr;
	while (!expirations_fit(p, records, nr, old))
		if (old++ == most)
			fail(p, "%u expirations are not those after the first %u",
			     nr, p->nr_taken);
	p->nr_taken += old;
	if (p->nr_taken < p->nr_droppable)
		p->nr_taken = p->nr_droppable;
	p->nr_taken += nr - old;
	p->granted -= p->granted < nr ? p->granted : nr;
}

void oracle_took(struct program *p, const struct expiry_record *records, int nr)
{
	struct expiry_record *expired = sim_alloc((nr + 1) * SIM_RECORD);
	uint32_t nr_expired = 0;
	int i;

	for (i = 0; i < nr; i++) {
		trace("program %u takes op %u status %d id %llx", p->number,
		      records[i].op, records[i].status,
		      (unsigned long long)records[i].id);
		if (!is_event(&records[i]))
			took_reply(p, &records[i]);
		else if (observes(p))
			took_copy(p, &records[i]);
		else if (records[i].op == EXPIRY_OP_CLOCK_SET)
			took_clock_set(p);
		else
			expired[nr_expired++] = records[i];
	}
	took_expirations(p, expired, nr_expired);
	sim_free(expired);
	forget_done(p);
}

/* Returns whether the daemon may have ended the connection. With declared queues the
 * program's rights may have changed.
 */
static bool may_be_lost(const struct program *p)
{
	return peer_may_end(p->peer) || sim.declares;
}

void oracle_failed(struct program *p, int error)
{
	bool is_late = is_overdue(p);

	if (p->error && error && error != p->error)
		fail(p, "it fails with %s, and was broken by %s",
		     strerror(-error), strerror(-p->error));
	switch (-error) {
	case 0:
		if (!p->losses && !is_late && !may_be_lost(p))
			fail(p, "it gives up for no reason");
		p->is_late = is_late;
		return;
	case ETIMEDOUT:
		if (!is_late && !p->error && !p->is_late)
			fail(p, "it is timed out too early");
		break;
	case ECONNRESET:
		if (!may_be_lost(p))
			fail(p, "its connection is lost for no reason");
		if (reconnects(p))
			fail(p, "it does not reconnect");
		break;
	case ESTALE:
		/* One that is being read is freed later. */
		if (!p->topic->nr_drops && !engine_removes(p->topic->name))
			fail(p, "its queue is not lost");
		break;
	default:
		if (!p->error && (!reconnects(p) || p->refusal != error ||
				  sim.mono_ns - p->refused_ns < REFUSED_NS))
			fail(p, "it fails with %s", strerror(-error));
	}
	if (!reconnects(p) || error != -ETIMEDOUT)
		p->error = error;
}

void oracle_scan(struct program *p, const struct expiry_record *rows, int nr,
		 uint64_t cursor)
{
	struct expiry_record row;
	int i;

	if (nr < 0) {
		if (p->nr_units && p->units[0].status == nr)
			return;
		oracle_failed(p, nr);
		return;
	}
	if (p->nr_units != (uint32_t)nr + 1)
		fail(p, "SCAN returns %d rows of %u", nr, p->nr_units - 1);
	for (i = 0; i < nr; i++) {
		row = p->units[i];
		row.op = EXPIRY_OP_QUERY;
		if (!same(&row, &rows[i]))
			fail(p, "row %d of SCAN has changed", i);
	}
	if (cursor != p->units[nr].cookie)
		fail(p, "SCAN goes on elsewhere");
}

void oracle_stat(struct program *p, const struct expiry_stat *stat)
{
	if (p->nr_units < 1 + sizeof(*stat) / SIM_RECORD ||
	    memcmp(stat, &p->units[1], sizeof(*stat)))
		fail(p, "STAT's counters have changed");
}

void oracle_quiet(struct program *p)
{
	uint32_t i;

	if (p->error || !p->peer->is_open || p->peer->is_gone)
		return;
	for (i = p->done; i < p->nr_calls; i++)
		if (!p->calls[i].is_done)
			fail(p, "request %u has no reply", i);
	for (i = p->nr_taken; i < p->nr_events; i++) {
		if (p->missed)
			p->missed--;
		else if (i >= p->nr_droppable)
			fail(p, "expiration %u did not reach the program", i);
	}
	p->nr_taken = p->nr_events;
	if (p->nr_clock_sets > p->nr_clock_lost && !p->has_clock_set)
		fail(p, "CLOCK_SET did not reach the program");
	if (!(p->options.flags & EXPIRY_OPEN_CONSUME) || p->peer->may_end ||
	    p->peer->written % SIM_RECORD)
		return;
	if (p->options.flags & EXPIRY_OPEN_MANUAL &&
	    p->peer->given - p->peer->nr_taken != p->granted)
		fail(p, "it has credit for %u, and gave %llu", p->granted,
		     (unsigned long long)(p->peer->given - p->peer->nr_taken));
	if (!(p->options.flags & EXPIRY_OPEN_MANUAL) &&
	    p->peer->given == p->peer->nr_taken)
		fail(p, "it gives no credit");
}
