// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libuv: commands at their times. Starts each COMMAND by the shell after its
 * SECONDS and prints how it ended. Ends after the last one.
 *
 *	./libuv SECONDS COMMAND [SECONDS COMMAND...]
 */
#include <expiry/expiry.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static struct expiry *h;
static uv_poll_t poller;
static int left;		/* commands that have not ended */

static int check(int ret, unsigned int op)
{
	if (ret < 0) {
		fprintf(stderr, "expiryd: %s\n", expiry_explain(ret, op));
		exit(1);
	}
	return ret;
}

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

static void ended(uv_process_t *process, int64_t status, int signal_nr)
{
	if (signal_nr)
		status = 128 + signal_nr;
	printf("%s: status %d\n", (char *)process->data, (int)status);
	uv_close((uv_handle_t *)process, free_handle);
	/* The loop ends when the poller is closed, too. */
	if (!--left)
		uv_close((uv_handle_t *)&poller, NULL);
}

static void start(char *command)
{
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_INHERIT_FD, .data.fd = 0 },
		{ .flags = UV_INHERIT_FD, .data.fd = 1 },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
	};
	char *args[] = { "sh", "-c", command, NULL };
	uv_process_options_t options = {
		.file = "/bin/sh", .args = args, .stdio = stdio, .stdio_count = 3,
		.exit_cb = ended,
	};
	uv_process_t *process = malloc(sizeof(*process));
	int ret = UV_ENOMEM;

	if (process)
		ret = uv_spawn(uv_default_loop(), process, &options);
	if (ret) {
		fprintf(stderr, "%s: %s\n", command, uv_strerror(ret));
		exit(1);
	}
	process->data = command;
}

/* Takes what is due. @poll: NULL before the loop runs. */
static void take(uv_poll_t *poll, int status, int events)
{
	struct expiry_record due[16];
	int i, nr;

	(void)poll, (void)status, (void)events;
	do {
		nr = check(expiry_next(h, due, 16), EXPIRY_OP_EXPIRED);
		for (i = 0; i < nr; i++)
			if (due[i].op == EXPIRY_OP_EXPIRED)
				start((char *)(uintptr_t)due[i].cookie);
	} while (nr == 16);
	/* Update the events: the handle needs UV_WRITABLE only at times. */
	uv_poll_start(&poller, UV_READABLE |
		      (expiry_events(h) & POLLOUT ? UV_WRITABLE : 0), take);
}

int main(int argc, char **argv)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME,
	};
	uint64_t id;	/* for a CANCEL */

	if (argc < 3 || argc % 2 == 0) {
		fputs("usage: libuv SECONDS COMMAND [...]\n", stderr);
		return 2;
	}
	check(expiry_open(&h, NULL, &options), EXPIRY_OP_HELLO);
	for (int i = 1; i < argc; i += 2, left++)
		check(expiry_arm(h, &id, strtod(argv[i], NULL) * 1e9, 0,
				 (uintptr_t)argv[i + 1], EXPIRY_F_RELATIVE),
		      EXPIRY_OP_ARM);
	uv_poll_init(uv_default_loop(), &poller, expiry_fd(h));
	/* Records that already arrived are in the handle, not in the descriptor. */
	take(NULL, 0, 0);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	uv_loop_close(uv_default_loop());
	expiry_close(h);
	return 0;
}
