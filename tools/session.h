/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection of a command.
 */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "tools/ctl.h"
#include "tools/input/parse-time.h"

/* Flag of ctl_open(): create the queue if it does not exist. */
#define CTL_OPEN_CREATE	0x80000000

/* Attaches to the queue @name with EXPIRY_OPEN_* @flags and credit for @credit
 * expirations. Takes the queue's clock and mode, unless the command line names
 * another. Without CTL_OPEN_CREATE no queue is created. Without a name the
 * connection reads only the daemon's state. EXPIRY_OPEN_RECONNECT has an effect on
 * acknowledging queues. Returns 0, or an exit status with the reason printed.
 */
int ctl_open(struct ctl *ctl, const char *name, unsigned int flags,
	     uint32_t credit);

/* Converts a deadline for a record. Returns its flags, EXPIRY_F_RELATIVE or 0, or
 * -EINVAL with *why if the queue's clock has no dates.
 */
int ctl_deadline(const struct ctl *ctl, const struct deadline *deadline,
		 const char **why);

#endif /* TOOLS_SESSION_H */
