/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rights that a user lacks, and the remedies. Both reports return EXIT_REFUSED.
 */
#ifndef TOOLS_ACCESS_H
#define TOOLS_ACCESS_H

#include "tools/ctl.h"

/* Rights on a queue: the bits of one digit of its mode. */
#define ACCESS_CONSUME	1
#define ACCESS_PRODUCE	2
#define ACCESS_LOOK	4
#define ACCESS_ALL	7

/* Returns the right that a request needs. */
unsigned int access_right(unsigned int op);

/* Reports that the user may not open the socket or device. */
int access_path_refused(const struct ctl *ctl);

/* Reports that the user lacks @right on the queue. QUEUES names the owner only to
 * users who may look at the queue.
 */
int access_queue_refused(const struct ctl *ctl, const char *name,
			 unsigned int right);

#endif /* TOOLS_ACCESS_H */
