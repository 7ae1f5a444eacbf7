// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The clients: honest ones and others. Each holds what it receives against what it
 * asked and what the engine gave for it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "tests/sim/lives.h"
#include "tests/sim/program.h"

#define CREDIT_MOST	64
#define HELLO_LATE_NS	(10 * SIM_S)
#define FEW_CLIENTS	4	/* of three queues: most often one has the queue alone */

struct peer **peers;
uint32_t nr_peers;
static uint32_t first_peer;	/* all before are gone */

static void peer_fail(const struct peer *peer, const struct expiry_record *r,
		      const char *why)
{
	sim_fail("client %u, reply %u: %s: op %u, flags %u, status %d, period %u, id %llx, deadline %llu, cookie %llx",
		 peer->number, peer->answered, why, r->op, r->flags, r->status,
		 r->period_ms, (unsigned long long)r->id,
		 (unsigned long long)r->deadline_ns,
		 (unsigned long long)r->cookie);
}

/* ------------------------------------------------------------------- replies */

static bool is_allowed(const struct peer *peer,
		       const struct expiry_record *asked, int status)
{
	switch (status) {
	case -EACCES:
		return peer->hello.flags & EXPIRY_HELLO_OBSERVE || peer->uid;
	case -EBUSY:
		return asked->op != EXPIRY_OP_CANCEL &&
		       asked->op != EXPIRY_OP_ACK &&
		       asked->op != EXPIRY_OP_CLEAR;
	case -EDQUOT:
		return asked->op == EXPIRY_OP_ARM;
	case -ENOENT:
		/* It asked for no queue, or was refused a DROP that is done. */
		return peer->is_dropped || peer->has_dropped ||
		       (!peer->hello.name[0] &&
		       peer->hello.flags == EXPIRY_HELLO_EXISTING);
	case -EIO:
		return sim.broken || (peer->is_durable && disk_has_failed());
	case -ENOSPC:
		return peer->is_durable && disk_has_failed();
	case -ECANCELED:
		/* A cursor of another life of the queue, or an invented one. */
		return asked->op == EXPIRY_OP_SCAN && asked->id;
	case -ENOMEM:
		return sim.has_failed;
	case -EINVAL:
	case -EPROTO:
	case 0:
		return asked->op >= EXPIRY_OP_HELLO &&
		       asked->op <= EXPIRY_OP_QUEUES;
	default:
		return false;
	}
}

static bool is_hello_allowed(const struct peer *peer, int status)
{
	switch (status) {
	case 0:
		return true;
	case -EINVAL:
		return sim.has_lied;
	case -EIO:
		return peer->topic->is_durable && disk_has_failed();
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EOPNOTSUPP:
		return peer->kind == PEER_LIAR;
	case -ENOENT:
		return peer->hello.flags & (EXPIRY_HELLO_EXISTING |
					    EXPIRY_HELLO_OBSERVE);
	case -EACCES:
		/* A file with a fault. */
		return peer->uid || sim.declares;
	case -EBUSY:
	case -EDQUOT:
	case -ENOSPC:
		return true;
	case -ENOMEM:
		/* Or the limit of connections came down meanwhile. */
		return sim.has_failed || sim.reloads;
	case -ETIMEDOUT:
		return sim.mono_ns - peer->connected_ns >= HELLO_LATE_NS;
	default:
		return false;
	}
}

static void hello_answered(struct peer *peer, const struct expiry_record *r)
{
	if (r->op != EXPIRY_OP_HELLO)
		peer_fail(peer, r, "HELLO is answered by another op");
	if (!is_hello_allowed(peer, r->status))
		peer_fail(peer, r, "HELLO is refused without a reason");
	if (peer->program)
		oracle_answered(peer, r);
	peer->answered++;
	if (r->status) {
		peer->is_refused = true;
		peer->may_end = true;
	} else {
		peer->is_open = true;
		peer->is_durable = r->flags & EXPIRY_HELLO_DURABLE;
		if (peer->is_durable)
			past_attached(peer->hello.name,
				      peer->connected_ns);
		sim.connections++;
	}
}

static void remember_id(struct topic *topic, uint64_t id)
{
	topic->ids[topic->nr_ids++ % 64] = id;
}

/* Returns whether the record ends the reply. */
static bool is_last(struct peer *peer, const struct expiry_record *r)
{
	switch (r->status ? 0 : r->op) {
	case EXPIRY_OP_STAT:
		peer->skip = r->period_ms;
		return true;
	case EXPIRY_OP_QUEUES:
		peer->skip = r->period_ms;
		return !r->period_ms;
	case EXPIRY_OP_SCAN:
		return !r->id;
	default:
		return true;
	}
}

