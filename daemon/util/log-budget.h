/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Budgets of lines that clients cause. There is one for each user, so that a
 * misbehaving user does not hide lines about another, and one for all users.
 * Each is a token bucket.
 *
 * The table has a fixed size. A full bucket holds no information and is reused
 * for another user; without one, users share one. There are no locks here: the
 * log makes all calls under its own.
 */
#ifndef DAEMON_LOG_BUDGET_H
#define DAEMON_LOG_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The lines about one user: a burst, then a rate a second. */
#define LOG_USER_BURST		20
#define LOG_USER_PER_SECOND	2

/* The lines about all users, five times as many: no user takes them alone. */
#define LOG_ALL_BURST		100
#define LOG_ALL_PER_SECOND	10

/* Users with a bucket of their own. */
#define LOG_USERS		64

/* For lines about no user in particular; no user has this number. */
#define LOG_NOBODY		((uid_t)-1)

/* Takes a token for a line about @uid. Returns false, and counts the line as
 * left out, if there is none.
 */
bool log_budget_take(uid_t uid, time_t now_s);

/* Finds the next user with lines left out since the last call. *@cursorp is 0
 * at first. Returns their number, 0 = no further user. *@uidp may be
 * LOG_NOBODY.
 */
uint64_t log_budget_left_out(size_t *cursorp, uid_t *uidp);

#endif /* DAEMON_LOG_BUDGET_H */
