// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * std::priority_queue and std::unordered_map, as people write it at home: what
 * is cancelled or moved stays in the queue until it comes to its top, where the
 * map tells whether it still counts.
 */
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "peer.h"

namespace {

struct entry {
	uint64_t deadline_ns;
	uint64_t id;

	bool operator>(const entry &other) const
	{
		return deadline_ns > other.deadline_ns;
	}
};

struct timer {
	uint64_t deadline_ns;
	uint64_t cookie;
	void (*expired)(uint64_t cookie);
	uint32_t period_ms;
};

struct timers {
	std::priority_queue<entry, std::vector<entry>, std::greater<entry>>
		queue;
	std::unordered_map<uint64_t, timer> armed;
};

/* Where the next callback writes. */
uint32_t *next_due;

void expired(uint64_t cookie)
{
	*next_due++ = cookie;
}

void *init(const struct peer *, uint32_t)
{
	return new timers;
}

void deinit(void *self)
{
	delete static_cast<timers *>(self);
}

void process(void *self, enum peer_op op, const struct peer_request *requests,
	     uint32_t count)
{
	auto *t = static_cast<timers *>(self);

	for (uint32_t i = 0; i < count; i++) {
		const struct peer_request &request = requests[i];

		switch (op) {
		case PEER_ARM:
			t->armed[request.timer] = { request.deadline_ns,
				request.timer, expired, 0 };
			break;
		case PEER_REFRESH:
			t->armed[request.timer].deadline_ns =
				request.deadline_ns;
			break;
		default:
			t->armed.erase(request.timer);
			continue;
		}
		t->queue.push({ request.deadline_ns, request.timer });
	}
}

uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	auto *t = static_cast<timers *>(self);

	next_due = due;
	while (!t->queue.empty() && t->queue.top().deadline_ns <= now_ns) {
		const entry top = t->queue.top();

		t->queue.pop();
		auto found = t->armed.find(top.id);
		if (found == t->armed.end() ||
		    found->second.deadline_ns != top.deadline_ns)
			continue;
		const timer due_now = found->second;

		t->armed.erase(found);
		due_now.expired(due_now.cookie);
	}
	return next_due - due;
}

} /* namespace */

const struct peer peer_queue = {
	"priority_queue", nullptr, PEER_HUGE, true, 0, init, deinit, nullptr, process,
	nullptr, deliver, nullptr,
};