/* Returns whether the engine's answer was refused, because the disk has failed. */
static bool is_refused_late(const struct peer *peer,
			    const struct request *request,
			    const struct expiry_record *r)
{
	struct expiry_record expected = request->result;

	if (!peer->is_durable || !disk_has_failed() || expected.status ||
	    (r->status != -EIO && r->status != -ENOSPC))
		return false;
	expected.status = r->status;
	return !memcmp(&expected, r, sizeof(*r));
}

static void answered(struct peer *peer, const struct expiry_record *r)
{
	struct request *request;
	struct expiry_record expected;

	while (peer->answered < peer->nr &&
	       peer->requests[peer->answered].is_credit)
		peer->answered++;
	if (peer->answered == peer->nr ||
	    SIM_RECORD * (peer->answered + 1) > peer->written)
		peer_fail(peer, r, "a reply without a request");
	request = &peer->requests[peer->answered];
	if (request->is_submitted) {
		if (memcmp(&request->result, r, sizeof(*r)) &&
		    !is_refused_late(peer, request, r))
			peer_fail(peer, r, "not the reply of the engine");
		if (peer->is_durable && !r->status)
			past_answered(peer->hello.name, request->change);
		if (!r->status && r->op == EXPIRY_OP_ARM)
			remember_id(peer->topic, r->id);
		if (peer->program)
			oracle_answered(peer, r);
		peer->answered++;
		return;
	}
	if (r->op != request->record.op)
		peer_fail(peer, r, "a reply to another request");
	if (!is_allowed(peer, &request->record, r->status))
		peer_fail(peer, r, "a status without a reason");
	expected = request->record;
	expected.status = r->status;
	if (r->status && memcmp(&expected, r, sizeof(*r)))
		peer_fail(peer, r, "a refused request has changed");
	if (!is_last(peer, r)) {
		peer->in_rows = true;
		if (peer->is_durable && r->op == EXPIRY_OP_SCAN)
			past_shown(peer->hello.name, r);
		if (peer->program)
			oracle_unit(peer, r);
		return;
	}
	peer->in_rows = false;
	if (peer->program)
		oracle_answered(peer, r);
	if (r->op == EXPIRY_OP_DROP && !r->status) {
		peer->is_dropped = true;
		if (peer->is_durable)
			past_answered(peer->hello.name, peer->dropped);
	}
	peer->answered++;
}

/* --------------------------------------------------------------- expirations */

void peer_expect(struct peer *peer, const struct expiry_record *records,
		 uint32_t nr)
{
	if (peer->nr_expected + nr > peer->expected_max) {
		peer->expected_max = peer->expected_max * 2 + nr;
		peer->expected = sim_realloc(peer->expected, peer->expected_max *
					     sizeof(*peer->expected));
	}
	memcpy(peer->expected + peer->nr_expected, records,
	       nr * sizeof(*records));
	peer->nr_expected += nr;
	peer->collected += nr;
}

/* An observer gets each delivery, or a MISSED record with the number left out. */
static void copied(struct peer *peer, const struct expiry_record *r)
{
	while (peer->nr_taken < peer->nr_expected &&
	       memcmp(&peer->expected[peer->nr_taken], r, sizeof(*r))) {
		if (!peer->missed)
			peer_fail(peer, r, "a copy before it is left out");
		peer->missed--;
		peer->nr_taken++;
	}
	if (peer->nr_taken == peer->nr_expected)
		peer_fail(peer, r, "a copy of what was not delivered");
	peer->nr_taken++;
}

static void expired(struct peer *peer, const struct expiry_record *r)
{
	if (peer->hello.flags & EXPIRY_HELLO_OBSERVE) {
		copied(peer, r);
		return;
	}
	if (!(peer->hello.flags & EXPIRY_HELLO_CONSUME))
		peer_fail(peer, r, "an expiration for no consumer");
	if (peer->nr_taken == peer->nr_expected ||
	    memcmp(&peer->expected[peer->nr_taken], r, sizeof(*r)))
		peer_fail(peer, r, "not the expiration that is next");
	if (peer->hello.clock_id != CLOCK_REALTIME &&
	    r->deadline_ns > sim_now(peer->hello.clock_id))
		peer_fail(peer, r, "an expiration is early");
	if (peer->is_durable)
		past_expired(peer->hello.name, peer->hello.clock_id, r);
	peer->nr_taken++;
	if (peer->hello.flags & EXPIRY_HELLO_ACK && !peer->is_dropped &&
	    !peer->program &&
	    sim.phase == SIM_RUN && rng_hits(&sim.kernel, 600)) {
		struct expiry_record ack = {
			.op = EXPIRY_OP_ACK,
			.id = r->id,
			.cookie = peer_tag(peer),
		};

		peer_add(peer, &ack);
	}
}

