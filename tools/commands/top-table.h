/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of `expiryctl top`: its rows, their order, and its visible columns.
 */
#ifndef TOOLS_TOP_TABLE_H
#define TOOLS_TOP_TABLE_H

#include "tools/ctl.h"
#include "tools/output/screen.h"

/**
 * struct row - a queue
 * @is: latest sample
 * @requests: requests a second
 * @expirations: expirations a second
 * @overdue_ns: time since the first deadline, 0: none due
 * @lateness_ns: 99th percentile of the last second's lateness
 */
struct row {
	const struct expiry_queue *is;
	double requests;
	double expirations;
	uint64_t overdue_ns;
	uint64_t lateness_ns;
};

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
