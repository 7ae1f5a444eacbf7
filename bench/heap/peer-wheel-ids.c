// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The timing wheel behind the contract of a queue. Requests and expirations are
 * records; a timer's id is checked, and has a generation, so that an old id
 * finds nothing; slots are taken and freed. The bare wheel gets a pointer to the
 * timer and returns nothing. The client's work is untimed, as with expiry.
 */
#include <errno.h>
#include <linux/expiry.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/pages.h"
#include "peer.h"

/**
 * struct ticket - a slot: a timer of the wheel that is armed, or a free one
 * @generation: odd while it is armed
 * @next: the next free slot
 */
struct ticket {
	uint64_t deadline_ns;
	uint64_t cookie;
	uint32_t generation;
	uint32_t next;
};

/**
 * struct wheel_ids - the wheel, its slots and its client
 * @nr: slots
 * @free: the slot that was freed last; @nr = none
 * @ids: the client's
 * @records: of the current batch
 */
struct wheel_ids {
	void *wheel;
	struct ticket *tickets;
	uint32_t nr;
	uint32_t free;
	uint64_t *ids;
	struct expiry_record records[PEER_BATCH];
};

static void *init(const struct peer *peer, uint32_t nr)
{
	struct wheel_ids *w = calloc(1, sizeof(*w));
	uint32_t i;

	if (!w)
		die("no memory");
	w->wheel = peer_wheel.init(peer, nr);
	w->tickets = bench_map(nr * sizeof(*w->tickets));
	w->ids = bench_map(nr * sizeof(*w->ids));
	w->nr = nr;
	for (i = 0; i < nr; i++)
		w->tickets[i].next = i + 1;
	return w;
}

static void deinit(void *self)
{
	struct wheel_ids *w = self;

	peer_wheel.deinit(w->wheel);
	bench_unmap(w->tickets, w->nr * sizeof(*w->tickets));
	bench_unmap(w->ids, w->nr * sizeof(*w->ids));
	free(w);
}

static void prepare(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	static const uint8_t ops[PEER_OPS] = {
		[PEER_ARM] = EXPIRY_OP_ARM,
		[PEER_REFRESH] = EXPIRY_OP_REFRESH,
		[PEER_CANCEL] = EXPIRY_OP_CANCEL,
	};
	struct wheel_ids *w = self;
	uint32_t i;

	for (i = 0; i < count; i++)
		w->records[i] = (struct expiry_record) {
			.op = ops[op],
			.id = op == PEER_ARM ? 0 : w->ids[requests[i].timer],
			.deadline_ns = requests[i].deadline_ns,
			.cookie = requests[i].timer,
		};
}

static uint64_t id_of(const struct wheel_ids *w, uint32_t slot)
{
	return (uint64_t)w->tickets[slot].generation << 32 | slot;
}

static void give_back(struct wheel_ids *w, uint32_t slot)
{
	w->tickets[slot].generation++;
	w->tickets[slot].next = w->free;
	w->free = slot;
}

/* Finds the record's slot, or takes one. Returns false with its status set. */
static bool apply(struct wheel_ids *w, struct expiry_record *record,
		  uint32_t *slotp)
{
	uint32_t slot = record->op == EXPIRY_OP_ARM ? w->free : record->id;
	struct ticket *ticket = &w->tickets[slot];

	if (slot >= w->nr) {
		record->status = record->op == EXPIRY_OP_ARM ? -ENOSPC : -ENOENT;
		return false;
	}
	if (record->op == EXPIRY_OP_ARM) {
		w->free = ticket->next;
		ticket->generation++;
		ticket->cookie = record->cookie;
		record->id = id_of(w, slot);
	} else if (record->id != id_of(w, slot) || !(ticket->generation & 1)) {
		record->status = -ENOENT;
		return false;
	}
	record->status = 0;
	ticket->deadline_ns = record->deadline_ns;
	if (record->op == EXPIRY_OP_CANCEL)
		give_back(w, slot);
	*slotp = slot;
	return true;
}

/* The records are looked at one after the other; the wheel gets those of a batch
 * that stand, all of one kind.
 */
static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct peer_request inside[PEER_BATCH];
	struct wheel_ids *w = self;
	uint32_t i, nr = 0;

	(void)requests;
	for (i = 0; i < count; i++) {
		inside[nr].deadline_ns = w->records[i].deadline_ns;
		nr += apply(w, &w->records[i], &inside[nr].timer);
	}
	peer_wheel.process(w->wheel, op, inside, nr);
}

static void learn(void *self, enum peer_op op,
		  const struct peer_request *requests, uint32_t count)
{
	struct wheel_ids *w = self;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (w->records[i].status)
			die("op %u was refused: %d", w->records[i].op,
			    w->records[i].status);
		if (op == PEER_ARM)
			w->ids[requests[i].timer] = w->records[i].id;
	}
}

/* Writes records of the slots in @due, and replaces these by the cookies. */
static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct wheel_ids *w = self;
	uint32_t nr = peer_wheel.deliver(w->wheel, now_ns, due), begin, i, count;

	for (begin = 0; begin < nr; begin += count) {
		count = nr - begin < PEER_BATCH ? nr - begin : PEER_BATCH;
		for (i = 0; i < count; i++) {
			uint32_t slot = due[begin + i];
			const struct ticket *ticket = &w->tickets[slot];

			w->records[i] = (struct expiry_record) {
				.op = EXPIRY_OP_EXPIRED,
				.id = id_of(w, slot),
				.deadline_ns = ticket->deadline_ns,
				.cookie = ticket->cookie,
			};
			give_back(w, slot);
		}
		for (i = 0; i < count; i++)
			due[begin + i] = w->records[i].cookie;
	}
	return nr;
}

const struct peer peer_wheel_ids = {
	.name = "wheel-ids",
	.most = PEER_ANY,
	.init = init,
	.deinit = deinit,
	.prepare = prepare,
	.process = process,
	.learn = learn,
	.deliver = deliver,
};
