/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ACKs that may have been carried out before the connection broke. One that is sent
 * again finds no delivery, both if it was carried out and if the server was restarted.
 * The timer tells: where it is due, its expiration comes again.
 */
#ifndef LIB_ACKS_H
#define LIB_ACKS_H

#include "internal.h"

/**
 * struct acks - posted ACKs in doubt, whose timers are asked for before anything is sent
 * @ring: posted requests without an answer (const)
 * @end: behind the last request in doubt, as the ring's @tail
 * @next: behind the last one whose QUERY is sent; likewise
 * @answered: behind the last one whose QUERY is answered
 * @asked: QUERYs without an answer
 * @nr_over: replies to come, or to be handed out, for which @is_over
 * @is_over: for each place of @ring: its ACK was carried out if it finds no delivery
 */
struct acks {
	const struct ring *ring;
	uint32_t end;
	uint32_t next;
	uint32_t answered;
	uint32_t asked;
	uint32_t nr_over;
	bool is_over[];
};

/* Makes @h a handle that asks; free() ends that. @ring: posted requests without an answer.
 * 0 or -ENOMEM.
 */
int acks_init(struct expiry *h, const struct ring *ring);

/* Returns a QUERY for the timer of an ACK. */
struct expiry_record acks_query(const struct expiry_record *ack);

/* Returns whether the reply to that QUERY, which came at @now_ns, says that the timer's
 * expiration does not come again.
 */
bool acks_is_over(const struct expiry_record *reply, uint64_t now_ns);

/* Notes that the connection has ended, to which the first @sent requests of the ring had
 * been given.
 */
void acks_lost(struct expiry *h, uint32_t sent);

/* Begins anew on another connection, with those in the ring. */
void acks_begin(struct expiry *h);

/* Continues as far as possible without waiting. Returns 1 when all are answered, 0 to
 * wait for the socket, or -errno of the connection.
 */
int acks_step(struct expiry *h);

/* Completes @nr records that the program is about to get: an ACK that was carried out
 * before the break has succeeded.
 */
void acks_complete(struct expiry *h, struct expiry_record *records, uint32_t nr);

#endif /* LIB_ACKS_H */
