/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The contents of a thread's journal: its queues and timers, as a daemon would
 * make them anew. The files are hostile: nothing of them is trusted.
 */
#ifndef TOOLS_JOURNAL_CONTENTS_H
#define TOOLS_JOURNAL_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/recovery.h"

/**
 * struct contents_queue - a queue
 * @number: in the journal
 * @name: ends with a NUL
 * @timers: a hash table by id, @size of them; then sorted, @nr_timers of them
 * @nr_used: entries of the table that are not empty
 *
 * A timer is a record ARM, on the clock of the journal's last start. One that was
 * cancelled while a delivery waited for its ACK is a record CANCEL. A delivery of a
 * periodic timer that waits is EXPIRY_F_REDELIVERED.
 */
struct contents_queue {
	uint64_t number;
	char name[25];
	uint32_t clock_id;
	uint32_t uid;
	struct expiry_record *timers;
	size_t nr_timers;
	size_t nr_used;
	size_t size;
};

/**
 * struct contents - a thread's journal
 * @recovery: its files, and the fault of contents_read()
 * @queues: by name, @nr_queues of them
 * @by_number: a tree of them while they are read; likewise @by_name
 * @key: random key of the hash of ids
 */
struct contents {
	struct recovery recovery;
	struct contents_queue **queues;
	size_t nr_queues;
	void *by_number;
	void *by_name;
	uint64_t key;
};

/* Reads the journal of @thread. Returns 0 or -errno as recovery_open(), with
 * @recovery's @fault and @why. The caller calls contents_free() in either case.
 */
int contents_read(struct contents *contents, struct disk *disk,
		  uint16_t thread);
void contents_free(struct contents *contents);

#endif /* TOOLS_JOURNAL_CONTENTS_H */
