/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A run with durable queues: the daemon has several lives on one disk, which loses
 * power or not where a life ends. Each life is a process; what outlives it is in
 * memory that all of them share.
 *
 *   lives.c   one life after the other
 *   disk.c    the disk, between the daemon and tests/journal/simulated-disk.c
 *   past.c    what the durable queues have answered, and what must be there again
 */
#ifndef TESTS_SIM_LIVES_H
#define TESTS_SIM_LIVES_H

#include "tests/journal/simulated-disk.h"
#include "tests/sim/sim.h"

struct horrible_timer;

/* ------------------------------------------------------------------ lives.c */

/* Runs all lives: each one by @run, which returns where the daemon has ended. */
void lives_run(void (*run)(void));
/* The machine loses power, or the daemon is killed: this process ends. */
void life_end(void) __attribute__((noreturn));

/* ------------------------------------------------------------------- disk.c */

#define DISK_FD	500	/* the first descriptor */

/* Gives the disk to this life. */
void disk_insert(struct sim_disk *disk);
/* Chooses whether and where the disk fails; one step. */
void disk_step(struct rng *rng);
/* From now on it does not fail. */
void disk_heal(void);
/* Carries out a request of the ring. Return as the opcodes do. */
int disk_write(int fd, const void *data, uint32_t len, uint64_t offset);
int disk_sync(int fd);
/* Returns whether the ring may write it without a thread: the seed says. */
bool disk_is_direct(void);
/* Writes at the crash, or does not. */
void disk_write_late(int fd, const void *data, uint32_t len, uint64_t offset);
/* Returns whether an operation has failed in this run. */
bool disk_has_failed(void);

/* ------------------------------------------------------------------- past.c */

/* Prepares the memory that all lives share. */
void past_init(void);
/* A durable queue of this name was made. */
void past_made(const char *name);
/* The queue ends. Returns the number of the change. */
uint32_t past_dropped(const char *name);
/* Notes an answer of the engine; @timer is that of its id now, or NULL. Returns the
 * number of the queue's last change.
 */
uint32_t past_note(const char *name, const struct expiry_record *answer,
		   const struct horrible_timer *timer);
/* A client has an answer that shows the changes up to this number. */
void past_answered(const char *name, uint32_t number);
/* A client that connected at @since_ns, on CLOCK_MONOTONIC, knows that the queue is
 * there.
 */
void past_attached(const char *name, uint64_t since_ns);
/* A client was shown a row of SCAN. */
void past_shown(const char *name, const struct expiry_record *row);
/* A client has an expiration of the queue. */
void past_expired(const char *name, uint32_t clock_id,
		  const struct expiry_record *expired);
/* The twin of the queue knows no more. */
void past_spoil(const char *name);
/* CLOCK_REALTIME is going to be set. */
void past_clock(void);
/* A life ends. @is_clean: by a signal; @has_power: the disk keeps all. */
void past_ends(bool is_clean, bool has_power);
/* At the start: durable queues are as after some of their changes, with all that
 * must be there.
 */
void past_check(void);

#endif /* TESTS_SIM_LIVES_H */
