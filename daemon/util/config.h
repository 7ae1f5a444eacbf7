/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The administrator's settings: a file of lines `key = value`. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#define CONFIG_PATH_MAX	256
#define THREADS_MAX	64

/**
 * struct config - settings; config.c has the table of keys and defaults,
 * expiryd.conf(5) what they mean
 */
struct config {
	char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char device[CONFIG_PATH_MAX];
	char engine[16];
	char loop[16];
	char layout[16];
	char log_level[16];
	char journal[CONFIG_PATH_MAX];
	char commit[16];
	uint64_t journal_size;
	char queue_files[CONFIG_PATH_MAX];
	char undeclared[16];
	char undeclared_group[64];
	uint64_t socket_mode;
	uint64_t threads;

	/* Limits of what clients can make grow. */
	uint64_t connections;
	uint64_t connections_per_user;
	uint64_t queues;
	uint64_t queues_per_user;
	uint64_t timers_per_queue;
	uint64_t timers_per_user;
	uint64_t memory;
	uint64_t records_in_flight;
	uint64_t backlog_memory;
	uint64_t credit_max;
	uint64_t hello_timeout;
	uint64_t busy_after;
	uint64_t observers_per_queue;
	uint64_t observer_memory;
	uint64_t kept_queues;
	uint64_t kept_queues_per_user;

	/* Limits of what they share. */
	uint64_t buffers;
	uint64_t buffer_size;

	/* The number of undeclared_group, from config_resolve(). */
	gid_t undeclared_gid;
};

/* Folders of declared queues, the first one first. */
#define CONFIG_QUEUE_FILES	"/etc/expiry/queues.d:/run/expiry/queues.d:" \
				"/usr/local/lib/expiry/queues.d:" \
				"/usr/lib/expiry/queues.d"

/* Returns the EXPIRY_LAYOUT_* of queues made from now on, 0 = the engine's own. */
uint32_t config_layout(const struct config *config);

/* Returns the time between flushes of the journal, 0 = one with each commit. */
uint64_t config_commit_ns(const struct config *config);

void config_init(struct config *config);

/* Sets one key. Returns NULL, or the fault. */
const char *config_set(struct config *config, const char *key,
		       const char *value);

/* Looks up undeclared_group among the machine's groups. Returns 0, or -EINVAL
 * after a line in the log.
 */
int config_resolve(struct config *config);

/* Reads a file, then the files *.conf in the directory @path.d, by name. Keys
 * that no file has keep their values. The files may be absent, except @path
 * itself if it is @needed. Returns 0, or -errno after a line in the log:
 * -EINVAL with the line at fault, others with the reason.
 */
int config_read(struct config *config, const char *path, bool needed);

/* Takes over from @from the settings that may change at runtime. Logs which
 * others differ and need a restart.
 */
void config_update(struct config *config, const struct config *from);

#endif /* DAEMON_CONFIG_H */
