/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a byte to an argument.
 */
#ifndef FUZZ_DEVICE_VALUES_H
#define FUZZ_DEVICE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "state.h"

#define NSEC_PER_SEC	1000000000ULL

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/**
 * struct place - an address for the kernel
 * @user: the address; may be any
 * @mine: the same memory where it can always be written, or NULL
 * @room: bytes from there to the end of the region
 */
struct place {
	uint8_t *user;
	uint8_t *mine;
	size_t room;
};

struct place place_of(unsigned int thread, uint8_t choice);
uint32_t count_of(uint8_t choice);
size_t size_of(uint8_t choice);
uint64_t limit_of(uint8_t choice);
uint64_t slack_of(uint8_t choice);
uint64_t deadline_of(uint8_t choice, int clock_id, uint8_t *flags);
uint64_t id_of(unsigned int queue, uint8_t choice);
void id_remember(unsigned int queue, uint64_t id);

uint32_t clock_of(uint8_t choice);
uint64_t clock_ns(int clock_id);

/* Sets CLOCK_REALTIME forward, or back. */
void clock_move(int64_t by_ns);
uint32_t draw(uint32_t *prng);

void records_fill(struct expiry_record *records, uint32_t count,
		  unsigned int queue, const struct call *call);

#endif /* FUZZ_DEVICE_VALUES_H */
