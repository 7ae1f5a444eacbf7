// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The service manager: it passes the socket and queues of an earlier daemon, keeps
 * descriptors, expects the watchdog's answers, and may be too busy to read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "tests/sim/file.h"
#include "tests/sim/wrap.h"

#define KEPT		256
#define NAME		64
#define WATCHDOG_NS	(4 * SIM_S)
/* A refused message comes again with the next tick, after ten seconds at most. */
#define AGAIN_NS	(11 * SIM_S)

/**
 * manager - the service manager
 * @names: of the kept descriptors, @nr of them
 * @passed: names of the queues that it passes at the start, @nr_passed of them
 * @readies, @reloadings: such messages; @stoppings: likewise; @is_reloading: the
 *	last one of the first two
 * @alive_ns: when the daemon last answered for the watchdog
 * @refused_ns: when a message was refused; @has_refused: one was
 * @has_lost: it may keep a queue that the daemon does not have
 * @has_watchdog: it expects an answer every WATCHDOG_NS
 */
static struct {
	char names[KEPT][NAME];
	uint32_t nr;
	char passed[8][NAME];
	uint32_t nr_passed;
	uint32_t readies;
	uint32_t reloadings;
	uint32_t stoppings;
	bool is_reloading;
	uint64_t alive_ns;
	uint64_t refused_ns;
	bool has_refused;
	bool has_watchdog;
	bool has_lost;
} manager;

static void pass(const char *name, uid_t uid)
{
	char *text = manager.passed[manager.nr_passed++];

	snprintf(text, NAME, "%s@%u", name, uid);
	strcpy(manager.names[manager.nr++], text);
}

void manager_init(struct rng *rng)
{
	static const uid_t uids[] = { 0, 1000, 1001 };
	char name[2] = "a";

	unsetenv("NOTIFY_SOCKET");
	unsetenv("FDSTORE");
	if (rng_hits(rng, 400))
		return;
	setenv("NOTIFY_SOCKET", "@sim", 1);
	manager.has_watchdog = rng_hits(rng, 500);
	sim.busy_manager = rng_hits(rng, 500) ? 0 : 100;
	sim.keeps = rng_hits(rng, 600) && !sim.crashes;
	if (!sim.keeps)
		return;
	for (; name[0] < 'f'; name[0]++)
		if (rng_hits(rng, 300))
			pass(name, uids[rng_below(rng, 3)]);
	if (rng_hits(rng, 200))
		pass("no name", 0);
}

/* ---------------------------------------------------------------------- messages */

static uint32_t kept_find(const char *name)
{
	uint32_t i;

	for (i = 0; i < manager.nr; i++)
		if (!strcmp(manager.names[i], name))
			break;
	return i;
}

static void keep(const char *name, int fd)
{
	if (fd < 0 || file_of(fd)->kind != FILE_QUEUE)
		sim_fail("%s is to be kept, and descriptor %d is no queue",
			 name, fd);
	if (strcmp(name, engine_queue_name(fd)))
		sim_fail("%s is to be kept, and it is %s", name,
			 engine_queue_name(fd));
	if (kept_find(name) < manager.nr && !manager.has_lost)
		sim_fail("%s is kept twice", name);
	if (manager.nr == KEPT)
		sim_fail("%u descriptors are kept", KEPT);
	strcpy(manager.names[manager.nr++], name);
}

static void forget(const char *name)
{
	uint32_t i = kept_find(name);

	if (i == manager.nr)
		sim_fail("%s is removed from the store, and not there", name);
	/* All of this name go. */
	for (; i < manager.nr; i = kept_find(name))
		memmove(manager.names[i], manager.names[i + 1],
			(--manager.nr - i) * NAME);
}

static void status(const char *text)
{
	unsigned long long timers, queues, clients;
	const char *colon = strstr(text, ": ");

	if (!strcmp(text, "Stopping"))
		return;
	if (!colon || sscanf(colon, ": %llu timers in %llu queues, %llu clients",
			     &timers, &queues, &clients) != 3)
		sim_fail("the status says nothing: %s", text);
	inside_check_status(queues, clients);
}

