// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl: the command-line tool for expiryd. Each command has a file of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/commands/command.h"
#include "tools/ctl.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-span.h"
#include "tools/output/error.h"
#include "tools/output/time-text.h"
#include "tools/queue-list.h"

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
};

enum {
	OPT_SOCKET = 256, OPT_DEVICE, OPT_CLOCK, OPT_KEYED, OPT_ACK,
	OPT_JSON, OPT_VERSION, OPT_ID, OPT_PERIOD, OPT_NEW, OPT_LATER,
	OPT_COUNT, OPT_LIMIT, OPT_IDS, OPT_IN, OPT_AT,
	OPT_CREATE, OPT_NAMES,
};

static const struct option long_options[] = {
	{ "queue", required_argument, NULL, 'q' },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "clock", required_argument, NULL, OPT_CLOCK },
	{ "keyed", no_argument, NULL, OPT_KEYED },
	{ "ack", no_argument, NULL, OPT_ACK },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "id", required_argument, NULL, OPT_ID },
	{ "period", required_argument, NULL, OPT_PERIOD },
	{ "new", no_argument, NULL, OPT_NEW },
	{ "later", no_argument, NULL, OPT_LATER },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "ids", no_argument, NULL, OPT_IDS },
	{ "in", required_argument, NULL, OPT_IN },
	{ "at", required_argument, NULL, OPT_AT },
	{ "create", no_argument, NULL, OPT_CREATE },
	{ "names", no_argument, NULL, OPT_NAMES },
	{ NULL, 0, NULL, 0 },
};

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

