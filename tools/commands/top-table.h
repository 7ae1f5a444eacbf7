/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of `expiryctl top`: the order of its rows, and its visible columns.
 */
#ifndef TOOLS_TOP_TABLE_H
#define TOOLS_TOP_TABLE_H

#include "tools/commands/top-sample.h"
#include "tools/ctl.h"
#include "tools/output/screen.h"

enum top_order {
	ORDER_ACTIVITY, ORDER_ARMED, ORDER_OVERDUE, ORDER_LATENESS, ORDER_NAME,
	NR_ORDERS,
};

const char *top_order_name(enum top_order order);

/* Sorts by one column, then by activity, size and age. */
void top_sort(struct row *rows, size_t nr, enum top_order order);

/* Writes the head and @shown of the @nr rows, from @first on. A frame with a width
 * gets the columns that fit, in order of rank, and shorter names. The choice depends
 * on all rows, so scrolling does not change it.
 */
void top_table(struct frame *frame, const struct ctl *ctl,
	       const struct row *rows, size_t nr, size_t first, size_t shown);

#endif /* TOOLS_TOP_TABLE_H */