static void understand(char *text, int fd)
{
	char *rest = NULL, *line, *name = strstr(text, "FDNAME=");

	name = name ? name + strlen("FDNAME=") : NULL;
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		trace("manager: %s", line);
		if (!strcmp(line, "READY=1")) {
			manager.readies++;
			manager.is_reloading = false;
		} else if (!strcmp(line, "RELOADING=1")) {
			manager.reloadings++;
			manager.is_reloading = true;
		} else if (!strcmp(line, "STOPPING=1")) {
			manager.stoppings++;
		} else if (!strcmp(line, "WATCHDOG=1")) {
			manager.alive_ns = sim.mono_ns;
		} else if (!strncmp(line, "STATUS=", 7)) {
			status(line + 7);
		}
	}
	if (manager.readies > manager.reloadings + 1)
		sim_fail("the daemon is ready %u times, and reloaded %u times",
			 manager.readies, manager.reloadings);
	if (strcmp(text, "FDSTORE=1") && strcmp(text, "FDSTOREREMOVE=1"))
		return;
	if (!name || manager.stoppings)
		sim_fail("the store is changed without a name, or at the end");
	if (!strcmp(text, "FDSTORE=1"))
		keep(name, fd);
	else
		forget(name);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(msg);
	char text[1024] = "";
	int passed = -1;

	if (file_of(fd)->kind != FILE_MANAGER || !(flags & MSG_NOSIGNAL))
		sim_fail("a message to descriptor %d, flags %d", fd, flags);
	if (sim.phase == SIM_RUN && rng_hits(&sim.kernel, sim.error)) {
		errno = EINTR;
		return -1;
	}
	memcpy(text, msg->msg_iov->iov_base, msg->msg_iov->iov_len);
	if (sim.phase == SIM_RUN &&
	    rng_hits(&sim.kernel, sim.busy_manager)) {
		trace("manager does not read: %.20s", text);
		manager.refused_ns = sim.mono_ns;
		manager.has_refused = true;
		manager.has_lost |= !strncmp(text, "FDSTOREREMOVE", 13);
		errno = EAGAIN;
		return -1;
	}
	if (control)
		memcpy(&passed, CMSG_DATA(control), sizeof(passed));
	understand(text, passed);
	return msg->msg_iov->iov_len;
}

/* -------------------------------------------------------------------- descriptors */

/* The listening socket, and the queues. */
int __wrap_sd_listen_fds_with_names(int unset, char ***names)
{
	uint32_t i;

	(void)unset;
	*names = __real_calloc(manager.nr_passed + 2, sizeof(**names));
	(*names)[0] = __real_calloc(1, NAME);
	strcpy((*names)[0], "socket");
	for (i = 0; i < manager.nr_passed; i++) {
		(*names)[i + 1] = __real_calloc(1, NAME);
		strcpy((*names)[i + 1], manager.passed[i]);
	}
	files_pass(manager.nr_passed);
	return manager.nr_passed + 1;
}

int __wrap_sd_is_socket(int fd, int family, int type, int listening)
{
	(void)family;
	(void)type;
	(void)listening;
	return file_of(fd)->kind == FILE_LISTENER;
}

int __wrap_sd_watchdog_enabled(int unset, uint64_t *us)
{
	(void)unset;
	if (!manager.has_watchdog)
		return 0;
	*us = WATCHDOG_NS / SIM_US;
	return 1;
}

int __wrap_fstat(int fd, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	if (file_of(fd)->kind == FILE_QUEUE)
		st->st_mode = S_IFCHR;
	return 0;
}

/* ------------------------------------------------------------------------ checks */

bool manager_has(const char *name)
{
	return kept_find(name) < manager.nr;
}

void manager_lost(void)
{
	manager.has_lost = true;
}

const char *manager_passed(uint32_t i)
{
	return manager.passed[i];
}

void manager_began(void)
{
	manager.alive_ns = sim.mono_ns;
}

void manager_check_idle(void)
{
	if (!getenv("NOTIFY_SOCKET"))
		return;
	if (manager.has_refused && sim.mono_ns - manager.refused_ns < AGAIN_NS)
		return;
	if (!manager.readies || manager.is_reloading)
		sim_fail("the daemon is not ready for the manager");
	if (manager.has_watchdog && sim.mono_ns - manager.alive_ns > WATCHDOG_NS)
		sim_fail("the watchdog has had no answer for %llu ns",
			 (unsigned long long)(sim.mono_ns - manager.alive_ns));
	if (sim.keeps)
		inside_check_kept(manager.has_lost ? 0 : manager.nr);
}

void manager_check_ended(void)
{
	if (getenv("NOTIFY_SOCKET") && manager.stoppings != 1)
		sim_fail("the manager was told %u times that the daemon stops",
			 manager.stoppings);
}
