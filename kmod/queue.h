/* SPDX-License-Identifier: GPL-2.0-only */
/* A queue: an open file of /dev/expiry. */
#ifndef EXPIRY_QUEUE_H
#define EXPIRY_QUEUE_H

#include "queue_state.h"
#include "use.h"

/* Records processed in one critical section, and kept on the stack: 1 KiB. */
#define EXPIRY_CHUNK	32U

struct expiry_queue *expiry_queue_new(void);
void expiry_queue_free(struct expiry_queue *queue);
int expiry_queue_set_layout(struct expiry_queue *queue,
			    const struct bheap_layout *layout);
int expiry_queue_configure(struct expiry_queue *queue,
			   const struct expiry_config *config);

int expiry_queue_lock(struct expiry_queue *queue, struct expiry_use *use);
int expiry_queue_lock_to_look(struct expiry_queue *queue);
void expiry_queue_unlock(struct expiry_queue *queue, struct expiry_use *use);

u32 expiry_queue_submit_locked(struct expiry_queue *queue,
			       struct expiry_record *records, u32 count);
int expiry_queue_rewind_locked(struct expiry_queue *queue, u64 *cursor);
int expiry_queue_rewind(struct expiry_queue *queue);
int expiry_queue_scan_locked(struct expiry_queue *queue,
			     struct expiry_record *records, u32 count,
			     u64 *cursor);
void expiry_queue_stat_locked(struct expiry_queue *queue,
			      struct expiry_stat *stat);

#endif /* EXPIRY_QUEUE_H */
