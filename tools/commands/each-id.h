/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One request per argument, for cancel and query.
 */
#ifndef TOOLS_EACH_ID_H
#define TOOLS_EACH_ID_H

#include "tools/ctl.h"

/* Sends @op for every id in @args and prints the replies. Each refusal is a line on
 * stderr. Returns the exit status.
 */
int each_id(struct ctl *ctl, uint8_t op, char **args);

#endif /* TOOLS_EACH_ID_H */
