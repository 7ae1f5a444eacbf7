/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records of a journal, a line each, for people. */
#ifndef TOOLS_JOURNAL_DUMP_H
#define TOOLS_JOURNAL_DUMP_H

#include <linux/expiry.h>

#include "daemon/journal/recovery.h"

/* Prints a record; a recovery_visit_t without data. */
int dump_record(void *data, const struct recovery_place *place,
		const struct expiry_record *record);

#endif /* TOOLS_JOURNAL_DUMP_H */
