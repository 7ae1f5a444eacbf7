// SPDX-License-Identifier: LGPL-2.1-or-later
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <expiry/wire.h>

#include "daemon/util/log-budget.h"
#include "daemon/util/log-sink.h"
#include "daemon/util/log.h"

/* Limits of queued lines: all, those about clients, and those about one user.
 * So the lines after a reader's pause are not all about the worst client.
 */
#define LOG_QUEUED		128
#define LOG_QUEUED_CLIENTS	96
#define LOG_QUEUED_USER		24

/* Delay of the report of left out lines, unless the daemon ends. */
#define LOG_NOTE_S	5

_Atomic enum log_level log_max = LOG_LEVEL_INFO;

/**
 * struct entry - a queued line
 * @queue: memory of @about.queue
 * @client: a client caused it, one of @about.uid
 * @dropped: lines lost before it
 */
struct entry {
	enum log_level level;
	struct log_about about;
	char queue[EXPIRY_NAME_MAX];
	bool client;
	uint64_t dropped;
	char message[LOG_LINE];
};

/**
 * struct log_queue - queued lines, and their writer's thread
 * @lock: protects all fields below and the budgets
 * @more: there is work; @ended: the thread has ended
 * @head: next entry to write; only the thread changes it
 * @tail: next entry to queue
 * @dropped: lines lost after the last entry
 * @note_s: when to report left out lines, 0 = none
 * @stop: write the remaining lines, then end
 * @is_ended: the thread has ended
 *
 * @note_s is on CLOCK_MONOTONIC. No call is made under @lock.
 */
static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_cond_t ended;
	uint64_t head;
	uint64_t tail;
	uint64_t dropped;
	time_t note_s;
	bool stop;
	bool is_ended;
	struct entry entries[LOG_QUEUED];
} log_queue = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic uint64_t dropped_total;
static _Atomic uint64_t left_out_total;

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* ---------------------------------------------------------------- the thread */

/* Reports @nr lost lines, and those of failed reports. */
static void note_dropped(uint64_t nr)
{
	static const struct log_about about;
	static uint64_t unsaid;
	char message[LOG_LINE];

	unsaid += nr;
	if (!unsaid)
		return;
	snprintf(message, sizeof(message),
		 "%llu lines were dropped: the log could not be written in time",
		 (unsigned long long)unsaid);
	if (log_sink_write(LOG_LEVEL_WARNING, &about, message))
		unsaid = 0;
}

/* Counts a lost line; called with the lock. */
static void count_dropped(void)
{
	log_queue.dropped++;
	dropped_total++;
}

/* Writes the oldest entry. Called with the lock, which it releases meanwhile.
 */
static void write_entry(void)
{
	struct entry *entry = &log_queue.entries[log_queue.head % LOG_QUEUED];
	bool is_written;

	pthread_mutex_unlock(&log_queue.lock);
	note_dropped(entry->dropped);
	is_written = log_sink_write(entry->level, &entry->about,
				    entry->message);
	pthread_mutex_lock(&log_queue.lock);
	log_queue.head++;
	if (!is_written)
		count_dropped();
}

/* Reports users with lines left out. Called with the lock, which it releases
 * meanwhile.
 */
static void write_notes(void)
{
	static const struct log_about about;
	char message[LOG_LINE], user[32];
	size_t cursor = 0;
	bool is_written;
	uint64_t nr;
	uid_t uid;

	log_queue.note_s = 0;
	while ((nr = log_budget_left_out(&cursor, &uid))) {
		pthread_mutex_unlock(&log_queue.lock);
		*user = '\0';
		if (uid != LOG_NOBODY)
			snprintf(user, sizeof(user), " of uid %u",
				 (unsigned int)uid);
		snprintf(message, sizeof(message),
			 "%llu lines about clients%s were left out",
			 (unsigned long long)nr, user);
		is_written = log_sink_write(LOG_LEVEL_WARNING, &about, message);
		pthread_mutex_lock(&log_queue.lock);
		if (!is_written)
			count_dropped();
	}
}

/* Returns whether left out lines must be reported: after the delay, or at the
 * end, once no other line is left. Called with the lock.
 */
static bool are_notes_due(void)
{
	if (!log_queue.note_s)
		return false;
	return log_queue.note_s <= now_s() ||
	       (log_queue.stop && log_queue.head == log_queue.tail);
}

/* Waits for more to write, or until a report is due; called with the lock. */
static void wait_for_more(void)
{
	struct timespec until = { .tv_sec = log_queue.note_s };

	if (log_queue.note_s)
		pthread_cond_timedwait(&log_queue.more, &log_queue.lock,
				       &until);
	else
		pthread_cond_wait(&log_queue.more, &log_queue.lock);
}

