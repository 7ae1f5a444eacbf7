/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Making durable queues anew from a thread's journal, at the start. */
#ifndef DAEMON_RESTORE_H
#define DAEMON_RESTORE_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/format.h"
#include "daemon/journal/recovery.h"
#include "daemon/loop/loop.h"
#include "daemon/queue/crowded.h"

struct context;
struct queue;

#define RESTORE_BATCH	512U

/* The journal has the time as often, also without requests: a MONOTONIC timer is at most
 * so late after a loss of power.
 */
#define RESTORE_CLOCK_NS	60000000000ULL

/**
 * struct restore - a start
 * @boot_id: of this start of the machine
 * @shift: moves deadlines of the last one's; op 0 = it is the same
 * @now_ns: time on each clock, by loop_clock()
 * @late_ns: what was due before may have been delivered, likewise
 * @table: queues by their number, @table_size of them, a power of two
 * @next_number: greater than any
 * @nr_elsewhere: queues whose names are another thread's
 * @is_ahead: a queue is the module's, and ahead of the journal
 * @has_deliveries: some timer was made with one that waits for its ACK
 * @batch: requests for @queue, @count of them
 * @crowded: those without room
 * @follow: rows that follow of the queue of the last JOURNAL_OP_QUEUE, as that says
 * @reservable: of all queues rows that the checkpoint can have beside those reserved for
 * @applied: records read so far
 * @told_ns: when the service manager was last told of it, on CLOCK_MONOTONIC
 * @has_ended: the whole journal is read
 */
struct restore {
	struct context *context;
	uint8_t boot_id[16];
	struct journal_shift shift;
	uint64_t now_ns[LOOP_CLOCKS];
	uint64_t late_ns[LOOP_CLOCKS];
	struct restore_entry *table;
	uint32_t table_size;
	uint32_t table_used;
	uint64_t next_number;
	uint32_t nr_elsewhere;
	uint64_t nr_queues;
	uint64_t nr_timers;
	uint64_t nr_overdue;
	bool is_ahead;
	bool has_deliveries;
	struct queue *queue;
	uint32_t count;
	struct expiry_record batch[RESTORE_BATCH];
	struct crowded crowded;
	uint64_t follow;
	uint64_t reservable;
	uint64_t applied;
	uint64_t told_ns;
	bool has_ended;
};

/* Reads the thread's stream and makes its queues. The caller closes @recovery.
 * Returns 0 or -errno, after a line in the log.
 */
int restore_run(struct restore *restore, struct recovery *recovery,
		struct context *context);

#endif /* DAEMON_RESTORE_H */
