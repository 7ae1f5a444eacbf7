/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that uses the library, and the oracle that holds what the library
 * gives it against what went over its connections.
 */
#ifndef TESTS_SIM_PROGRAM_H
#define TESTS_SIM_PROGRAM_H

#include <expiry/expiry.h>

#include "tests/sim/sim.h"

#define PROGRAMS	2
#define PROGRAM_TAG	(1ULL << 63)	/* in the cookies of its requests */
#define PROGRAM_UNITS	4096		/* of the reply to one call */

/**
 * struct call - one request of a program
 * @asked: as the program made it, at @begun_ns of the queue's clock
 * @answer: the last that came over a connection, if @is_answered
 * @is_over: an ACK that may have been carried out: its timer was not due
 * @clock_sets: steps of CLOCK_REALTIME when its timer was due, plus 1; 0: it was not
 * @sent_on: the connection that last carried it, of @nr_sent
 * @is_posted: not part of a blocking call
 * @is_done: the program has its reply, or gets none
 * @is_doomed: a lost connection left it in doubt, and it must not be repeated
 */
struct call {
	struct expiry_record asked;
	struct expiry_record answer;
	uint64_t begun_ns;
	const struct peer *sent_on;
	uint32_t nr_sent;
	uint32_t clock_sets;
	bool is_posted;
	bool is_answered;
	bool is_over;
	bool is_done;
	bool is_doomed;
};

/**
 * struct program - a program
 * @go: the seed of its next action, 0 = it waits for one
 * @action: what it does, for messages
 * @peer: its latest connection; @losses of those before
 * @refusal: the status of the last HELLO; @refused_ns: since when it is one
 * @calls: all that it made, @nr_calls of them; @next: the next posted reply
 * @events: that arrived, @nr_events of them; @nr_taken by the program; those before
 *	@nr_droppable may come again instead
 * @missed: events that an observer's MISSED covers
 * @nr_before: of an observer, those before a refused STAT, which ends an attempt to
 *	reconnect; UINT32_MAX: none was refused
 * @nr_clock_sets: arrived, less those that the program took, @has_clock_set; those that
 *	a lost connection may have taken along: @nr_clock_lost
 * @is_late: a call ended early, perhaps because it timed out
 * @granted: manual credit that is not used up
 * @units: of the reply to the present call, @nr_units of them
 * @error: that broke the handle
 */
struct program {
	uint32_t number;
	uint64_t go;
	const char *action;
	bool is_last;
	bool has_ended;
	bool is_quiet;

	struct expiry *handle;
	struct expiry_options options;
	struct topic *topic;
	struct peer *peer;
	uint32_t losses;
	int refusal;
	uint64_t refused_ns;
	uint64_t call_ns;

	struct call *calls;
	uint32_t nr_calls;
	uint32_t max_calls;
	uint32_t next;
	uint32_t done;
	struct expiry_record *events;
	uint32_t nr_events;
	uint32_t max_events;
	uint32_t nr_taken;
	uint32_t nr_droppable;
	uint64_t missed;
	uint32_t nr_before;
	uint32_t nr_clock_sets;
	uint32_t nr_clock_lost;
	bool has_clock_set;
	bool is_late;
	uint32_t granted;
	struct expiry_record units[PROGRAM_UNITS];
	uint32_t nr_units;
	int error;
};

/* ---------------------------------------------------------------- program.c */

void programs_start(struct rng *rng);
/* Lets a random program do something, if it waits. */
void programs_step(struct rng *rng);
/* Lets each program take all that is there. Returns whether there is more. */
bool programs_drain(void);
/* Ends each program. Returns whether all have ended. */
bool programs_close(void);
/* Fails, because a program waits for what does not come. */
void programs_fail(void);
/* Cuts a random program's connection. */
void programs_cut(struct rng *rng);

/* Connects the program that runs. Returns its end, NULL: the backlog is full. */
struct stream *program_connect(void);
void program_send(struct peer *peer, const void *data, size_t n);
void program_hang_up(struct peer *peer);

/* ----------------------------------------------------------------- oracle.c */

/* Note what goes over a connection: a record from the program, and one to it. */
void oracle_sent(struct peer *peer, const struct expiry_record *record);
void oracle_unit(struct peer *peer, const struct expiry_record *record);
void oracle_answered(struct peer *peer, const struct expiry_record *record);
void oracle_event(struct peer *peer, const struct expiry_record *record);
/* The library found no connection: an error of its system call. */
void oracle_unconnected(struct program *p, int error);
/* The library gives up a connection. */
void oracle_lost(struct program *p);
/* Begins anew, with a new handle. */
void oracle_reset(struct program *p);

/* Makes a call of a request, whose cookie it sets. */
void oracle_call(struct program *p, struct expiry_record *record, bool post);
/* Checks @nr answers of the last @count requests of a blocking call. */
void oracle_replies(struct program *p, const struct expiry_record *records,
		    int nr, uint32_t count);
/* Checks what expiry_next() gave. */
void oracle_took(struct program *p, const struct expiry_record *records, int nr);
/* Checks that an error has a reason. */
void oracle_failed(struct program *p, int error);
void oracle_scan(struct program *p, const struct expiry_record *rows, int nr,
		 uint64_t cursor);
void oracle_stat(struct program *p, const struct expiry_stat *stat);
/* Checks that nothing is left, when a program has taken all. */
void oracle_quiet(struct program *p);

#endif /* TESTS_SIM_PROGRAM_H */