static bool is_outgoing(const struct expiry_record *r)
{
	return !r->status && (r->op == EXPIRY_OP_EXPIRED ||
			      r->op == EXPIRY_OP_CLOCK_SET ||
			      r->op == EXPIRY_OP_MISSED);
}

/* Checks that the counters in the body of STAT, or of a row of QUEUES, are the
 * engine's.
 */
static void body_received(struct peer *peer, const struct expiry_record *r)
{
	const uint32_t units = sizeof(peer->body) / SIM_RECORD;

	if (peer->program)
		oracle_unit(peer, r);
	if (peer->nr_body < units) {
		peer->body[peer->nr_body++] = *r;
		if (peer->nr_body == units && !engine_gave_stat((void *)peer->body))
			peer_fail(peer, r, "counters that the engine did not give");
	}
	if (!--peer->skip)
		peer->nr_body = 0;
}

static void received(struct peer *peer, const struct expiry_record *r)
{
	if (peer->skip) {
		body_received(peer, r);
		return;
	}
	trace("client %u gets op %u status %d id %llx", peer->number, r->op,
	      r->status, (unsigned long long)r->id);
	if (!peer->is_open) {
		hello_answered(peer, r);
		return;
	}
	if (!is_outgoing(r)) {
		answered(peer, r);
		return;
	}
	if (peer->in_rows)
		peer_fail(peer, r, "an expiration inside a reply");
	if (peer->program)
		oracle_event(peer, r);
	if (r->op == EXPIRY_OP_EXPIRED)
		expired(peer, r);
	else if (r->op == EXPIRY_OP_MISSED &&
		 !(peer->hello.flags & EXPIRY_HELLO_OBSERVE))
		peer_fail(peer, r, "MISSED for no observer");
	else if (r->op == EXPIRY_OP_MISSED)
		peer->missed += r->cookie;
	else if (r->op == EXPIRY_OP_CLOCK_SET &&
		 (peer->hello.clock_id != CLOCK_REALTIME || !sim.clock_sets))
		peer_fail(peer, r, "CLOCK_SET, but the clock was not");
}

/* ----------------------------------------------------------- reading, writing */

void peer_leave(struct peer *peer)
{
	trace("client %u closes", peer->number);
	peer->is_gone = true;
	peer->may_end = true;
	stream_close(peer->stream);
	peer->stream = NULL;
	while (first_peer < nr_peers && peers[first_peer]->is_gone)
		first_peer++;
}

void peer_receive(struct peer *peer, const char *data, size_t n)
{
	size_t some;

	while (n) {
		some = SIM_RECORD - peer->nr_partial;
		if (some > n)
			some = n;
		memcpy(peer->partial + peer->nr_partial, data, some);
		data += some;
		n -= some;
		peer->nr_partial += some;
		if (peer->nr_partial == SIM_RECORD) {
			peer->nr_partial = 0;
			received(peer, (void *)peer->partial);
		}
	}
}

bool peer_may_end(const struct peer *peer)
{
	return peer->may_end || sim.has_failed || sim.forgives ||
	       /* Dropped, and freed when its read ends. */
	       (peer->hello.flags & EXPIRY_HELLO_OBSERVE &&
		engine_removes(peer->hello.name));
}

void peer_check_end(const struct peer *peer)
{
	if (peer_may_end(peer))
		return;
	/* Its rights have changed. */
	if (sim.declares && peer->uid)
		return;
	/* Replies that it does not read, also that to HELLO, were in one piece with
	 * others.
	 */
	if ((peer->is_durable || (peer->topic && peer->topic->is_durable)) &&
	    disk_has_failed())
		return;
	sim_fail("client %u is ended %s", peer->number,
		 peer->nr_partial ? "inside a record" : "without a reason");
}

/* Reads up to @most bytes. Returns how many. */
static size_t peer_read(struct peer *peer, size_t most)
{
	char data[4096];
	size_t done = 0, n;

	while (done < most) {
		n = most - done < sizeof(data) ? most - done : sizeof(data);
		n = stream_read(peer->stream, data, n);
		if (!n)
			break;
		done += n;
		peer_receive(peer, data, n);
	}
	if (peer->stream->len || !peer->stream->is_ended)
		return done;
	peer_check_end(peer);
	peer_leave(peer);
	return done + 1;
}

