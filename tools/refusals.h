/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages for refusals. Each function prints one cause and its remedy, and returns
 * EXIT_REFUSED.
 */
#ifndef TOOLS_REFUSALS_H
#define TOOLS_REFUSALS_H

#include "tools/ctl.h"

/* Reports a refused request to the command line's queue. @what: the id, or NULL. */
int ctl_request_refused(const struct ctl *ctl, const char *what, int error,
			unsigned int op);

/* Reports a failed ctl_open(). @name: NULL without a queue. */
int ctl_open_failed(const struct ctl *ctl, const char *name,
		    unsigned int flags, int error);

/* Reports that the clock or mode differs, and the user may not see the queue's. */
int ctl_unseen(const char *name);

/* Reports that the queue was created again with another clock or mode. */
int ctl_remade(const char *name);

/* Reports a command line that names another clock or mode than the queue has.
 * Returns 0 if both match.
 */
int ctl_contradiction(const struct ctl *ctl, const struct expiry_queue *row);

#endif /* TOOLS_REFUSALS_H */
