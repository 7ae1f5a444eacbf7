// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl: the command-line tool for expiryd. Each command has a file of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/address.h"
#include "tools/commands/command.h"
#include "tools/commands/help.h"
#include "tools/ctl.h"
#include "tools/options.h"
#include "tools/output/error.h"

static const struct command *const commands[] = {
	&cmd_status,
	&cmd_queues,
	&cmd_stats,
	&cmd_top,
	&cmd_metrics,
	&cmd_arm,
	&cmd_refresh,
	&cmd_cancel,
	&cmd_query,
	&cmd_watch,
	&cmd_tail,
	&cmd_list,
	&cmd_load,
	&cmd_run,
	&cmd_drop,
	&cmd_journal,
};

#define NR_COMMANDS	(sizeof(commands) / sizeof(*commands))

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(name, commands[i]->name) == 0)
			return commands[i];
	}
	return NULL;
}

/* Checks options and arguments of a command. Returns 0 or EXIT_USAGE. */
static int check_call(const struct ctl *ctl, const struct command *command,
		      int nr)
{
	const char *stray = help_option(ctl->given & ~command->options);

	if (stray)
		return ctl_usage("%s does not take %s; see: expiryctl %s --help",
				 command->name, stray, command->name);
	if (nr < command->min || (command->max >= 0 && nr > command->max))
		return ctl_usage("usage: expiryctl [OPTION...] %s%s%s",
				 command->name, *command->args ? " " : "",
				 command->args);
	if (ctl->device && !command->device)
		return ctl_usage("%s: a device's queue ends with the command; leave --device out",
				 command->name);
	return 0;
}

static bool want_colour(void)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       term && strcmp(term, "dumb") != 0;
}

/* Returns the command that the arguments name, and advances *@argv past it. An
 * unknown command is reported and returns NULL, a missing one just returns NULL.
 * Sets *@help for "help COMMAND".
 */
static const struct command *take_command(char ***argv, bool *help)
{
	const struct command *command;

	if (**argv && !strcmp(**argv, "help")) {
		*help = true;
		++*argv;
	}
	if (!**argv)
		return NULL;
	command = find_command(**argv);
	if (!command)
		ctl_usage("%s: no such command; see: expiryctl --help", **argv);
	else
		++*argv;
	return command;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	const struct command *command = NULL;
	bool help = false, version = false;
	int nr, ret;

	ret = options_parse(ctl, argc, argv, &help, &version);
	if (ret)
		return ret;
	argv += optind;
	if (version) {
		printf("expiryctl %s\n", expiry_version());
		return 0;
	}
	command = take_command(&argv, &help);
	if (!command && *argv)
		return EXIT_USAGE;
	if (help && command)
		help_print_command(command);
	else if (help)
		help_print(commands, NR_COMMANDS);
	if (help)
		return 0;
	if (!command)
		return ctl_usage("name a command; see: expiryctl --help");
	for (nr = 0; argv[nr]; nr++)
		;
	ret = check_call(ctl, command, nr);
	if (!ret && !ctl->address)
		ret = address_set_default(ctl);
	return ret ? ret : command->run(ctl, argv);
}

int main(int argc, char **argv)
{
	struct ctl ctl = { .colour = want_colour() };
	int ret;

	ret = run(&ctl, argc, argv);
	expiry_close(ctl.handle);
	free(ctl.address);
	/* Output that could not be written is a failure. */
	if ((ferror(stdout) | fclose(stdout)) && !ret)
		ret = ctl_error("standard output: %s", strerror(errno));
	return ret;
}
