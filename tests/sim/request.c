// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes up requests of clients, valid and invalid, each with its own cookie. */
#include <string.h>
#include <time.h>

#include "tests/sim/sim.h"

#define TOPICS	5
#define DURABLE	3	/* of TOPICS, the first */
#define KEYS	40

static struct topic topics[TOPICS];

void topics_init(struct rng *rng)
{
	static const uint32_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC,
					   CLOCK_BOOTTIME };
	static const uint8_t modes[] = { 0, EXPIRY_MODE_ACK,
		EXPIRY_MODE_KEYED, EXPIRY_MODE_ALL };
	int i;

	for (i = 0; i < TOPICS; i++) {
		topics[i].name[0] = 'a' + i;
		topics[i].clock_id = clocks[rng_below(rng, 3)];
		topics[i].mode = modes[rng_below(rng, 4)];
		topics[i].is_durable = sim.crashes && i < DURABLE;
		if (topics[i].is_durable)
			topics[i].mode = EXPIRY_MODE_ALL;
	}
}

void topic_kind(char name, uint32_t *clock_idp, uint32_t *modep)
{
	const struct topic *topic = &topics[(name - 'a') % TOPICS];

	*clock_idp = topic->clock_id;
	*modep = topic->mode;
}

static uint64_t tag_of(const struct peer *peer, uint32_t number)
{
	return (uint64_t)(sim.life << 16 | (peer->number + 1)) << 32 | number;
}

uint64_t peer_tag(const struct peer *peer)
{
	return tag_of(peer, peer->nr);
}

uint32_t request_find(const struct peer *peer,
		      const struct expiry_record *record)
{
	uint32_t i;

	/* A program's cookies are its own; a repeated request has the same. */
	for (i = peer->submitted + 1; peer->program && i < peer->nr; i++)
		if (!memcmp(&peer->requests[i].record, record, sizeof(*record)))
			return i;
	if (peer->program || record->cookie >> 32 != tag_of(peer, 0) >> 32 ||
	    (uint32_t)record->cookie >= peer->nr)
		return 0;
	return record->cookie;
}

struct request *peer_add(struct peer *peer, const struct expiry_record *record)
{
	struct request *request;

	if (peer->nr == peer->nr_max) {
		peer->nr_max = peer->nr_max * 2 + 64;
		peer->requests = sim_realloc(peer->requests, peer->nr_max *
					     sizeof(*peer->requests));
	}
	request = &peer->requests[peer->nr++];
	*request = (struct request) { .record = *record };
	return request;
}

void peer_credit(struct peer *peer, uint32_t credit)
{
	const struct expiry_record record = {
		.op = EXPIRY_OP_CREDIT,
		.period_ms = credit,
	};

	peer_add(peer, &record)->is_credit = true;
}

void peer_hello(struct peer *peer, struct rng *rng)
{
	struct expiry_hello *hello = &peer->hello;
	struct expiry_record record;
	uint64_t kind = rng_below(rng, 100);

	peer->topic = topic_any(rng);
	if (kind < 15) {
		/* A queue of its own. */
		peer->own = *peer->topic;
		peer->own.nr_ids = 0;
		memset(peer->own.name, 0, sizeof(peer->own.name));
		peer->topic = &peer->own;
	}
	*hello = (struct expiry_hello) {
		.op = EXPIRY_OP_HELLO,
		.version = EXPIRY_WIRE_VERSION,
		.clock_id = peer->topic->clock_id,
		.flags = peer->topic->mode,
	};
	memcpy(hello->name, peer->topic->name, sizeof(hello->name));
	if (rng_hits(rng, 500))
		hello->flags |= EXPIRY_HELLO_CONSUME;
	else if (rng_hits(rng, 150) && hello->name[0])
		hello->flags |= EXPIRY_HELLO_OBSERVE;
	if (rng_hits(rng, 50) && hello->name[0])
		hello->flags |= EXPIRY_HELLO_EXISTING;
	if (peer->topic->is_durable && hello->name[0])
		hello->flags |= EXPIRY_HELLO_DURABLE;
	if (peer->kind == PEER_LIAR && rng_hits(rng, 200)) {
		peer->may_end = true;
		switch (rng_below(rng, 5)) {
		case 0:
			hello->op = rng_below(rng, 256);
			break;
		case 1:
			hello->version = rng_below(rng, 5);
			break;
		case 2:
			hello->flags = rng_below(rng, 256);
			break;
		case 3:
			hello->clock_id = rng_below(rng, 9);
			break;
		default:
			hello->name[rng_below(rng, 24)] = rng_below(rng, 256);
		}
	}
	memcpy(&record, hello, sizeof(record));
	peer_add(peer, &record);
}

struct topic *topic_any(struct rng *rng)
{
	return &topics[rng_below(rng, sim.drops ? DURABLE : TOPICS)];
}

void topic_lost(const char *name)
{
	uint32_t i;

	/* Observers go with their queue. */
	for (i = 0; i < nr_peers; i++)
		if (peers[i]->hello.flags & EXPIRY_HELLO_OBSERVE &&
		    !memcmp(peers[i]->hello.name, name, EXPIRY_NAME_MAX))
			peers[i]->may_end = true;
	for (i = 0; i < TOPICS; i++)
		if (!memcmp(topics[i].name, name, EXPIRY_NAME_MAX))
			topics[i].nr_drops++;
}

