/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines on stderr or, where that is the journal, entries with fields in it. The
 * level is checked before anything is formatted. Any thread may write.
 *
 * The log's reader may stop reading, and no loop may wait for that. Lines are
 * queued, and a thread of their own writes them. The queue is bounded. Lines
 * that do not fit are counted, and a line reports their number when lines can
 * be written again (docs/decisions/0014-log.md).
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/util/log-entry.h"

/* The level of the log: lines up to this level are written. */
extern _Atomic enum log_level log_max;

static inline bool log_wanted(enum log_level level)
{
	return level <= atomic_load_explicit(&log_max, memory_order_relaxed);
}

/* Kinds of entries, MESSAGE_ID= in the journal; expiryd.catalog explains each.
 */
#define LOG_STARTED		"4de2836104904ac0b779493623c44f5f"
#define LOG_CLIENT_ENDED	"c4eecee2ded54e568c0335d731292685"
#define LOG_CLIENT_REFUSED	"2102d08fa64743e88fc1a541ad41cacd"
#define LOG_QUEUE_NOT_KEPT	"225c1277413244a5ae2a51e8ac2e4182"
#define LOG_SETTINGS_WRONG	"207a0f86ecc64a5797dd0bab18dbae44"
#define LOG_ACCESS_REFUSED	"c0d1f8a0be5e4d5bb7a9ad0f9a1d8e34"
#define LOG_QUEUE_FILE		"8a6f5b0d2f3a4c57a9b2a7f0b1d64c11"
#define LOG_TIMERS_LOST		"5ed1c0dd0fbf45eda5b7a4f4a6a0a2c9"

/* Initializes the log by the environment and starts the thread that writes.
 * Returns 0 or -errno.
 */
int log_init(void);

/* Waits until all is written, at most LOG_END_MS: a reader that has stopped
 * must not keep the daemon from ending. No line may be logged afterwards.
 */
#define LOG_END_MS	2000
void log_deinit(void);

/* Sets the level from now on: "err", "warning" or "info" and above. */
void log_set_level(const char *name);

/* Returns the lines lost since the start: the queue was full, or they could not
 * be written.
 */
uint64_t log_dropped(void);

/* Returns the lines about clients left out since the start: beyond a budget. */
uint64_t log_left_out(void);

/* Writes a line; @about may be NULL. */
void log_write(enum log_level level, const struct log_about *about,
	       const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes a warning that a client caused, within the budget of @about's user;
 * NULL: no user in particular.
 */
void log_client(const struct log_about *about, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define log_at(level, about, ...) \
	do { \
		if (log_wanted(level)) \
			log_write((level), (about), __VA_ARGS__); \
	} while (0)

#define log_err(...)		log_at(LOG_LEVEL_ERR, NULL, __VA_ARGS__)
#define log_warning(...)	log_at(LOG_LEVEL_WARNING, NULL, __VA_ARGS__)
#define log_info(...)		log_at(LOG_LEVEL_INFO, NULL, __VA_ARGS__)

/* Writes a line caused by a client: limited, so that no user can fill the log
 * or hide lines about others by misbehaving.
 */
#define log_peer(about, ...) \
	do { \
		if (log_wanted(LOG_LEVEL_WARNING)) \
			log_client((about), __VA_ARGS__); \
	} while (0)

#endif /* DAEMON_LOG_H */
