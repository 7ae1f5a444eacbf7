// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Radix pages: the digits of deadlines, for all deadlines.
 */
#include "proof.h"
#include "core/bheap_radix_pages.h"

/* The level of two deadlines is that of the highest digit in which they differ: this
 * tells which is earlier, and both are in one bucket of the level above.
 */
void radix_levels(void)
{
	u64 a = nondet_u64(), b = nondet_u64();
	u32 level = radix_level_of(a ^ b);

	prove(level < LEVELS);
	prove(radix_floor(a, level + 1) == radix_floor(b, level + 1));
	prove((a < b) == (radix_digit(a, level) < radix_digit(b, level)));
	prove(radix_digit(a, level) < FAN);
	reached();
}

/* A bucket has all deadlines from its first to its last, and no others. */
void radix_buckets(void)
{
	u64 deadline = nondet_u64(), other = nondet_u64(), start, last;
	u32 level = nondet_u32();

	assume(level < LEVELS);
	start = radix_floor(deadline, level);
	last = radix_last(start, level);
	prove(start <= deadline && deadline <= last);
	prove((radix_floor(other, level) == start) ==
	      (start <= other && other <= last));
	prove(radix_digit(start, level) == radix_digit(deadline, level));
	prove(radix_floor(deadline, LEVELS) == 0);
	reached();
}

/* A deadline begins the bucket of its level, and none above; the next bucket of a level
 * begins one of that level or above.
 */
void radix_beginnings(void)
{
	u64 deadline = nondet_u64(), next;
	u32 at = radix_level_at(deadline), level = nondet_u32();

	prove(at < LEVELS);
	prove(radix_floor(deadline, at) == deadline);
	prove(at == LEVELS - 1 || radix_floor(deadline, at + 1) != deadline);
	assume(level < LEVELS);
	next = radix_floor(deadline, level) + (1ULL << level * BITS);
	prove(!next || radix_level_at(next) >= level);
	reached();
}

/* Where a deadline is in the finger: behind the front's way, at a level that the front
 * has not entered.
 */
void radix_finger(void)
{
	struct bheap_radix_state s;
	u64 deadline = nondet_u64();
	u32 level;

	s.front = nondet_u64();
	s.level = nondet_u32();
	assume(s.level < LEVELS && s.front <= deadline);
	level = radix_level(&s, deadline);
	prove(level >= s.level && level < LEVELS);
	prove(radix_floor(deadline, level + 1) == radix_floor(s.front, level + 1));
	prove(radix_digit(deadline, level) >= radix_digit(s.front, level));
	prove(level == s.level ||
	      radix_digit(deadline, level) > radix_digit(s.front, level));
	reached();
}

/* The proofs' own test: the highest digit differs, too. */
void canary_radix(void)
{
	prove(radix_level_of(nondet_u64() ^ nondet_u64()) < LEVELS - 1);
}
