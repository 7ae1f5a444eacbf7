/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One reading of the daemon's metrics.
 */
#ifndef TOOLS_SCRAPE_H
#define TOOLS_SCRAPE_H

#include "tools/ctl.h"

/* Asks the daemon of @ctl, and prints the metrics of it and of the chosen queues.
 * Leaves ctl->handle open. Returns 0, or an exit status with the reason printed.
 * Errors of @out are left in @out.
 */
int scrape(struct ctl *ctl, FILE *out);

#endif /* TOOLS_SCRAPE_H */
