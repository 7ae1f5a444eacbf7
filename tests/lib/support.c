// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server for the tests.
 */
#include <errno.h>
#include <limits.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <expiry/expiry.h>
#include "support.h"

/* Longest wait for the daemon; as slow as an emulated machine may be. */
#define START_MS	60000

static char directory[] = "/tmp/expiry-test-XXXXXX";
static char address[64];
static pid_t daemon_pid;

static const char *server_loop(void)
{
	const char *given = getenv("EXPIRY_LOOP");

	return given ? given : "auto";
}

const char *server_engine(void)
{
	const char *given = getenv("EXPIRY_ENGINE");

	return given ? given : "embedded";
}

static void find_daemon(char *path, size_t size)
{
	const char *given = getenv("EXPIRYD");
	char self[PATH_MAX];
	ssize_t len;

	if (given) {
		snprintf(path, size, "%s", given);
		return;
	}
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len > 0 ? len : 0] = '\0';
	if (snprintf(path, size, "%s/../../expiryd", dirname(self)) >= (int)size)
		*path = '\0';
}

/* Has the daemon ended? Then there is nothing to wait for. */
static bool daemon_gone(void)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, daemon_pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

static bool daemon_answers(void)
{
	struct expiry *h;
	int ms;

	for (ms = 0; ms < START_MS && !daemon_gone(); ms += 10) {
		if (!expiry_open(&h, address, NULL)) {
			expiry_close(h);
			return true;
		}
		poll(NULL, 0, 10);
	}
	return false;
}

static const char *server_threads(void)
{
	const char *threads = getenv("EXPIRY_THREADS");

	return threads ? threads : "1";
}

const char *server_start(void)
{
	const char *given = getenv("EXPIRY_ADDRESS");
	char path[PATH_MAX];
	pid_t parent = getpid();

	if (given)
		return given;
	find_daemon(path, sizeof(path));
	if (!mkdtemp(directory)) {
		printf("# %s: %s\n", directory, strerror(errno));
		return NULL;
	}
	snprintf(address, sizeof(address), "unix:%s/socket", directory);

	daemon_pid = fork();
	if (daemon_pid == 0) {
		/* It ends with us, even if we crash. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(127);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(path, "expiryd", "--engine", server_engine(),
		      "--threads", server_threads(),
		      "--loop", server_loop(), "--socket",
		      address + strlen("unix:"), (char *)NULL);
		fprintf(stderr, "# %s: %s\n", path, strerror(errno));
		_exit(127);
	}
	if (daemon_pid > 0 && daemon_answers())
		return address;
	printf("# no daemon at %s\n", address);
	server_stop();
	return NULL;
}

int server_stop(void)
{
	int status = 0;

	if (daemon_pid > 0) {
		kill(daemon_pid, SIGTERM);
		waitpid(daemon_pid, &status, 0);
		daemon_pid = 0;
		unlink(address + strlen("unix:"));
		rmdir(directory);
	}
	if (status)
		printf("# the daemon ended with status %#x\n", status);
	return status ? -1 : 0;
}