static void *log_main(void *data)
{
	uint64_t nr;

	pthread_setname_np(pthread_self(), "expiry-log");
	pthread_mutex_lock(&log_queue.lock);
	for (;;) {
		if (are_notes_due()) {
			write_notes();
		} else if (log_queue.head < log_queue.tail) {
			write_entry();
		} else if (log_queue.dropped) {
			nr = log_queue.dropped;
			log_queue.dropped = 0;
			pthread_mutex_unlock(&log_queue.lock);
			note_dropped(nr);
			pthread_mutex_lock(&log_queue.lock);
		} else if (log_queue.stop) {
			break;
		} else {
			wait_for_more();
		}
	}
	pthread_mutex_unlock(&log_queue.lock);
	/* A report may have failed, with no line after it. */
	note_dropped(0);
	pthread_mutex_lock(&log_queue.lock);
	log_queue.is_ended = true;
	pthread_cond_signal(&log_queue.ended);
	pthread_mutex_unlock(&log_queue.lock);
	return data;
}

int log_init(void)
{
	pthread_condattr_t attr;
	sigset_t signals, before;
	int r;

	log_sink_init();
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&log_queue.more, &attr);
	pthread_cond_init(&log_queue.ended, &attr);
	pthread_condattr_destroy(&attr);
	/* The thread takes no signal. SIGTTOU would stop a daemon in the
	 * background of a terminal with tostop.
	 */
	sigfillset(&signals);
	pthread_sigmask(SIG_SETMASK, &signals, &before);
	r = -pthread_create(&log_queue.thread, NULL, log_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void log_deinit(void)
{
	struct timespec until;
	bool is_ended;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOG_END_MS / 1000;
	pthread_mutex_lock(&log_queue.lock);
	log_queue.stop = true;
	pthread_cond_signal(&log_queue.more);
	while (!log_queue.is_ended && !r)
		r = pthread_cond_timedwait(&log_queue.ended, &log_queue.lock,
					   &until);
	is_ended = log_queue.is_ended;
	pthread_mutex_unlock(&log_queue.lock);
	/* A blocked_lru thread ends with the process, and its lines are lost. */
	if (is_ended)
		pthread_join(log_queue.thread, NULL);
}

/* ------------------------------------------------------------------- queueing */

void log_set_level(const char *name)
{
	log_max = !strcmp(name, "err") ? LOG_LEVEL_ERR :
		  !strcmp(name, "warning") ? LOG_LEVEL_WARNING :
					     LOG_LEVEL_INFO;
}

uint64_t log_dropped(void)
{
	return dropped_total;
}

uint64_t log_left_out(void)
{
	return left_out_total;
}

/* Returns whether there is room for one more line; called with the lock. */
static bool has_place(bool client, uid_t uid)
{
	uint64_t queued = log_queue.tail - log_queue.head, of_user = 0, i;

	if (!client)
		return queued < LOG_QUEUED;
	if (queued >= LOG_QUEUED_CLIENTS)
		return false;
	for (i = log_queue.head; i < log_queue.tail; i++) {
		const struct entry *entry = &log_queue.entries[i % LOG_QUEUED];

		of_user += entry->client && entry->about.uid == uid;
	}
	return of_user < LOG_QUEUED_USER;
}

/* Fills the next entry; called with the lock. */
static void fill(enum log_level level, const struct log_about *about,
		 bool client, const char *message)
{
	struct entry *entry = &log_queue.entries[log_queue.tail++ % LOG_QUEUED];

	entry->level = level;
	entry->about = *about;
	entry->client = client;
	entry->dropped = log_queue.dropped;
	log_queue.dropped = 0;
	if (about->queue) {
		memcpy(entry->queue, about->queue,
		       strnlen(about->queue, EXPIRY_NAME_MAX - 1) + 1);
		entry->about.queue = entry->queue;
	}
	strcpy(entry->message, message);
}

static void enqueue(enum log_level level, const struct log_about *about,
		    bool client, const char *format, va_list ap)
{
	char message[LOG_LINE], *c;

	vsnprintf(message, sizeof(message), format, ap);
	/* Keep it on one line: names of files may have any character. */
	for (c = message; *c; c++)
		if (*c == '\n')
			*c = ' ';
	pthread_mutex_lock(&log_queue.lock);
	if (has_place(client, about->uid))
		fill(level, about, client, message);
	else
		count_dropped();
	pthread_mutex_unlock(&log_queue.lock);
	pthread_cond_signal(&log_queue.more);
}

void log_write(enum log_level level, const struct log_about *about,
	       const char *format, ...)
{
	static const struct log_about nothing;
	va_list ap;

	va_start(ap, format);
	enqueue(level, about ? about : &nothing, false, format, ap);
	va_end(ap);
}

/* Returns whether a line about @uid is within its budget. */
static bool is_affordable(uid_t uid)
{
	bool is_first = false, has_token;
	time_t now = now_s();

	pthread_mutex_lock(&log_queue.lock);
	has_token = log_budget_take(uid, now);
	if (!has_token) {
		left_out_total++;
		is_first = !log_queue.note_s;
		if (is_first)
			log_queue.note_s = now + LOG_NOTE_S;
	}
	pthread_mutex_unlock(&log_queue.lock);
	if (is_first)
		pthread_cond_signal(&log_queue.more);
	return has_token;
}

void log_client(const struct log_about *about, const char *format, ...)
{
	static const struct log_about nobody = { .uid = LOG_NOBODY };
	va_list ap;

	if (!about)
		about = &nobody;
	if (!is_affordable(about->uid))
		return;
	va_start(ap, format);
	enqueue(LOG_LEVEL_WARNING, about, true, format, ap);
	va_end(ap);
}
