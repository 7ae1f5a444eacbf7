/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of expiryctl.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "tools/ctl.h"

/* Takes all options, and moves them before the arguments: argv[optind] is the first
 * argument. Sets *@help and *@version if they were given. Returns 0, or an exit status
 * with the reason printed.
 */
int options_parse(struct ctl *ctl, int argc, char **argv, bool *help,
		  bool *version);

#endif /* TOOLS_OPTIONS_H */
