// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "tools/address.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-span.h"
#include "tools/options.h"
#include "tools/output/error.h"
#include "tools/output/time-text.h"
#include "tools/queue-list.h"

enum {
	OPT_SOCKET = 256, OPT_DEVICE, OPT_CLOCK, OPT_KEYED, OPT_ACK,
	OPT_JSON, OPT_VERSION, OPT_ID, OPT_PERIOD, OPT_NEW, OPT_LATER,
	OPT_COUNT, OPT_LIMIT, OPT_IDS, OPT_IN, OPT_AT,
	OPT_CREATE, OPT_NAMES, OPT_DURABLE,
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
	{ "durable", no_argument, NULL, OPT_DURABLE },
	{ NULL, 0, NULL, 0 },
};

static int parse_positive(const char *text, uint64_t *number)
{
	return parse_number(text, number) || !*number ? -EINVAL : 0;
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
		return address_set(ctl, "unix", value);
	case OPT_DEVICE:
		return address_set(ctl, "device", value);
	case OPT_CLOCK:
		if (clock_parse(value, &ctl->clock_id))
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
	case OPT_DURABLE:
		ctl->mode_given |= EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK;
		ctl->given |= CTL_DURABLE;
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

int options_parse(struct ctl *ctl, int argc, char **argv, bool *help,
		  bool *version)
{
	int option, ret;

	opterr = 0;
	/* The leading colon distinguishes a missing value from an unknown option. */
	while ((option = getopt_long(argc, argv, ":hq:", long_options, NULL)) >= 0) {
		switch (option) {
		case 'h':
			*help = true;
			break;
		case OPT_VERSION:
			*version = true;
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
	return 0;
}