/* A request that ends the connection is on its way. */
void peer_written(struct peer *peer, const struct request *request)
{
	const struct expiry_record *r = &request->record;

	if (request == peer->requests)
		return;
	if (request->is_credit) {
		peer->given += r->period_ms;
		/* The rest of a credit beyond the limit is not given. */
		if (peer->given > peer->collected + CREDIT_MOST)
			peer->is_unclear = true;
	}
	if (r->op == EXPIRY_OP_HELLO ||
	    (r->op == EXPIRY_OP_CREDIT &&
	     (!request->is_credit ||
	      !(peer->hello.flags & EXPIRY_HELLO_CONSUME))))
		peer->may_end = true;
}

static size_t peer_write(struct peer *peer, size_t most)
{
	size_t done = 0, n, at;

	while (done < most && peer->written < SIM_RECORD * peer->nr) {
		const struct request *request =
			&peer->requests[peer->written / SIM_RECORD];

		at = peer->written % SIM_RECORD;
		n = SIM_RECORD - at;
		n = stream_write(peer->stream,
				 (const char *)&request->record + at,
				 n < most - done ? n : most - done);
		if (!n)
			break;
		done += n;
		peer->written += n;
		if (!(peer->written % SIM_RECORD))
			peer_written(peer, request);
	}
	return done;
}

/* -------------------------------------------------------------------- the steps */

struct peer *peer_new(uid_t uid, size_t up_max, size_t down_max)
{
	struct peer *peer = sim_alloc(sizeof(*peer));

	peer->number = nr_peers;
	peer->uid = uid;
	peer->connected_ns = sim.mono_ns;
	peer->reads = true;
	peer->stream = file_connect(peer, up_max, down_max);
	if (!peer->stream) {
		sim_free(peer);
		return NULL;
	}
	peers = sim_realloc(peers, (nr_peers + 1) * sizeof(*peers));
	peers[nr_peers++] = peer;
	return peer;
}

static void peer_connect(struct rng *rng)
{
	static const uid_t uids[] = { 0, 1000, 1000, 1000, 1001 };
	size_t up = 64 + rng_below(rng, 1 << (4 + rng_below(rng, 12)));
	size_t down = 64 + rng_below(rng, 1 << (4 + rng_below(rng, 12)));
	struct peer *peer = peer_new(uids[rng_below(rng, 5)], up, down);

	if (!peer)
		return;
	if (rng_hits(rng, 400))
		peer->kind = rng_below(rng, PEER_KINDS);
	if (peer->kind == PEER_LIAR)
		sim.has_lied = true;
	peer_hello(peer, rng);
	trace("client %u connects: kind %d, uid %u, queue '%s', flags %u",
	      peer->number, peer->kind, peer->uid, peer->hello.name,
	      peer->hello.flags);
}

static struct peer *some_peer(struct rng *rng, uint32_t *nrp)
{
	struct peer *here[SIM_CLIENTS];
	uint32_t i, nr = 0;

	for (i = first_peer; i < nr_peers && nr < SIM_CLIENTS; i++)
		if (!peers[i]->is_gone && !peers[i]->program)
			here[nr++] = peers[i];
	*nrp = nr;
	return nr ? here[rng_below(rng, nr)] : NULL;
}

/* Asks, writes and reads as it is its way. */
static void peer_visit(struct peer *peer, struct rng *rng)
{
	uint32_t nr = rng_below(rng, peer->kind == PEER_FLOOD ? 200 : 12);
	uint64_t unsent = SIM_RECORD * peer->nr - peer->written;

	if (unsent < 8192 && !peer->has_ended)
		while (nr--)
			peer_ask(peer, rng);
	if (peer->hello.flags & EXPIRY_HELLO_CONSUME && !peer->has_ended &&
	    !peer->is_dropped && peer->given < peer->collected + CREDIT_MOST / 2 &&
	    rng_hits(rng, 600))
		peer_credit(peer, rng_below(rng, peer->kind == PEER_FLOOD ?
						10000 : CREDIT_MOST / 4));
	if (!peer->has_ended)
		peer_write(peer, peer->kind == PEER_SLOW ?
			   1 + rng_below(rng, 40) :
			   rng_hits(rng, 500) ? SIZE_MAX : rng_below(rng, 4096));
	if (peer->kind == PEER_DEAF && rng_hits(rng, 100))
		peer->reads = !peer->reads;
	if (peer->reads && rng_hits(rng, 800))
		peer_read(peer, peer->kind == PEER_SLOW ?
			  1 + rng_below(rng, 40) :
			  rng_hits(rng, 500) ? SIZE_MAX : rng_below(rng, 4096));
}

