// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <expiry/expiry.h>

#include "tools/commands/help.h"

static const struct {
	unsigned int bit;
	const char *name;
	const char *usage;
	const char *what;
} command_options[] = {
	{ CTL_ID, "--id", "--id ID", "the timer's own id (makes a new queue keyed)" },
	{ CTL_PERIOD, "--period", "--period SPAN", "repeat the timer at this interval" },
	{ CTL_NEW, "--new", "--new", "refuse if that id is armed" },
	{ CTL_LATER, "--later", "--later", "never make the deadline earlier" },
	{ CTL_COUNT, "--count", "--count N", "end after N expirations or updates" },
	{ CTL_LIMIT, "--limit", "--limit N", "at most N rows" },
	{ CTL_IDS, "--ids", "--ids", "print the timers' ids" },
	{ CTL_IN, "--in", "--in SPAN", "after a span: 5min, '2h 30min', or at a date" },
	{ CTL_AT, "--at", "--at TIME", "at a deadline: 18:30, 'tomorrow 09:00'" },
	{ CTL_CREATE, "--create", "--create", "make the queue if there is none" },
	{ CTL_DURABLE, "--durable", "--durable", "a keyed, acknowledging queue that outlives the machine" },
	{ CTL_NAMES, "--names", "--names", "print only names, within a second" },
};

static void print_options(unsigned int options)
{
	size_t i;

	for (i = 0; i < sizeof(command_options) / sizeof(*command_options); i++) {
		if (command_options[i].bit & options)
			printf("  %-22s %s\n", command_options[i].usage,
			       command_options[i].what);
	}
}

const char *help_option(unsigned int options)
{
	const char *name = NULL;
	size_t i;

	for (i = 0; i < sizeof(command_options) / sizeof(*command_options); i++) {
		if (command_options[i].bit & options)
			name = command_options[i].name;
	}
	return name;
}

void help_print_command(const struct command *command)
{
	printf("Usage: expiryctl [OPTION...] %s%s%s\n\n%s.\n\n",
	       command->name, *command->args ? " " : "", command->args,
	       command->summary);
	if (command->options)
		puts("Options:");
	print_options(command->options);
	printf("%sGlobal options: expiryctl --help\n\nExamples:\n%s",
	       command->options ? "\n" : "", command->examples);
}

void help_print(const struct command *const *commands, size_t nr)
{
	size_t i;

	puts("Usage: expiryctl [OPTION...] COMMAND [ARGUMENT...]\n\n"
	     "Arm timers in expiryd's queues, and see what they do.\n\n"
	     "Commands:");
	for (i = 0; i < nr; i++)
		printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-9s %s\n", "help", "show this help, or a command's");
	puts("\nOptions, before or after the command:\n"
	     "  --queue, -q NAME       the queue (default: default)\n"
	     "  --socket PATH          the daemon's socket (default: $EXPIRY_SOCKET, else\n"
	     "                         " EXPIRY_SOCKET_DEFAULT ", else\n"
	     "                         $XDG_RUNTIME_DIR/" EXPIRY_SOCKET_USER ")\n"
	     "  --device PATH          the module itself, for status and stats\n"
	     "  --clock CLOCK          realtime (default), monotonic or boottime\n"
	     "  --keyed                a queue whose timers have ids that you choose\n"
	     "  --ack                  a queue that repeats unacknowledged expirations\n"
	     "  --json                 one JSON object a line\n"
	     "  --help, -h             this help; after a command, the command's\n"
	     "  --version              the version\n\n"
	     "Deadlines: +5s, '+2h 30min', now, 18:30, 'tomorrow 09:00', 'Mon 09:00',\n"
	     "2027-02-28, '2027-01-31 12:00', 2027-01-31T12:00:00Z, @1700000000.5, never\n\n"
	     "Examples:\n"
	     "  expiryctl arm +5s 42\n"
	     "  expiryctl watch --count 1\n"
	     "  expiryctl --queue leases --keyed --ack arm +1h 7 --id 1001\n"
	     "  expiryctl --queue leases list --json\n\n"
	     "Exit status: 0, 1 when something was refused, 2 for a wrong call.");
}
