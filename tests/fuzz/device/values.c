// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <time.h>

#include "values.h"

static const uint32_t counts[] = {
	1, 1, 2, 3, 5, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128,
	129, 200, 254, 255, 256, 512, 700, 768, 1024, 4096, 65535, 65536,
	/* too few and too many */
	0, 65537, 0x80000000, 0xffffffff,
};

static const size_t sizes[] = {
	32, 64, 96, 31 * 32, 32 * 32, 33 * 32, 64 * 32, 100 * 32, 4096, 8192,
	16384, 33, 63, 65, 1000, 1025, 5000, REGION - 1, REGION, REGION + 32,
	1 << 20, 1 << 30,
	/* less than a record, and more than there can be */
	0, 1, 8, 31, 0x7ffff000, 0x80000000, SIZE_MAX / 2, SIZE_MAX,
};

static const uint64_t limits[] = {
	0, 1, 2, 3, 16, 32, 33, 100, 255, 256, 1000, 4096, 100000, 1 << 20,
	(128 << 20) - 1, 128 << 20, (128 << 20) + 1, 1 << 30, (1 << 30) + 1,
	1ULL << 32, 1ULL << 63, ~0ULL,
};

static const uint64_t slacks[] = {
	0, 0, 0, 1, 1000, 1000000, NSEC_PER_SEC, 1ULL << 62, INT64_MAX,
	1ULL << 63, ~0ULL,
};

static const uint32_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_MONOTONIC,
	CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME_ALARM,
	CLOCK_TAI, 12, 0x80000000, 0xffffffff,
};

/* From now. */
static const uint64_t spans[] = {
	0, 1, 1000, 10000, 100000, 500000, 1000000, 3000000, 10000000,
	NSEC_PER_SEC, 60 * NSEC_PER_SEC, 3600 * NSEC_PER_SEC, 1ULL << 55,
	INT64_MAX, ~0ULL - NSEC_PER_SEC, ~0ULL,
};

static const uint64_t moments[] = {
	0, 1, NSEC_PER_SEC, 1ULL << 32, 1ULL << 62, INT64_MAX - 1, INT64_MAX,
	1ULL << 63, ~0ULL - 1, ~0ULL,
};

static uint8_t *const wild[] = {
	(uint8_t *)0, (uint8_t *)8, (uint8_t *)0x7ffffffff000,
	(uint8_t *)0x7fffffffffe0, (uint8_t *)0x800000000000,
	(uint8_t *)0x8000000000000000, (uint8_t *)0xffff888000000000,
	(uint8_t *)0xffffffff81000000, (uint8_t *)0xffffffffffffffe0,
	(uint8_t *)0xfffffffffffffff8, (uint8_t *)0xffffffffffffffff,
};

/* Any choice is one of them. */
#define FROM(table, choice)	((table)[(choice) % ARRAY_SIZE(table)])

uint32_t count_of(uint8_t choice)
{
	return FROM(counts, choice);
}

size_t size_of(uint8_t choice)
{
	return FROM(sizes, choice);
}

uint64_t limit_of(uint8_t choice)
{
	return FROM(limits, choice);
}

uint64_t slack_of(uint8_t choice)
{
	return FROM(slacks, choice);
}

uint32_t clock_of(uint8_t choice)
{
	return FROM(clocks, choice);
}

