/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The commands.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "tools/ctl.h"

/**
 * struct command - one command, in NAME.c
 * @name: name on the command line
 * @args: arguments in the usage line
 * @summary: one line
 * @examples: whole lines, each with a line feed
 * @min: least number of arguments
 * @max: most arguments; negative: no limit
 * @options: accepted CTL_*
 * @device: also works on a device
 * @run: returns the exit status; arguments are NULL-terminated
 */
struct command {
	const char *name;
	const char *args;
	const char *summary;
	const char *examples;
	int min;
	int max;
	unsigned int options;
	bool device;
	int (*run)(struct ctl *ctl, char **args);
};

extern const struct command cmd_arm;
extern const struct command cmd_cancel;
extern const struct command cmd_drop;
extern const struct command cmd_journal;
extern const struct command cmd_list;
extern const struct command cmd_load;
extern const struct command cmd_metrics;
extern const struct command cmd_query;
extern const struct command cmd_queues;
extern const struct command cmd_refresh;
extern const struct command cmd_run;
extern const struct command cmd_stats;
extern const struct command cmd_status;
extern const struct command cmd_tail;
extern const struct command cmd_top;
extern const struct command cmd_watch;

#endif /* TOOLS_COMMAND_H */
