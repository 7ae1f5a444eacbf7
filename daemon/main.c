// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryd: takes requests from local programs on a Unix socket and notifies
 * them when their timers expire.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/queue/declaration.h"
#include "daemon/server/server.h"
#include "daemon/util/log.h"
#include "daemon/util/notify.h"

#define CONFIG_DEFAULT	"/etc/expiry/expiryd.conf"

/* Descriptors beside those of clients: the loop, the log, the socket, ... and
 * each thread's.
 */
#define FILES_OWN	48
#define FILES_THREAD	16

#define EXIT_USAGE	2

enum option_key {
	OPTION_CHECK = 256,
	OPTION_CONFIG,
	OPTION_DEVICE,
	OPTION_ENGINE,
	OPTION_HELP,
	OPTION_JOURNAL,
	OPTION_LOOP,
	OPTION_SOCKET,
	OPTION_THREADS,
	OPTION_VERSION,
};

static const struct option options[] = {
	{ "check-config", no_argument, NULL, OPTION_CHECK },
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "device", required_argument, NULL, OPTION_DEVICE },
	{ "engine", required_argument, NULL, OPTION_ENGINE },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "journal", required_argument, NULL, OPTION_JOURNAL },
	{ "loop", required_argument, NULL, OPTION_LOOP },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

static const char usage[] =
	"Usage: expiryd [--socket PATH] [--engine auto|kernel|embedded]\n"
	"               [--device PATH] [--loop auto|io_uring|epoll] [--threads N]\n"
	"               [--journal DIR] [--config FILE] [--check-config]\n"
	"\n"
	"Serve queues of timers to local programs.\n"
	"\n"
	"  --socket PATH    listen there (root: " EXPIRY_SOCKET_DEFAULT ",\n"
	"                   others: $XDG_RUNTIME_DIR/" EXPIRY_SOCKET_USER ")\n"
	"  --engine ENGINE  where queues are kept: kernel (the module), embedded (this\n"
	"                   process), or auto, which is kernel where the device opens\n"
	"  --device PATH    the module's device (/dev/expiry)\n"
	"  --loop LOOP      how it waits: io_uring, epoll, or auto, which is epoll where\n"
	"                   io_uring is refused\n"
	"  --threads N      number of threads, 1 to 64 (1)\n"
	"  --journal DIR    where durable queues are kept; none: there are none\n"
	"  --config FILE    read settings (" CONFIG_DEFAULT ", if there is one)\n"
	"  --check-config   check the settings and exit\n"
	"  --version        print the version\n"
	"  --help           print this\n";

/**
 * struct settings - the command line
 * @socket: NULL = as configured; likewise @engine, @device, @loop,
 *	@threads, @journal
 * @file: the configuration; NULL = the default one
 * @check: check the configuration, and do not serve
 */
static struct settings {
	const char *socket;
	const char *engine;
	const char *device;
	const char *loop;
	const char *threads;
	const char *journal;
	const char *file;
	bool check;
} settings;

/* Returns 0 to continue, 1 after --help and the like, or -EINVAL. */
static int parse_argv(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case OPTION_CHECK:
			settings.check = true;
			break;
		case OPTION_CONFIG:
			settings.file = optarg;
			break;
		case OPTION_DEVICE:
			settings.device = optarg;
			break;
		case OPTION_ENGINE:
			settings.engine = optarg;
			break;
		case OPTION_HELP:
			fputs(usage, stdout);
			return 1;
		case OPTION_JOURNAL:
			settings.journal = optarg;
			break;
		case OPTION_LOOP:
			settings.loop = optarg;
			break;
		case OPTION_SOCKET:
			settings.socket = optarg;
			break;
		case OPTION_THREADS:
			settings.threads = optarg;
			break;
		case OPTION_VERSION:
			puts("expiryd " EXPIRY_VERSION);
			return 1;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc) {
		log_err("'%s' is not an option; see expiryd --help",
			argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static int override(struct config *config, const char *key, const char *value)
{
	const char *why = value ? config_set(config, key, value) : NULL;

	if (!why)
		return 0;
	log_err("--%s: '%s' %s", key, value, why);
	return -EINVAL;
}

/* Raises the limit of descriptors; bounds connections by it. */
static void raise_limits(struct config *config)
{
	uint64_t most, own = FILES_OWN + FILES_THREAD * (config->threads - 1);
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	most = files.rlim_cur > 2 * own ? files.rlim_cur - own : own;
	if (config->connections > most) {
		log_info("connections limited to %llu by the number of files a process may open",
			 (unsigned long long)most);
		config->connections = most;
	}
}

/* Returns whether this is the system's daemon, which has the system's declared
 * queues. @socket: the default one of this user.
 */
static bool is_system_daemon(const char *socket)
{
	return !settings.file && !settings.socket &&
	       !strcmp(socket, EXPIRY_SOCKET_DEFAULT);
}

/* Reads the files, then applies the command line over them. */
static int configure(struct config *config)
{
	int r;

	config_init(config);
	if (!is_system_daemon(config->socket))
		memset(config->queue_files, 0, sizeof(config->queue_files));
	r = config_read(config, settings.file ? settings.file : CONFIG_DEFAULT,
			settings.file);
	if (r)
		return r;
	if (override(config, "socket", settings.socket) ||
	    override(config, "engine", settings.engine) ||
	    override(config, "device", settings.device) ||
	    override(config, "loop", settings.loop) ||
	    override(config, "journal", settings.journal) ||
	    override(config, "threads", settings.threads))
		return -EINVAL;
	r = config_resolve(config);
	if (r || settings.check)
		return r;
	raise_limits(config);
	log_set_level(config->log_level);
	return 0;
}

/* Returns how many files of declared queues have faults. */
static uint32_t check_queue_files(const struct config *config)
{
	struct declarations *set;
	uint32_t faults, i;

	set = declarations_read(config, &faults);
	for (i = 0; set && i < set->nr; i++)
		if (set->all[i].is_good && set->all[i].is_durable &&
		    !strcmp(config->journal, "none")) {
			log_err("%s: durable needs journal in expiryd.conf",
				set->all[i].path);
			faults++;
		}
	declarations_free(set);
	return faults;
}

static int run(int argc, char **argv)
{
	struct config config;
	int r;

	r = parse_argv(argc, argv);
	if (r)
		return r > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	if (configure(&config))
		return EXIT_USAGE;
	if (settings.check && check_queue_files(&config))
		return EXIT_USAGE;
	if (settings.check) {
		puts("expiryd: the configuration is good");
		return EXIT_SUCCESS;
	}
	signal(SIGPIPE, SIG_IGN);
	notify_init();
	r = server_run(&config, configure);
	notify_deinit();
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int r = log_init();

	if (r < 0) {
		fprintf(stderr, "expiryd: log: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	r = run(argc, argv);
	log_deinit();
	return r;
}
