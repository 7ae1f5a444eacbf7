/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Deliveries: expirations on their way from the engine to the consumer. */
#ifndef DAEMON_DELIVERY_H
#define DAEMON_DELIVERY_H

#include <stdint.h>

struct client;
struct context;
struct queue;

/* Makes the client the queue's consumer. */
void delivery_attach(struct queue *queue, struct client *client);

/* Queues the queue for delivery_run() after a change: credit, room, a due
 * timer.
 */
void delivery_kick(struct queue *queue);

/* Adds the client's credit, and starts the consumer. */
void delivery_credit(struct queue *queue, uint32_t credit);

/* Most expirations in one turn: a storm of them must not starve requests. */
#define TURN_EXPIRATIONS	2048

/* Hands out due timers, about @budget expirations. Returns the rest of the
 * budget.
 */
uint32_t deliveries_run(struct context *context, uint32_t budget);

/* Reports a step of CLOCK_REALTIME to consumers on that clock. */
void deliveries_clock_set(struct context *context);

#endif /* DAEMON_DELIVERY_H */
