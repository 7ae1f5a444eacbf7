/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections to expiryd that the benchmarks drive themselves: records as they
 * are on the wire, no library between.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>

/**
 * struct consumer - a connection that takes a queue's expirations
 * @clock_id: of the queue; times below are on it
 * @window: credit that is kept with the daemon
 * @owed: taken and not yet given again
 * @got: expirations so far
 * @first_ns: when the first of them came; @last_ns likewise
 * @latest_ns: the last deadline seen; an earlier one ends the program
 * @any_order: do not look at that: late requests may overtake
 * @part: bytes of a record that is not whole yet, at the buffer's beginning
 */
struct consumer {
	int fd;
	uint32_t clock_id;
	uint32_t window;
	uint32_t owed;
	uint64_t got;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t latest_ns;
	bool any_order;
	uint32_t part;
	char *buffer;
};

/* A connection to the queue @name ("" = one of its own) on CLOCK_MONOTONIC. */
int wire_attach(const char *path, const char *name, uint8_t flags);
int wire_attach_clock(const char *path, const char *name, uint8_t flags,
		      uint32_t clock_id);

/* The same as a consumer of up to @window expirations at a time. */
void consumer_attach(struct consumer *consumer, const char *path,
		     const char *name, uint32_t window);
void consumer_attach_clock(struct consumer *consumer, const char *path,
			   const char *name, uint32_t window,
			   uint32_t clock_id);
void consumer_close(struct consumer *consumer);

/* Take what is there; blocks if nothing is. @each: called for every record,
 * may be NULL. Returns how many there were.
 */
uint32_t consumer_take(struct consumer *consumer,
		       void (*each)(const struct expiry_record *record,
				    uint64_t now_ns));

/* Whole records, blocking. */
void wire_send(int fd, const struct expiry_record *records, uint32_t nr);
void wire_receive(int fd, struct expiry_record *records, uint32_t nr);

/**
 * struct wire_clock - a queue on one clock
 * @consumer: takes its expirations; @producer: another connection to it
 */
struct wire_clock {
	uint32_t clock_id;
	int producer;
	struct consumer consumer;
};

/* The other clocks beside CLOCK_MONOTONIC: a daemon at work has queues on more
 * than one.
 */
#define WIRE_CLOCKS	2
extern struct wire_clock wire_clocks[WIRE_CLOCKS];

/* Make a queue on each of them, with timers that are hours ahead. */
void wire_clocks_fill(const char *path);

#endif /* BENCH_WIRE_H */