static void clock_step(struct rng *rng)
{
	int64_t by = rng_below(rng, 4 * SIM_S);

	if (rng_hits(rng, 500))
		by = -by;
	trace("CLOCK_REALTIME is set by %lld", (long long)by);
	past_clock();
	sim.real_ahead += by;
	sim.clock_sets++;
	file_clock_set();
}

void peers_step(struct rng *rng)
{
	static const uint64_t spans[] = { 100, 20 * SIM_US, 2 * SIM_MS,
					  200 * SIM_MS };
	uint64_t what = rng_below(rng, 1000);
	uint32_t nr;
	struct peer *peer = some_peer(rng, &nr);

	programs_step(rng);
	if (sim.crashes) {
		disk_step(rng);
		inside_want_checkpoint(rng);
	}

	if (!peer || (nr < (sim.drops ? FEW_CLIENTS : SIM_CLIENTS) &&
		      what < 50)) {
		peer_connect(rng);
	} else if (sim.drops && peer->is_dropped) {
		peer_leave(peer);
	} else if (what < 700) {
		peer_visit(peer, rng);
	} else if (what < 900) {
		sim.mono_ns += rng_below(rng, spans[rng_below(rng, 4)]);
	} else if (what < 910) {
		peer_leave(peer);
	} else if (what < 920) {
		trace("client %u ends its direction", peer->number);
		peer->has_ended = true;
		peer->may_end = true;
		stream_end(peer->stream);
	} else if (what < 930) {
		clock_step(rng);
	} else if (what < 940) {
		sim.steal_in = 1 + rng_below(rng, 10);
	} else if (what < 950) {
		sim.reloads++;
		declared_step(rng);
		file_signal(SIGHUP);
	} else if (what < 955) {
		programs_cut(rng);
	} else {
		sim.complete = 20 + rng_below(rng, 980);
	}
}

bool peers_drain(void)
{
	bool some = programs_drain();
	uint32_t i;

	for (i = first_peer; i < nr_peers; i++) {
		struct peer *peer = peers[i];

		if (peer->is_gone || peer->program)
			continue;
		if (!peer->has_ended && peer->is_open && !peer->is_dropped &&
		    peer->hello.flags & EXPIRY_HELLO_CONSUME &&
		    peer->given < peer->collected + CREDIT_MOST / 4 &&
		    peer->written == SIM_RECORD * peer->nr)
			peer_credit(peer, CREDIT_MOST / 2);
		if (!peer->has_ended && peer_write(peer, SIZE_MAX))
			some = true;
		if (peer_read(peer, SIZE_MAX))
			some = true;
	}
	return some;
}

void peers_read_last(void)
{
	char data[4096];
	uint32_t i;
	size_t n;

	for (i = first_peer; i < nr_peers; i++)
		while (!peers[i]->is_gone &&
		       (n = stream_read(peers[i]->stream, data, sizeof(data))))
			peer_receive(peers[i], data, n);
}

void peers_close(void)
{
	uint32_t i;

	for (i = 0; i < nr_peers; i++)
		if (!peers[i]->is_gone && !peers[i]->program)
			peer_leave(peers[i]);
}

/* Checks that the daemon sleeps on no request, and keeps no answer. */
void peers_check_idle(void)
{
	uint32_t i, asked;

	for (i = first_peer; i < nr_peers && !sim.io; i++) {
		const struct peer *peer = peers[i];

		if (peer->is_gone || peer->stream->len || !peer->stream->other ||
		    peer->stream->other->fd < 0 || peer->stream->other->len)
			continue;
		/* Replies may wait for a checkpoint, and hold what others need. */
		if (inside_journal_fails() &&
		    (peer->topic->mode == EXPIRY_MODE_ALL ||
		     inside_lacks_buffers()))
			continue;
		if (peer->has_ended)
			sim_fail("client %u has ended, and is not", peer->number);
		if (peer->nr_taken + peer->missed < peer->nr_expected)
			sim_fail("client %u waits for an expiration",
				 peer->number);
		asked = peer->written / SIM_RECORD;
		while (asked && peer->requests[asked - 1].is_credit)
			asked--;
		if (asked > peer->answered && !peer->is_refused)
			sim_fail("client %u waits for reply %u of %u, op %u%s",
				 peer->number, peer->answered, asked,
				 peer->requests[peer->answered].record.op,
				 peer->requests[peer->answered].is_submitted ?
				 ", which the engine has done" : "");
	}
}
