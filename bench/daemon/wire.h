/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections to expiryd that the benchmarks drive themselves: records in their
 * wire format, without the library.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>

/**
 * struct consumer - a connection that takes a queue's expirations
 * @clock_id: of the queue; times below are on it
 * @window: credit kept at the daemon
 * @owed: expirations taken since the last credit
 * @got: expirations so far
 * @first_ns: when the first of them came; @last_ns likewise
 * @latest_ns: the last deadline seen
 * @any_order: do not check the order: late requests may overtake
 * @part: bytes of an incomplete record, at the buffer's beginning
 *
 * A deadline earlier than @latest_ns ends the program.
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

/* Connects to the queue @name ("" = an anonymous one) on CLOCK_MONOTONIC. */
int wire_attach(const char *path, const char *name, uint8_t flags);
int wire_attach_clock(const char *path, const char *name, uint8_t flags,
		      uint32_t clock_id);

/* Connects as a consumer of up to @window expirations at a time. */
void consumer_attach(struct consumer *consumer, const char *path,
		     const char *name, uint32_t window);
void consumer_attach_clock(struct consumer *consumer, const char *path,
			   const char *name, uint32_t window,
			   uint32_t clock_id);
void consumer_close(struct consumer *consumer);

/* Takes the records that have arrived; blocks if there are none. Calls @each,
 * unless NULL, for every record. Returns how many there were.
 */
uint32_t consumer_take(struct consumer *consumer,
		       void (*each)(const struct expiry_record *record,
				    uint64_t now_ns));

/* Gives a consumer's connection credit. */
void wire_credit(int fd, uint32_t credit);

/* Sends or receives whole records, blocking. */
void wire_send(int fd, const struct expiry_record *records, uint32_t nr);
void wire_receive(int fd, struct expiry_record *records, uint32_t nr);

/**
 * struct wire_arming - timers to arm
 * @nr: how many
 * @from_ns: the first possible deadline
 * @within_ns: the others are at random within this time
 * @every_ns: if not 0, at this interval instead
 * @ids: room for their names; may be NULL
 */
struct wire_arming {
	uint32_t nr;
	uint64_t from_ns;
	uint64_t within_ns;
	uint64_t every_ns;
	uint64_t *ids;
};

/* Arms them, by batches that are sent while earlier answers arrive. Ends the
 * program if one is refused.
 */
void wire_arm(int fd, const struct wire_arming *arming);

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

/* Makes a queue on each of them, with timers that are hours ahead. */
void wire_clocks_fill(const char *path);

#endif /* BENCH_WIRE_H */
