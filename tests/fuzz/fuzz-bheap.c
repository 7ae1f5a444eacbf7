// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The bare heap: all layouts do the same operations. The first node is the
 * least, and only popped or stale swept nodes leave. One run of pages each,
 * whose pages leave and fail as the bytes say.
 */
#include "fuzz.h"
#include "support.h"

#define LAYOUTS		3U
#define SLOTS		400U

static const struct bheap_layout *const layouts[LAYOUTS] = {
	&bheap_subtree, &bheap_sorted, &bheap_radix,
};

/**
 * struct subject - two heaps and what is in them
 * @stale: by slot: the sweep may have its node
 * @deadline: by slot: of the node
 * @in: by slot and heap: it is in
 */
struct subject {
	struct bheap heap[LAYOUTS];
	struct test_faults faults[LAYOUTS];
	struct test_pages run[LAYOUTS];
	bool stale[SLOTS];
	bool in[LAYOUTS][SLOTS];
	u64 deadline[SLOTS];
	u32 next;
	const uint8_t *data, *end;
};

static u32 byte(struct subject *subject)
{
	return subject->data < subject->end ? *subject->data++ : 0;
}

/* Few enough for many ties; both ends of time among them. */
static u64 any_deadline(struct subject *subject)
{
	return byte(subject) * (~0ULL / 255);
}

/* Returns whether any heap has a node for @slot. */
static bool is_in(const struct subject *subject, u32 slot)
{
	u32 which;

	for (which = 0; which < LAYOUTS; which++)
		if (subject->in[which][slot])
			return true;
	return false;
}

static u32 free_slot(struct subject *subject)
{
	u32 i, slot;

	for (i = 0; i < SLOTS; i++) {
		slot = subject->next++ % SLOTS;
		if (!is_in(subject, slot))
			return slot;
	}
	return SLOTS;
}

struct sweep {
	struct subject *subject;
	u32 which;
};

/* Receives the nodes that are in; stale ones leave. */
static bool is_stale(void *context, const struct bheap_node *node)
{
	struct sweep *sweep = context;
	struct subject *subject = sweep->subject;

	assert_true(node->slot < SLOTS);
	assert_true(subject->in[sweep->which][node->slot]);
	assert_true(node->deadline == subject->deadline[node->slot]);
	return subject->stale[node->slot];
}

static void ahead(void *context, const struct bheap_node *node,
		  enum bheap_when when)
{
	(void)context, (void)node, (void)when;
}

struct census {
	bool seen[SLOTS];
	u32 nr;
};

static void see(void *context, const struct bheap_node *node)
{
	struct census *census = context;

	assert_true(node->slot < SLOTS && !census->seen[node->slot]);
	census->seen[node->slot] = true;
	census->nr++;
}

/* Checks the layout's order and the contents: only stale nodes may be lost. */
static void check(struct subject *subject, u32 which)
{
	struct census census = { .nr = 0 };
	u32 slot;

	assert_int_equal(layouts[which]->validate(&subject->heap[which], see,
						  &census), 0);
	assert_int_equal(census.nr, subject->heap[which].nr);
	for (slot = 0; slot < SLOTS; slot++) {
		if (subject->in[which][slot] && !census.seen[slot])
			assert_true(subject->stale[slot]);
		assert_true(!census.seen[slot] || subject->in[which][slot]);
		subject->in[which][slot] = census.seen[slot];
		/* The first is the least of all, stale ones among them. */
		if (census.seen[slot])
			assert_true(subject->heap[which].first.deadline <=
				    subject->deadline[slot]);
	}
}

/* Does an operation of a heap, first with the k-th page missing, then
 * completely.
 */
static int operate(struct subject *subject, u32 which, u32 op,
		   const struct bheap_node *node, u32 fail_in)
{
	struct bheap *heap = &subject->heap[which];
	struct test_faults *faults = &subject->faults[which];
	u32 nr = heap->nr;
	int err;

	if (fail_in) {
		test_pages_evict_all(&subject->run[which]);
		faults->fail_in = fail_in;
		faults->error = -EIO;
	}
	do {
		if (op == 0)
			err = bheap_push(heap, node);
		else if (op == 1)
			err = bheap_replace(heap, node);
		else
			err = bheap_pop(heap);
		fail_in = faults->fail_in;
		faults->fail_in = 0;
		if (err) {
			assert_int_equal(err, -EIO);
			assert_int_equal(heap->nr, nr);
			check(subject, which);
		}
	} while (err);
	return 0;
}

/* Drops stale nodes whose turn comes. */
static bool review(void *context, struct bheap_node *node)
{
	return !is_stale(context, node);
}

/* Finds the first node of a heap, at first with the k-th page missing. Checks what
 * a step has changed: a heap that knew its first node is checked by its caller.
 */
