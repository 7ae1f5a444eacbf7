/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon and its queues as OpenMetrics text.
 */
#ifndef TOOLS_METRICS_H
#define TOOLS_METRICS_H

#include <stdio.h>
#include <expiry/expiry.h>

#define METRICS_TYPE \
	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Prints the whole text with its last line. All @nr @queues have names. Errors are
 * left in @out.
 */
void metrics_print(FILE *out, const struct expiry_server_stat *server,
		   const struct expiry_queue *queues, size_t nr);

#endif /* TOOLS_METRICS_H */
