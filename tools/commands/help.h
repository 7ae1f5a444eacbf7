/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The texts of --help.
 */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include "tools/commands/command.h"

/* Print what expiryctl can do, and what one command can. */
void help_print(const struct command *const *commands, size_t nr);
void help_print_command(const struct command *command);

/* Returns the name of one of the CTL_* @options, or NULL for none. */
const char *help_option(unsigned int options);

#endif /* TOOLS_HELP_H */
