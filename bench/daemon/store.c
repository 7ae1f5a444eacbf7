// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server of one connection with a database under its timers: requests go through
 * the core, and what they changed through one transaction, before the reply. It is
 * the least that such a server can be: one thread, calls that block, no limits.
 *
 * The first --relaxed requests are not made durable: they fill it.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/subject.h"
#include "bench/daemon/store.h"
#include "expiry/wire.h"

#define RECORDS		512U	/* in a transaction, at most */
#define ROOM		4000000U	/* timers beside those that fill it */

static struct subject subject;
static uint32_t relaxed;
static uint64_t nr_requests;

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!path || strlen(path) >= sizeof(address.sun_path))
		die("--socket is missing or too long");
	strcpy(address.sun_path, path);
	if (fd < 0 || bind(fd, (void *)&address, sizeof(address)) < 0 ||
	    listen(fd, 1) < 0)
		die("%s: %m", path);
	return fd;
}

static void log_reply(const struct expiry_record *reply)
{
	const struct store_value value = {
		.deadline_ns = reply->deadline_ns,
		.cookie = reply->cookie,
		.period_ms = reply->period_ms,
	};

	if (reply->status)
		return;
	if (reply->op == EXPIRY_OP_CANCEL)
		store.drop(reply->id);
	else
		store.put(reply->id, &value);
}

static void process(struct expiry_record *records, uint32_t nr)
{
	uint32_t i;

	if (records->op == EXPIRY_OP_HELLO) {
		records->status = 0;
		return;
	}
	if (timers_submit(&subject.timers, records, nr, bench_now()) != nr)
		die("timers_submit() does not process all");
	for (i = 0; i < nr; i++)
		log_reply(&records[i]);
	nr_requests += nr;
	store.commit(nr_requests > relaxed);
}

static void serve(int fd)
{
	static struct expiry_record records[RECORDS];
	size_t len = 0, size;
	ssize_t n;

	while ((n = recv(fd, (char *)records + len, sizeof(records) - len,
			 0)) > 0) {
		len += n;
		size = len - len % sizeof(*records);
		if (!size)
			continue;
		process(records, size / sizeof(*records));
		if (send(fd, records, size, MSG_NOSIGNAL) != (ssize_t)size)
			die("send: %m");
		len -= size;
		memmove(records, (char *)records + size, len);
	}
}

int main(int argc, char **argv)
{
	static const char *path, *folder;
	static const struct option_row options[] = {
		{ "socket", "PATH", .text = &path },
		{ "folder", "DIR", .text = &folder },
		{ "relaxed", "N", .number = &relaxed },
		{ 0 }
	};
	int listener, fd;

	options_parse(argc, argv, options, "");
	subject_init(&subject, &bheap_radix, true, relaxed + ROOM);
	store.open(folder);
	listener = listen_at(path);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		serve(fd);
		close(fd);
	}
	die("accept: %m");
}
