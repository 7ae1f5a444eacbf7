// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of the log, which may be slow or refuse a line. Each line of the daemon
 * comes once and in order, or is counted: as lost, or as left out for its user's budget.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/util/log-budget.h"
#include "daemon/util/log-sink.h"
#include "daemon/util/log.h"
#include "tests/sim/sim.h"
#include "tests/sim/wrap.h"

#define LINES		256	/* more than the daemon queues */
#define QUEUED_LEAST	24	/* lines that there is always room for */
#define USERS		4

/* A line that the daemon has queued. */
struct line {
	enum log_level level;
	uid_t uid;
	char text[LOG_LINE];
};

static struct line lines[LINES];
static uint32_t head, tail;

/**
 * counts - lines about clients
 * @taken: within the budget; of @user: by user, 0, 1000, 1001 and others
 * @noted: left out and reported; @dropped: lost and reported
 * @lost: left out, in reports that were refused
 */
static struct {
	uint64_t taken;
	uint64_t user[USERS];
	uint64_t began_s;
	uint64_t noted;
	uint64_t dropped;
	uint64_t lost;
} counts;

/* Lines about other users and about nobody share the last one. */
static uint32_t user_of(const struct log_about *about)
{
	uid_t uid = about ? about->uid : LOG_NOBODY;

	return uid == 0 ? 0 : uid == 1000 ? 1 : uid == 1001 ? 2 : 3;
}

static uint64_t now_s(void)
{
	return sim.mono_ns / SIM_S;
}

/* ------------------------------------------------------------- the daemon's calls */

/* Fails if the user has had more lines than a budget gives since the start. */
static void check_budget(uint32_t user)
{
	uint64_t seconds = now_s() - counts.began_s + 1;

	counts.taken++;
	counts.user[user]++;
	if (counts.user[user] > LOG_USER_BURST + LOG_USER_PER_SECOND * seconds ||
	    counts.taken > LOG_ALL_BURST + LOG_ALL_PER_SECOND * seconds)
		sim_fail("line %llu about user %u is beyond the budget",
			 (unsigned long long)counts.user[user], user);
}

/* Notes what became of a line: queued, or counted by one of the two. */
static void noted(const struct log_about *about, enum log_level level,
		  bool is_client, const char *text, uint64_t dropped,
		  uint64_t left_out)
{
	struct line *line = &lines[tail % LINES];
	uint32_t user = user_of(about);

	trace("log: %s", text);
	if (left_out) {
		if (counts.user[user] < LOG_USER_BURST &&
		    counts.taken < LOG_ALL_BURST)
			sim_fail("the first lines about a user are left out: %s",
				 text);
		return;
	}
	if (is_client)
		check_budget(user);
	if (dropped) {
		if (tail - head < QUEUED_LEAST)
			sim_fail("a line is lost, and only %u are queued: %s",
				 tail - head, text);
		return;
	}
	if (tail - head == LINES)
		sim_fail("%u lines are queued", LINES);
	line->level = level;
	line->uid = about ? about->uid : 0;
	strcpy(line->text, text);
	tail++;
}

void __wrap_log_write(enum log_level level, const struct log_about *about,
		      const char *format, ...)
{
	uint64_t dropped = log_dropped();
	char text[LOG_LINE];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	__real_log_write(level, about, "%s", text);
	noted(about, level, false, text, log_dropped() - dropped, 0);
}

void __wrap_log_client(const struct log_about *about, const char *format, ...)
{
	static const struct log_about nobody = { .uid = LOG_NOBODY };
	uint64_t dropped = log_dropped(), left_out = log_left_out();
	char text[LOG_LINE];
	uint32_t pid;
	va_list ap;

	if (!about)
		about = &nobody;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (strstr(text, "ended: it does not read") &&
	    sscanf(text, "client of pid %u", &pid) == 1)
		inside_check_victim(peers[pid]);
	__real_log_client(about, "%s", text);
	noted(about, LOG_LEVEL_WARNING, true, text, log_dropped() - dropped,
	      log_left_out() - left_out);
}

/* ------------------------------------------------------------------- the reader */

void log_sink_init(void)
{
	counts.began_s = now_s();
}

void log_began(void)
{
	uint32_t i;

	/* All budgets are full again. */
	for (i = 0; i < USERS; i++)
		counts.user[i] = 0;
	counts.taken = 0;
	counts.began_s = now_s();
}

static bool never(void *data)
{
	(void)data;
	return false;
}

/* Returns whether the line is a report of lines that are not there. */
static bool is_note(const char *text, bool is_taken)
{
	unsigned long long nr;
	char rest[LOG_LINE] = "";

	if (sscanf(text, "%llu lines %511[^\n]", &nr, rest) != 2)
		return false;
	if (!strncmp(rest, "were dropped", 12)) {
		counts.dropped += is_taken ? nr : 0;
	} else if (!strncmp(rest, "about clients", 13)) {
		counts.noted += is_taken ? nr : 0;
		counts.lost += is_taken ? 0 : nr;
	} else {
		return false;
	}
	return true;
}

bool log_sink_write(enum log_level level, const struct log_about *about,
		    const char *text)
{
	const struct line *line = &lines[head % LINES];
	bool is_taken = sim.phase != SIM_RUN ||
			!rng_hits(&sim.kernel, 10 * sim.error);

	if (sim.phase == SIM_RUN && rng_hits(&sim.kernel, sim.slow))
		thread_wait(never, NULL,
			    sim.mono_ns + rng_below(&sim.kernel, SIM_S));
	if (is_note(text, is_taken))
		return is_taken;
	if (head == tail || strcmp(line->text, text) || line->level != level ||
	    line->uid != about->uid)
		sim_fail("the log has a line that is not next: %s", text);
	head++;
	return is_taken;
}

void log_check_ended(void)
{
	if (head != tail)
		sim_fail("the daemon has ended, and %u lines are not written",
			 tail - head);
	if (counts.dropped != log_dropped())
		sim_fail("%llu lines are reported as lost, of %llu",
			 (unsigned long long)counts.dropped,
			 (unsigned long long)log_dropped());
	if (counts.noted + counts.lost != log_left_out())
		sim_fail("%llu lines are reported as left out, of %llu",
			 (unsigned long long)counts.noted,
			 (unsigned long long)log_left_out());
}

/* --------------------------------------------------------------------- conditions */

/* Signals so far: a thread that waits for one of two waits for any. */
static uint64_t signals;

static bool is_signalled(void *data)
{
	return signals != *(uint64_t *)data;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	(void)cond;
	signals++;
	return 0;
}

static int cond_wait(pthread_mutex_t *mutex, uint64_t until_ns)
{
	uint64_t seen = signals;
	bool is_there;

	pthread_mutex_unlock(mutex);
	is_there = thread_wait(is_signalled, &seen, until_ns);
	pthread_mutex_lock(mutex);
	return is_there ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	(void)cond;
	return cond_wait(mutex, EXPIRY_NEVER);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	(void)cond;
	return cond_wait(mutex, until->tv_sec * SIM_S + until->tv_nsec);
}
