/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The queues and timers that a journal's records stand for: what recovery must find. */
#ifndef TESTS_JOURNAL_MODEL_H
#define TESTS_JOURNAL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/expiry.h>

#define QUEUES		3U
#define IDS		8U

/* By its id, from 1 on, in struct queue. */
struct timer {
	bool exists;
	uint32_t period_ms;
	uint64_t deadline_ns;
	uint64_t cookie;
};

struct queue {
	uint64_t number;	/* 0 = there is none */
	struct timer timers[IDS];
};

struct model {
	struct queue queues[QUEUES];
	uint64_t next_number;
};

void model_init(struct model *model);

/* Returns a number that differs, but for chance, between any two states. */
uint64_t model_hash(const struct model *model);

/* Moves all deadlines. */
void model_move(struct model *model, uint64_t by_ns);

/* Applies a record of the journal. Returns false if it makes no sense. */
bool model_apply(struct model *model, uint64_t number,
		 const struct expiry_record *record);

#endif /* TESTS_JOURNAL_MODEL_H */
