// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * expiryctl metrics: counters of the daemon and its queues, for Prometheus and
 * programs that read its format. Prints them or answers one HTTP request.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/http.h"
#include "tools/output/metrics.h"
#include "tools/scrape.h"

#define PATH		"/metrics"
#define DAEMON_MS	5000	/* longest wait of an HTTP client for the daemon */

static int serve(struct ctl *ctl)
{
	char *text = NULL;
	size_t size = 0;
	bool head_only;
	int status, ret;
	FILE *out;

	/* A closed connection shall be an error of write(), not a signal. */
	signal(SIGPIPE, SIG_IGN);
	ctl->timeout_ms = DAEMON_MS;
	status = http_receive(STDIN_FILENO, PATH, &head_only);
	/* No client is left to answer. */
	if (status < 0)
		return 0;
	if (!status) {
		out = open_memstream(&text, &size);
		if (!out)
			return ctl_error("no memory");
		status = scrape(ctl, out) ? 503 : 200;
		if (fclose(out))
			status = 503;
	}
	ret = http_answer(STDIN_FILENO, STDOUT_FILENO, status, METRICS_TYPE,
			  text, size, head_only);
	free(text);
	/* The client closed the connection; that is not an error. */
	if (ret == -EPIPE || ret == -ECONNRESET)
		return 0;
	if (ret)
		return ctl_error("answer: %s", strerror(-ret));
	return status == 503 ? EXIT_REFUSED : 0;
}

static int run_metrics(struct ctl *ctl, char **args)
{
	(void)args;
	return ctl->given & CTL_HTTP ? serve(ctl) : scrape(ctl, stdout);
}

const struct command cmd_metrics = {
	.name = "metrics",
	.args = "",
	.summary = "print the daemon's and queues' metrics",
	.examples =
		"  expiryctl metrics\n"
		"  expiryctl metrics --queue leases >leases.prom\n"
		"  curl --unix-socket /run/expiryd/metrics http://localhost/metrics\n",
	.options = CTL_LIMIT | CTL_HTTP,
	.run = run_metrics,
};
