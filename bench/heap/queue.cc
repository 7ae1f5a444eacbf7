// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * std::priority_queue over a vector that has its room from the start, in memory
 * like that of the others.
 */
#include <queue>
#include <vector>

#include "heap.h"

namespace {

template <class T> struct Mapped {
	using value_type = T;

	Mapped() = default;
	template <class U> Mapped(const Mapped<U> &) {}

	T *allocate(size_t nr)
	{
		return static_cast<T *>(bench_map(nr * sizeof(T)));
	}

	void deallocate(T *memory, size_t nr)
	{
		bench_unmap(memory, nr * sizeof(T));
	}

	template <class U> bool operator==(const Mapped<U> &) const
	{
		return true;
	}

	template <class U> bool operator!=(const Mapped<U> &) const
	{
		return false;
	}
};

/* The greatest is first there. */
struct Later {
	bool operator()(const heap_node &a, const heap_node &b) const
	{
		return a.deadline > b.deadline;
	}
};

using Nodes = std::vector<heap_node, Mapped<heap_node>>;

struct Queue : std::priority_queue<heap_node, Nodes, Later> {
	explicit Queue(uint32_t nr_max)
	{
		c.reserve(nr_max);
	}
};

void *queue_create(uint32_t nr_max)
{
	return new Queue(nr_max);
}

void queue_destroy(void *heap)
{
	delete static_cast<Queue *>(heap);
}

void queue_push(void *heap, const heap_node *node)
{
	static_cast<Queue *>(heap)->push(*node);
}

heap_node queue_pop(void *heap)
{
	Queue *queue = static_cast<Queue *>(heap);
	heap_node first = queue->top();

	queue->pop();
	return first;
}

} /* namespace */

const heap_kind heap_priority_queue = {
	"priority_queue", queue_create, queue_destroy, queue_push, queue_pop,
};