static void print_help(const struct command *command)
{
	size_t i;

	if (command) {
		printf("Usage: expiryctl [OPTION...] %s%s%s\n\n%s.\n\n",
		       command->name, *command->args ? " " : "",
		       command->args, command->summary);
		if (command->options)
			puts("Options:");
		print_options(command->options);
		printf("%sGlobal options: expiryctl --help\n\nExamples:\n%s",
		       command->options ? "\n" : "", command->examples);
		return;
	}
	puts("Usage: expiryctl [OPTION...] COMMAND [ARGUMENT...]\n\n"
	     "Arm timers in expiryd's queues, and see what they do.\n\n"
	     "Commands:");
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
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

static int parse_clock(const char *text, uint32_t *clock_id)
{
	static const uint32_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME
	};
	size_t i;

	for (i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		if (strcmp(text, clock_name(clocks[i])) == 0) {
			*clock_id = clocks[i];
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_positive(const char *text, uint64_t *number)
{
	return parse_number(text, number) || !*number ? -EINVAL : 0;
}

static int set_address(struct ctl *ctl, const char *scheme, const char *path)
{
	free(ctl->address);
	if (asprintf(&ctl->address, "%s:%s", scheme, path) < 0)
		abort();
	ctl->path = ctl->address + strlen(scheme) + 1;
	ctl->device = strcmp(scheme, "device") == 0;
	if (!*path)
		return ctl_usage("--%s wants a path",
				 ctl->device ? "device" : "socket");
	return 0;
}

/* Sets the library's default address. Returns 0 or an exit status. */
static int set_default_address(struct ctl *ctl)
{
	char address[EXPIRY_ADDRESS_MAX];
	int ret = expiry_default_address(address, sizeof(address));

	if (ret)
		return ctl_refused("the default socket", ret, EXPIRY_OP_HELLO);
	return set_address(ctl, "unix", address + strlen("unix:"));
}

static int bad_value(const char *option, const char *value,
		     const char *expected)
{
	return ctl_usage("--%s %s: expected %s", option, value, expected);
}

/* Takes one option. Returns 0 or EXIT_USAGE. */
static int parse_option(struct ctl *ctl, int option, const char *value)
{
	const char *why;

	switch (option) {
	case 'q':
		if (!is_queue_name(value))
			return bad_value("queue", value,
					 "1 to 24 of A-Z a-z 0-9 . _ -");
		ctl->queue = value;
		return 0;
	case OPT_SOCKET:
		return set_address(ctl, "unix", value);
	case OPT_DEVICE:
		return set_address(ctl, "device", value);
	case OPT_CLOCK:
		if (parse_clock(value, &ctl->clock_id))
			return bad_value("clock", value,
					 "realtime, monotonic or boottime");
		ctl->clock_given = true;
		return 0;
	case OPT_KEYED:
		ctl->mode_given |= EXPIRY_MODE_KEYED;
		return 0;
	case OPT_ACK:
		ctl->mode_given |= EXPIRY_MODE_ACK;
		return 0;
	case OPT_JSON:
		ctl->json = true;
		return 0;
	case OPT_ID:
		if (parse_positive(value, &ctl->id))
			return bad_value("id", value,
					 "a number from 1 to 2^64-1");
		ctl->mode_given |= EXPIRY_MODE_KEYED;
		ctl->given |= CTL_ID;
		return 0;
	case OPT_PERIOD:
		if (parse_period(value, &ctl->period_ms, &why))
			return ctl_usage("--period %s: %s", value, why);
		ctl->given |= CTL_PERIOD;
		return 0;
	case OPT_NEW:
		ctl->given |= CTL_NEW;
		return 0;
	case OPT_LATER:
		ctl->given |= CTL_LATER;
		return 0;
	case OPT_COUNT:
		if (parse_positive(value, &ctl->count))
			return bad_value("count", value, "a number from 1 on");
		ctl->given |= CTL_COUNT;
		return 0;
	case OPT_LIMIT:
		if (parse_positive(value, &ctl->limit))
			return bad_value("limit", value, "a number from 1 on");
		ctl->given |= CTL_LIMIT;
		return 0;
	case OPT_IDS:
		ctl->given |= CTL_IDS;
		return 0;
	case OPT_CREATE:
		ctl->given |= CTL_CREATE;
		return 0;
	case OPT_NAMES:
		ctl->given |= CTL_NAMES;
		return 0;
	case OPT_IN:
		ctl->in = value;
		ctl->given |= CTL_IN;
		return 0;
	case OPT_AT:
		ctl->at = value;
		ctl->given |= CTL_AT;
		return 0;
	}
	return EXIT_USAGE;
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(name, commands[i]->name) == 0)
			return commands[i];
	}
	return NULL;
}

/* Checks options and arguments of a command. Returns 0 or EXIT_USAGE. */
static int check_call(const struct ctl *ctl, const struct command *command,
		      int nr)
{
	const char *stray = NULL;
	size_t i;

	for (i = 0; i < sizeof(command_options) / sizeof(*command_options); i++) {
		if (command_options[i].bit & ctl->given & ~command->options)
			stray = command_options[i].name;
	}
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

/* Returns the argument with the short option that getopt() rejected. getopt()
 * advances past an argument only after its last option.
 */
static const char *unknown_argument(char **argv)
{
	const char *before = argv[optind - 1], *here = argv[optind];

	if (optind > 1 && before[0] == '-' && before[1] == optopt && !before[2])
		return before;
	if (here && here[0] == '-' && here[1] != '-' && strchr(here, optopt))
		return here;
	return before;
}

/* Prints the long options that @text abbreviates. Returns false for fewer than two. */
static bool report_ambiguous(const char *text)
{
	const size_t len = strcspn(text, "=");
	const struct option *option;
	char names[256] = "";
	size_t used = 0;
	int nr = 0;

	for (option = long_options; option->name; option++) {
		if (strncmp(option->name, text + 2, len - 2))
			continue;
		used += snprintf(names + used, sizeof(names) - used, "%s--%s",
				 nr++ ? ", " : "", option->name);
		if (used >= sizeof(names))
			break;
	}
	if (nr > 1)
		ctl_usage("%s may be any of %s; write it in full", text, names);
	return nr > 1;
}

/* Reports an option for which getopt_long() returned '?'. */
static int report_option(char **argv)
{
	const char *text = argv[optind - 1], *why;
	uint64_t ns;

	if (optopt >= OPT_SOCKET || (optopt && !strncmp(text, "--", 2)))
		return ctl_usage("%.*s takes no value; write it without the =",
				 (int)strcspn(text, "="), text);
	if (!optopt) {
		if (!report_ambiguous(text))
			ctl_usage("%s: no such option; see: expiryctl --help",
				  text);
		return EXIT_USAGE;
	}
	text = unknown_argument(argv);
	if (text[1] == '.' || (text[1] >= '0' && text[1] <= '9')) {
		if (!parse_duration(text + 1, &ns, &why))
			return ctl_usage("%s is in the past; did you mean +%s?",
					 text, text + 1);
		return ctl_usage("%s: no number or time begins with a minus sign",
				 text);
	}
	if (text[2])
		return ctl_usage("-%c in %s: no such option; see: expiryctl --help",
				 optopt, text);
	return ctl_usage("%s: no such option; see: expiryctl --help", text);
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
	int option, nr, ret;

	opterr = 0;
	/* The leading colon distinguishes a missing value from an unknown option. */
	while ((option = getopt_long(argc, argv, ":hq:", long_options, NULL)) >= 0) {
		switch (option) {
		case 'h':
			help = true;
			break;
		case OPT_VERSION:
			version = true;
			break;
		case ':':
			return ctl_usage("%s wants a value; see: expiryctl --help",
					 argv[optind - 1]);
		case '?':
			return report_option(argv);
		default:
			ret = parse_option(ctl, option, optarg);
			if (ret)
				return ret;
		}
	}
	argv += optind;

	if (version) {
		printf("expiryctl %s\n", expiry_version());
		return 0;
	}
	command = take_command(&argv, &help);
	if (!command && *argv)
		return EXIT_USAGE;
	if (help) {
		print_help(command);
		return 0;
	}
	if (!command)
		return ctl_usage("name a command; see: expiryctl --help");
	for (nr = 0; argv[nr]; nr++)
		;
	ret = check_call(ctl, command, nr);
	if (!ret && !ctl->address)
		ret = set_default_address(ctl);
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