static uint64_t some_id(const struct topic *topic, struct rng *rng)
{
	uint32_t most = topic->nr_ids < 64 ? topic->nr_ids : 64;

	if (rng_hits(rng, 30))
		return rng_below(rng, 4) ? rng_next(rng) : 0;
	if (topic->mode & EXPIRY_MODE_KEYED)
		return 1 + rng_below(rng, KEYS);
	return most ? topic->ids[rng_below(rng, most)] : 1ULL << 32 | 1;
}

static void set_deadline(const struct topic *topic,
			 struct expiry_record *record, struct rng *rng)
{
	static const uint64_t spans[] = { 1, 50 * SIM_US, 5 * SIM_MS,
					  300 * SIM_MS, 20 * SIM_S };
	uint64_t span = 1 + rng_below(rng, spans[rng_below(rng, 5)]);

	if (rng_hits(rng, 20)) {
		record->deadline_ns = rng_hits(rng, 500) ? EXPIRY_NEVER : 0;
	} else if (rng_hits(rng, 700)) {
		record->flags |= EXPIRY_F_RELATIVE;
		record->deadline_ns = span;
	} else {
		record->deadline_ns = sim_now(topic->clock_id) + span -
				      span / 4;
	}
	if (rng_hits(rng, 80))
		record->flags |= EXPIRY_F_LATER;
}

/* Returns whether CREDIT of the client is refused: after DROP it is ignored. */
static bool may_lie_credit(const struct peer *peer)
{
	uint32_t i;

	for (i = 1; i < peer->nr; i++)
		if (peer->requests[i].record.op == EXPIRY_OP_DROP)
			return false;
	return !(peer->hello.flags & EXPIRY_HELLO_CONSUME);
}

static void make_lie(const struct peer *peer, struct expiry_record *record,
		     struct rng *rng)
{
	switch (rng_below(rng, 8)) {
	case 0:
		record->op = rng_below(rng, 256);
		break;
	case 1:
		record->flags = rng_below(rng, 256);
		break;
	case 2:
		record->status = rng_below(rng, 65536) - 32768;
		break;
	case 3:
		record->id = rng_next(rng);
		break;
	case 4:
		record->op = 16 + rng_below(rng, 2);
		break;
	case 5:
		record->op = EXPIRY_OP_MISSED;
		break;
	case 6:
		/* Credit for what another client consumes. */
		if (!may_lie_credit(peer))
			break;
		*record = (struct expiry_record) {
			.op = EXPIRY_OP_CREDIT,
			.period_ms = 1 + rng_below(rng, 64),
		};
		break;
	default:
		record->op = EXPIRY_OP_HELLO + rng_below(rng, 6);
	}
}

static void make_own(struct expiry_record *record, struct rng *rng)
{
	static const uint8_t own[] = { EXPIRY_OP_SCAN, EXPIRY_OP_SCAN,
		EXPIRY_OP_STAT, EXPIRY_OP_QUEUES, EXPIRY_OP_DROP };

	record->op = own[rng_below(rng, rng_hits(rng, 100) ? 5 : 4)];
	if (record->op == EXPIRY_OP_SCAN)
		record->period_ms = 1 + rng_below(rng, 100);
	if (record->op == EXPIRY_OP_QUEUES) {
		record->period_ms = 1 + rng_below(rng, 20);
		record->id = rng_below(rng, 4);
	}
}

void make_request(const struct topic *topic, struct expiry_record *record,
		  struct rng *rng)
{
	uint64_t kind = rng_below(rng, 965);

	if (kind < 450) {
		record->op = EXPIRY_OP_ARM;
		set_deadline(topic, record, rng);
		if (topic->mode & EXPIRY_MODE_KEYED) {
			record->id = some_id(topic, rng);
			if (rng_hits(rng, 100))
				record->flags |= EXPIRY_F_NEW;
		}
		if (rng_hits(rng, 100))
			record->period_ms = 1 + rng_below(rng, 2000);
	} else if (kind < 600) {
		record->op = EXPIRY_OP_REFRESH;
		record->id = some_id(topic, rng);
		set_deadline(topic, record, rng);
	} else if (kind < 750) {
		record->op = EXPIRY_OP_CANCEL;
		record->id = some_id(topic, rng);
	} else if (kind < 850) {
		record->op = EXPIRY_OP_QUERY;
		record->id = some_id(topic, rng);
	} else if (kind < 960) {
		record->op = EXPIRY_OP_ACK;
		record->id = some_id(topic, rng);
	} else {
		record->op = EXPIRY_OP_CLEAR;
	}
}

/* Adds a request of any kind. */
void peer_ask(struct peer *peer, struct rng *rng)
{
	struct expiry_record record = { .cookie = peer_tag(peer) };

	if (rng_below(rng, 1000) < 965)
		make_request(peer->topic, &record, rng);
	else
		make_own(&record, rng);
	if (sim.drops && rng_hits(rng, 100))
		record = (struct expiry_record) {
			.op = EXPIRY_OP_DROP,
			.cookie = record.cookie,
		};
	if (peer->kind == PEER_LIAR && rng_hits(rng, 150))
		make_lie(peer, &record, rng);
	peer_add(peer, &record);
}