uint64_t clock_ns(int clock_id)
{
	struct timespec now;

	/* Where calls fail on purpose this one may, too. */
	while (clock_gettime(clock_id, &now) && errno == EFAULT)
		;
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

void clock_move(int64_t by_ns)
{
	uint64_t ns = clock_ns(CLOCK_REALTIME) + by_ns;
	struct timespec then = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	clock_settime(CLOCK_REALTIME, &then);
}

/* Random numbers that are the same each time. */
uint32_t draw(uint32_t *prng)
{
	uint32_t x = *prng ? *prng : 0x9e3779b9;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*prng = x;
	return x;
}

static struct place in_region(unsigned int thread, size_t offset)
{
	offset %= REGION;
	return (struct place) {
		.user = state.user[thread] + offset,
		.mine = state.mine + thread * REGION + offset,
		.room = REGION - offset,
	};
}

/**
 * place_of - choose an address
 * @thread: whose
 * @choice: low bits: its speciality, high bits: which one
 */
struct place place_of(unsigned int thread, uint8_t choice)
{
	unsigned int which = choice >> 4;
	struct place place;

	switch (choice & 15) {
	default:
		return in_region(thread, which * 1024);
	case 8:		/* close to the end of a page */
		return in_region(thread, (1 + which % 4) * PAGE - which * 32);
	case 9:		/* a record lies in two pages */
		return in_region(thread, (1 + which % 4) * PAGE - 8 - which % 3 * 8);
	case 10:	/* close to what cannot be written */
		return in_region(thread, READ_ONLY_PAGE * PAGE - which * 32);
	case 11:	/* close to what cannot even be read */
		return in_region(thread, HOLE_PAGE * PAGE - which * 32);
	case 12:	/* no multiple of 8 */
		return in_region(thread, 1 + which);
	case 13:	/* another thread's */
		return in_region((thread + 1 + which) % THREADS, which * 512);
	case 14:	/* what is shown there ends, though the region does not */
		place = in_region(thread, 0);
		place.user -= which * 8;
		place.mine = NULL;
		return place;
	case 15:
		return (struct place) { .user = FROM(wild, which) };
	}
}

/**
 * deadline_of - choose a deadline
 * @choice: which
 * @clock_id: that it is on
 * @flags: gets EXPIRY_F_RELATIVE if it counts from now
 */
uint64_t deadline_of(uint8_t choice, int clock_id, uint8_t *flags)
{
	unsigned int which = choice >> 3;

	switch (choice & 7) {
	case 0:
		return FROM(moments, which);
	case 1:
		return clock_ns(clock_id) - FROM(spans, which);
	case 2:
	case 3:
		return clock_ns(clock_id) + FROM(spans, which);
	default:
		*flags |= EXPIRY_F_RELATIVE;
		return FROM(spans, which);
	}
}

void id_remember(unsigned int queue, uint64_t id)
{
	unsigned int nr = __atomic_fetch_add(&state.nr_ids[queue], 1,
					     __ATOMIC_RELAXED);

	__atomic_store_n(&state.ids[queue][nr % IDS], id, __ATOMIC_RELAXED);
}

/* Returns a timer's id: mostly of a present or former one. */
uint64_t id_of(unsigned int queue, uint8_t choice)
{
	uint64_t id;

	if (choice >= 250)
		return choice == 255 ? ~0ULL : choice == 254 ? 0 :
			1ULL << (choice - 250) * 16;
	if (state.mode[queue] & EXPIRY_MODE_KEYED)
		return 1 + choice % 40;
	id = __atomic_load_n(&state.ids[queue][choice % IDS], __ATOMIC_RELAXED);
	if (choice >= 240)
		id ^= choice & 1 ? 1ULL << 32 : 1;
	return id;
}

static const uint8_t ops[] = {
	EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_ARM, EXPIRY_OP_REFRESH,
	EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL, EXPIRY_OP_ACK, EXPIRY_OP_QUERY,
	/* from here on not in a mixture */
	EXPIRY_OP_CLEAR, EXPIRY_OP_EXPIRED, EXPIRY_OP_CLOCK_SET, 0, 7, 255,
};

#define OPS_MIXED	8

static const uint32_t periods[] = { 0, 0, 0, 1, 2, 100, 86400000, 0xffffffff };

/*
 * Returns sequential ids, so that a batch reaches as many timers as it has
 * records: the slots of a plain queue by the generation of a known one.
 */
static uint64_t id_in_row(unsigned int queue, const struct call *call, uint32_t i)
{
	uint64_t id = 1 + i + (call->more >> 5) * 128;

	if (state.mode[queue] & EXPIRY_MODE_KEYED)
		return id;
	return (id_of(queue, call->seed % IDS) & ~0xffffffffULL) | id;
}

/* Makes the i-th record, which is right for the queue's mode. */
static struct expiry_record good_record(uint8_t op, unsigned int queue,
					const struct call *call, uint32_t i,
					uint32_t chance)
{
	struct expiry_record record = { .op = op, .cookie = chance };
	bool keyed = state.mode[queue] & EXPIRY_MODE_KEYED;

	if (op != EXPIRY_OP_CLEAR && (op != EXPIRY_OP_ARM || keyed))
		record.id = call->more & 16 ? id_in_row(queue, call, i) :
			id_of(queue, chance >> 24);
	if (op != EXPIRY_OP_ARM && op != EXPIRY_OP_REFRESH)
		return record;
	/* All the same, or each a different one. */
	record.deadline_ns = deadline_of(call->when + (call->more & 1 ?
						       chance >> 8 & 0xf8 : 0),
					 state.clock_id[queue], &record.flags);
	if (call->more & 2)
		record.flags |= EXPIRY_F_LATER;
	if (call->more & 4 && keyed && op == EXPIRY_OP_ARM)
		record.flags |= EXPIRY_F_NEW;
	if (call->more & 8 && op == EXPIRY_OP_ARM)
		record.period_ms = FROM(periods, chance);
	return record;
}

/**
 * records_fill - make the requests of a batch
 * @records: room for them
 * @count: how many
 * @queue: the intended one
 * @call: the call
 *
 * In the what field of @call the low bits are the operation. Bit 4 is a mixture
 * of all, bit 5 one bad record, bit 6 random bytes.
 */
void records_fill(struct expiry_record *records, uint32_t count,
		  unsigned int queue, const struct call *call)
{
	uint32_t prng = call->seed * 0x01000193U + 1;
	uint8_t op = FROM(ops, call->what & 15), *byte;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (call->what & 0x10)
			op = ops[draw(&prng) % OPS_MIXED];
		records[i] = good_record(op, queue, call, i, draw(&prng));
		if ((call->what & 0x60) != 0x40)
			continue;
		for (byte = (void *)&records[i]; byte < (uint8_t *)&records[i + 1]; byte++)
			*byte = draw(&prng) >> 16;
	}
	if (call->what & 0x20 && count) {
		byte = (void *)&records[draw(&prng) % count];
		byte[draw(&prng) % RECORD] ^= draw(&prng) >> 16;
	}
}
