// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many connections that do almost nothing.
 *
 *	churn --socket PATH --hold N
 *		N consumers, each of a named queue of its own with a timer that is
 *		far away, held until standard input ends; then drops the queues
 *	churn --socket PATH --visit N --rounds R
 *		R times N connections that come and go: every other one a consumer
 *		with credit and a timer that is due
 *
 * Either prints "ready" when all are connected, or all are closed.
 */
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/daemon/traffic.h"
#include "bench/daemon/wire.h"

#define HOUR_NS	(3600 * NSEC_PER_SEC)
#define CREDIT	64U

static void arm(int fd, uint64_t deadline_ns)
{
	wire_arm(fd, &(struct wire_arming) {
		.nr = 1, .from_ns = deadline_ns, .within_ns = 1,
	});
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void hold(const char *path, uint32_t nr, int *fds)
{
	struct expiry_record record;
	char name[EXPIRY_NAME_MAX];
	uint32_t i;

	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "idle-%u", i);
		fds[i] = wire_attach(path, name, EXPIRY_HELLO_CONSUME);
		wire_credit(fds[i], CREDIT);
		arm(fds[i], bench_now() + HOUR_NS);
	}
	ready();
	while (getchar() != EOF)
		;
	for (i = 0; i < nr; i++) {
		record = (struct expiry_record) { .op = EXPIRY_OP_DROP };
		wire_send(fds[i], &record, 1);
		wire_receive(fds[i], &record, 1);
		if (record.status)
			die("DROP is refused: %d", record.status);
		close(fds[i]);
	}
}

static void visit(const char *path, uint32_t nr, uint32_t rounds, int *fds)
{
	uint32_t i;

	while (rounds--) {
		for (i = 0; i < nr; i++) {
			bool consume = i % 2;

			fds[i] = wire_attach(path, "", consume ?
					     EXPIRY_HELLO_CONSUME : 0);
			if (consume)
				wire_credit(fds[i], CREDIT);
			if (consume)
				arm(fds[i], bench_now());
		}
		for (i = 0; i < nr; i++)
			close(fds[i]);
	}
	ready();
}

int main(int argc, char **argv)
{
	static const char *path = EXPIRY_SOCKET_DEFAULT;
	static uint32_t nr_hold, nr_visit, rounds;
	static const struct option_row options[] = {
		{ "socket", "PATH", .text = &path },
		{ "hold", "N", .number = &nr_hold },
		{ "visit", "N", .number = &nr_visit },
		{ "rounds", "N", .number = &rounds },
		{ 0 }
	};
	int *fds;

	options_parse(argc, argv, options, "");
	traffic_files();
	fds = calloc(nr_hold + nr_visit, sizeof(*fds));
	if (!fds)
		die("no memory");
	if (nr_hold)
		hold(path, nr_hold, fds);
	else
		visit(path, nr_visit, rounds, fds);
	free(fds);
	return 0;
}
