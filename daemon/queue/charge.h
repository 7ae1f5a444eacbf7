/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges of timers to the owner of their queue. */
#ifndef DAEMON_CHARGE_H
#define DAEMON_CHARGE_H

#include <stdint.h>
#include <linux/expiry.h>

struct context;
struct mail;
struct queue;

/* Updates the owner's charge to the timers in the queue now. */
void charge_update(struct queue *queue);

/* Returns the number of timers in the queue; its engine counts them anew. */
uint64_t charge_count_timers(struct queue *queue);

/* Returns how many of @count records of one run may go to the engine within the
 * owner's limit of timers; 0: refuse the first one. Near the limit timers are
 * charged beforehand: *@armsp is their number, until charge_complete().
 */
uint32_t charge_admit(struct queue *queue, const struct expiry_record *records,
		      uint32_t count, uint32_t *armsp);

/* Replaces the charge of @arms timers by the real number, after the engine. */
void charge_complete(struct queue *queue, uint32_t arms);

/* Recounts the timers of this thread's durable queues: an engine's own count may be
 * too high.
 */
void charges_recount_durable(struct context *context);

/* Recounts this thread's timers of a user at the limit. */
void charges_recount(struct context *context, struct mail *mail);

#endif /* DAEMON_CHARGE_H */
