/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines on stderr. The level is checked before anything is formatted.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>

/* The values are syslog's and the journal's. */
enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
};

extern enum log_level log_max;

/* Look at the environment: under systemd, lines carry their level. */
void log_init(void);

/* Whether one more line that a client caused may be written now. Counts what
 * it refuses and says how many there were when it allows again.
 */
bool log_allowed(void);

void log_write(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define log_at(level, ...) \
	do { \
		if ((level) <= log_max) \
			log_write((level), __VA_ARGS__); \
	} while (0)

#define log_err(...)		log_at(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...)	log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)		log_at(LOG_LEVEL_INFO, __VA_ARGS__)

/* What a client brought about: limited, so that nobody can fill the log or
 * slow the daemon down by misbehaving.
 */
#define log_peer(...) \
	do { \
		if (log_max >= LOG_LEVEL_WARNING && log_allowed()) \
			log_write(LOG_LEVEL_WARNING, __VA_ARGS__); \
	} while (0)

#endif /* DAEMON_LOG_H */
