/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One request an argument: what cancel and query have in common.
 */
#ifndef TOOLS_EACH_ID_H
#define TOOLS_EACH_ID_H

#include "ctl.h"

/* Send @op for every id in @args and print what comes back, each refusal as a
 * line on stderr; returns the exit status.
 */
int each_id(struct ctl *ctl, uint8_t op, char **args);

#endif /* TOOLS_EACH_ID_H */
