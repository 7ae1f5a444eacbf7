// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stddef.h>
#include <string.h>

#include "daemon/journal/format.h"
#include "tests/journal/model.h"

void model_init(struct model *model)
{
	*model = (struct model) { .next_number = 1 };
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9fb21c651e98df25ULL;
	return hash ^ hash >> 32;
}

uint64_t model_hash(const struct model *model)
{
	uint64_t hash = 1;
	uint32_t q, i;

	for (q = 0; q < QUEUES; q++) {
		const struct queue *queue = &model->queues[q];

		hash = mix(hash, queue->number);
		for (i = 0; queue->number && i < IDS; i++) {
			const struct timer *timer = &queue->timers[i];

			if (!timer->exists)
				continue;
			hash = mix(hash, i + 1);
			hash = mix(hash, timer->deadline_ns);
			hash = mix(hash, timer->cookie);
			hash = mix(hash, timer->period_ms);
		}
	}
	return hash;
}

void model_move(struct model *model, uint64_t by_ns)
{
	uint32_t q, i;

	for (q = 0; q < QUEUES; q++)
		for (i = 0; i < IDS; i++)
			model->queues[q].timers[i].deadline_ns += by_ns;
}

static struct queue *model_queue(struct model *model, uint64_t number)
{
	uint32_t q;

	for (q = 0; q < QUEUES; q++)
		if (number && model->queues[q].number == number)
			return &model->queues[q];
	return NULL;
}

bool model_apply(struct model *model, uint64_t number,
		 const struct expiry_record *record)
{
	struct queue *queue = model_queue(model, number);
	struct journal_make make;
	struct timer *timer;

	if (record->op == JOURNAL_OP_MAKE) {
		memcpy(&make, record, sizeof(make));
		queue = &model->queues[make.name[0] - 'a'];
		*queue = (struct queue) { .number = number };
		if (number >= model->next_number)
			model->next_number = number + 1;
		return true;
	}
	if (!queue)
		return false;
	if (record->op == JOURNAL_OP_DROP) {
		*queue = (struct queue) { 0 };
		return true;
	}
	if (record->op == EXPIRY_OP_CLEAR) {
		memset(queue->timers, 0, sizeof(queue->timers));
		return true;
	}
	if (!record->id || record->id > IDS)
		return false;
	timer = &queue->timers[record->id - 1];
	timer->exists = record->op != EXPIRY_OP_CANCEL;
	timer->deadline_ns = record->deadline_ns;
	timer->cookie = record->cookie;
	timer->period_ms = record->period_ms;
	return true;
}
