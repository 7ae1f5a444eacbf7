/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the tests of core/: cmocka, random numbers, and an owner of pages
 * that does everything an owner may do to the core. Also a queue made of
 * three such runs.
 */
#ifndef TESTS_CORE_SUPPORT_H
#define TESTS_CORE_SUPPORT_H

/* cmocka needs these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "timers.h"

#ifndef ARRAY_SIZE	/* in the kernel it is */
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

#define SECOND		1000000000ULL
#define MILLISECOND	1000000ULL

/**
 * struct test_faults - behaviour of page_in, for all runs that share it
 * @fail_in: the page_in that many from now fails; 0 = none does
 * @for_good: so do all after it, until @fail_in is set anew
 * @error: with this
 * @failed: how many have failed
 * @ins: pages brought in
 */
struct test_faults {
	u32 fail_in;
	bool for_good;
	int error;
	u64 failed;
	u64 ins;
};

/**
 * struct test_pages - a run of pages and its owner
 * @pages: as the core sees it
 * @faults: of this run and its neighbours
 * @saved: the content of pages that are out of memory
 * @high: no page from here on exists
 * @random: for garbage and evictions
 */
struct test_pages {
	struct core_pages pages;
	struct test_faults *faults;
	void **saved;
	u32 high;
	u64 random;
};

void test_pages_init(struct test_pages *run, u32 nr_max,
		     struct test_faults *faults, u64 seed);
void test_pages_free(struct test_pages *run);

/* Take pages out of memory: up to @nr random ones, or all. Their content is
 * kept and their addresses end: ASan detects later uses.
 */
void test_pages_evict(struct test_pages *run, u32 nr);
void test_pages_evict_all(struct test_pages *run);

/* Takes page @index out of memory, if it is there. */
void test_pages_evict_one(struct test_pages *run, u32 index);

/* Removes the pages above pages.nr with their content. */
void test_pages_trim(struct test_pages *run);

/* Returns the number of existing pages, in memory or not. */
u32 test_pages_count(const struct test_pages *run);

/**
 * struct test_queue - a queue and its pages
 */
struct test_queue {
	struct timers timers;
	struct timers_config config;
	struct test_faults faults;
	struct test_pages runs[TIMERS_PAGES_NR];
};

/* The modes of a queue that the core knows. */
extern const u32 test_modes[4];

void test_queue_init(struct test_queue *queue, u32 mode, u64 limit, u64 seed);
void test_queue_free(struct test_queue *queue);
void test_queue_evict(struct test_queue *queue, u32 nr);
void test_queue_evict_all(struct test_queue *queue);
void test_queue_trim(struct test_queue *queue);
u32 test_queue_pages(const struct test_queue *queue);

/* Submits one record; returns its status, or -EAGAIN if it was not processed.
 */
int test_submit(struct test_queue *queue, struct expiry_record *record,
		u64 now_ns);

/* Shorthands for it: each returns the reply. */
struct expiry_record test_arm(struct test_queue *queue, u64 id,
			      u64 deadline_ns, u64 cookie, u32 period_ms);
struct expiry_record test_refresh(struct test_queue *queue, u64 id,
				  u64 deadline_ns, u8 flags);
struct expiry_record test_op(struct test_queue *queue, u8 op, u64 id);

/* Arms @n timers with deadlines from @from on; returns their ids, which the caller
 * frees.
 */
u64 *test_arm_many(struct test_queue *queue, u32 n, u64 from);

/* Takes everything that is due at @now_ns and fits, in several calls if needed.
 */
u32 test_deliver(struct test_queue *queue, struct expiry_record *records,
		 u32 count, u64 now_ns);

/* Rewinds to the end. */
void test_rewind(struct test_queue *queue);
void test_rewind_at(struct test_queue *queue, u64 now_ns);

/* Drops stale nodes from the top until it is live. */
void test_drop_stale(struct test_queue *queue);

/* Lists everything, sorted by id; returns how many, at most @count. */
u32 test_list(struct test_queue *queue, struct expiry_record *records,
	      u32 count);

/* Returns and prints the seed of the command line, else a constant one, so that
 * all runs do the same test. argv: [SEED [ROUNDS]]
 */
extern u64 test_seed;
extern u64 test_rounds;
void test_arguments(int argc, char **argv, u64 rounds);

/* Returns the exit status for a number of failed tests. Exits at once if there
 * are any: memory left by a failed test is no leak.
 */
int test_end(int failed);

/* Rounds of a long test. In a kernel that checks each allocation, a page of 64 bytes that
 * leaves memory or returns costs as much as one of 4 KiB: there, a quarter of them.
 */
#if defined(__KERNEL__) && CORE_PAGE_SHIFT < 12
#define TEST_ROUNDS(nr)	((nr) / 4)
#else
#define TEST_ROUNDS(nr)	(nr)
#endif

/* The heap's layout, in tests that run with each of them. */
extern const struct bheap_layout *test_layout;
int test_use_layout(void **state);

#define test_with_layout(test, layout)					\
	{ #test " (" #layout ")", test, test_use_layout, NULL,		\
	  (void *)&bheap_##layout }
#define test_with_layouts(test)						\
	test_with_layout(test, subtree), test_with_layout(test, sorted), \
	test_with_layout(test, radix)

/* Returns the next number of a sequence (splitmix64). */
static inline u64 test_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Returns 0 to @n - 1. */
static inline u64 test_below(u64 *state, u64 n)
{
	return test_random(state) % n;
}

static inline bool test_one_in(u64 *state, u64 n)
{
	return !test_below(state, n);
}

#endif /* TESTS_CORE_SUPPORT_H */
