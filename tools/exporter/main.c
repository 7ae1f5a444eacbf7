// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiry-exporter: the daemon's metrics by HTTP, for Prometheus.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "tools/address.h"
#include "tools/ctl.h"
#include "tools/exporter/http.h"
#include "tools/exporter/listen.h"
#include "tools/input/parse-line.h"
#include "tools/output/error.h"
#include "tools/stop.h"

#define DAEMON_MS	5000	/* longest wait of a client for the daemon */

enum { OPT_LISTEN = 256, OPT_SOCKET, OPT_LIMIT, OPT_VERSION };

static const struct option options[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"Usage: expiry-exporter [OPTION...]\n\n"
	"Answer GET /metrics with the metrics of expiryd and its queues.\n\n"
	"Options:\n"
	"  --listen ADDRESS  a socket of its own: 127.0.0.1:9464 or [::1]:9464\n"
	"  --socket PATH     the daemon's socket (default: $EXPIRY_SOCKET, else\n"
	"                    " EXPIRY_SOCKET_DEFAULT ", else\n"
	"                    $XDG_RUNTIME_DIR/" EXPIRY_SOCKET_USER ")\n"
	"  --limit N         at most N queues (default: 1000)\n"
	"  --help, -h        this help\n"
	"  --version         the version\n\n"
	"Sockets that systemd passes are served, too.\n\n"
	"Exit status: 0 after SIGINT or SIGTERM, 1 on an error, 2 for a wrong call.";

/**
 * struct listeners - listening sockets
 * @fds: descriptors; those of systemd are first
 * @nr: number of @fds
 */
struct listeners {
	int fds[HTTP_LISTENERS_MAX];
	int nr;
};

/* Listens at @address. Returns 0 or an exit status. */
static int add_listener(struct listeners *listeners, const char *address)
{
	int fd;

	if (listeners->nr == HTTP_LISTENERS_MAX)
		return ctl_usage("at most %d sockets; leave some --listen out",
				 HTTP_LISTENERS_MAX);
	fd = listen_at(address);
	if (fd == -EINVAL)
		return ctl_usage("--listen %s: expected a numeric address and a port, as in 127.0.0.1:9464 or [::1]:9464",
				 address);
	if (fd < 0)
		return ctl_error("--listen %s: %s", address, strerror(-fd));
	listeners->fds[listeners->nr++] = fd;
	listen_print(fd);
	return 0;
}

/* Takes one option. Returns 0 or an exit status. */
static int take_option(struct ctl *ctl, struct listeners *listeners, int option)
{
	switch (option) {
	case OPT_LISTEN:
		return add_listener(listeners, optarg);
	case OPT_SOCKET:
		return address_set(ctl, "unix", optarg);
	default:
		ctl->given |= CTL_LIMIT;
		if (!parse_number(optarg, &ctl->limit) && ctl->limit)
			return 0;
		return ctl_usage("--limit %s: expected a number from 1 on",
				 optarg);
	}
}

static int serve(struct ctl *ctl, const struct listeners *listeners)
{
	int stop_fd, ret;

	if (!listeners->nr)
		return ctl_usage("no socket to serve; start expiry-exporter.socket, or name an address with --listen");
	/* A closed connection or standard error shall be an errno, not a signal. */
	signal(SIGPIPE, SIG_IGN);
	stop_fd = stop_open();
	if (stop_fd < 0)
		return ctl_error("signals: %s", strerror(-stop_fd));
	sd_notify(0, "READY=1");
	ret = http_serve(ctl, listeners->fds, listeners->nr, stop_fd);
	return ret ? ctl_error("sockets: %s", strerror(-ret)) : 0;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct listeners listeners;
	int option, ret;

	listeners.nr = listen_inherited(listeners.fds, HTTP_LISTENERS_MAX);
	if (listeners.nr < 0)
		return ctl_error("sockets of systemd: %s",
				 strerror(-listeners.nr));
	while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (option) {
		case 'h':
			puts(help);
			return 0;
		case OPT_VERSION:
			printf("expiry-exporter %s\n", expiry_version());
			return 0;
		case '?':
			return EXIT_USAGE;
		}
		ret = take_option(ctl, &listeners, option);
		if (ret)
			return ret;
	}
	if (argv[optind])
		return ctl_usage("%s: no argument is expected; see: expiry-exporter --help",
				 argv[optind]);
	ret = ctl->address ? 0 : address_set_default(ctl);
	return ret ? ret : serve(ctl, &listeners);
}

int main(int argc, char **argv)
{
	struct ctl ctl = { .timeout_ms = DAEMON_MS };
	int ret;

	ctl_program = "expiry-exporter";
	ret = run(&ctl, argc, argv);
	free(ctl.address);
	return ret;
}