static void find_first(struct subject *subject, u32 which, u32 fail_in)
{
	struct test_faults *faults = &subject->faults[which];
	struct sweep sweep = { subject, which };
	u32 nr = subject->heap[which].nr, steps = 0;
	int ret;

	do {
		if (fail_in) {
			test_pages_evict_all(&subject->run[which]);
			faults->fail_in = fail_in;
			faults->error = -EIO;
		}
		ret = bheap_find_first(&subject->heap[which], review, ahead,
				       &sweep);
		if (ret < 0)
			assert_int_equal(ret, -EIO);
		/* The check needs all pages; what is left fails the next step. */
		fail_in = faults->fail_in;
		faults->fail_in = 0;
		if (ret != 1 || subject->heap[which].nr != nr)
			check(subject, which);
		assert_true(steps++ < 10000);
	} while (ret != 1);
}

static void change(struct subject *subject, u32 op, u64 deadline, u32 fail_in)
{
	struct bheap_node node = { .deadline = deadline }, first;
	u32 which;

	if (op != 2) {
		node.slot = free_slot(subject);
		if (node.slot == SLOTS)
			return;
		subject->stale[node.slot] = false;
		subject->deadline[node.slot] = deadline;
	}
	for (which = 0; which < LAYOUTS; which++) {
		if (op != 0)
			find_first(subject, which, fail_in);
		first = subject->heap[which].first;
		if (op != 0 && !subject->heap[which].nr)
			continue;
		operate(subject, which, op, &node, fail_in);
		if (op != 0)
			subject->in[which][first.slot] = false;
		if (op != 2)
			subject->in[which][node.slot] = true;
	}
}

static void make_stale(struct subject *subject, u32 one_in)
{
	u32 slot;

	for (slot = 0; slot < SLOTS; slot++)
		if (slot % one_in == 0 && is_in(subject, slot))
			subject->stale[slot] = true;
}

static void sweep(struct subject *subject, u32 steps, u32 fail_in)
{
	u32 which;

	for (which = 0; which < LAYOUTS; which++) {
		struct sweep sweep = { subject, which };

		if (fail_in) {
			test_pages_evict_all(&subject->run[which]);
			subject->faults[which].fail_in = fail_in;
			subject->faults[which].error = -EAGAIN;
		}
		layouts[which]->sweep(&subject->heap[which], steps, is_stale,
				      ahead, &sweep);
		subject->faults[which].fail_in = 0;
	}
}

static bool is_empty(const struct subject *subject)
{
	u32 which;

	for (which = 0; which < LAYOUTS; which++)
		if (subject->heap[which].nr)
			return false;
	return true;
}

/* Takes the first off all; it is never less than the one before. */
static void take_first(struct subject *subject)
{
	u64 before[LAYOUTS];
	u32 which;

	for (which = 0; which < LAYOUTS; which++) {
		find_first(subject, which, 0);
		before[which] = subject->heap[which].nr ?
				subject->heap[which].first.deadline : 0;
	}
	change(subject, 2, 0, 0);
	for (which = 0; which < LAYOUTS; which++)
		if (subject->heap[which].nr)
			assert_true(subject->heap[which].first.deadline >=
				    before[which]);
}

static void step(struct subject *subject)
{
	u32 op = byte(subject), n, i, gap, which;
	u64 deadline;

	switch (op % 8) {
	case 0:
	case 1:
	case 2:
		change(subject, op % 8, any_deadline(subject), 0);
		break;
	case 3:
		n = byte(subject);
		change(subject, n % 3, any_deadline(subject), 1 + n / 3 % 16);
		break;
	case 4:		/* many, one after the other */
		n = byte(subject);
		deadline = any_deadline(subject);
		gap = byte(subject);
		for (i = 0; i < n; i++)
			change(subject, 0, deadline + i * gap, 0);
		break;
	case 5:
		for (n = byte(subject); n && !is_empty(subject); n--)
			take_first(subject);
		break;
	case 6:
		for (which = 0; op / 8 % 4 == 0 && which < LAYOUTS; which++)
			subject->heap[which].now = any_deadline(subject);
		make_stale(subject, 1 + byte(subject) % 8);
		break;
	default:
		n = byte(subject);
		sweep(subject, n, op / 8);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct subject *subject = calloc(1, sizeof(*subject));
	u32 which, evict;

	fuzz_abort_on_failure();
	assert_non_null(subject);
	subject->data = data;
	subject->end = data + size;
	for (which = 0; which < LAYOUTS; which++) {
		test_pages_init(&subject->run[which], bheap_pages_max(layouts[which], SLOTS),
				&subject->faults[which], 1);
		bheap_init(&subject->heap[which], layouts[which],
			   &subject->run[which].pages);
	}
	evict = byte(subject) % 4;
	while (subject->data < subject->end) {
		step(subject);
		for (which = 0; which < LAYOUTS; which++) {
			check(subject, which);
			test_pages_trim(&subject->run[which]);
			test_pages_evict(&subject->run[which], evict);
		}
	}
	while (!is_empty(subject))
		take_first(subject);
	for (which = 0; which < LAYOUTS; which++) {
		assert_int_equal(subject->run[which].pages.nr, 0);
		test_pages_free(&subject->run[which]);
	}
	free(subject);
	return 0;
}
