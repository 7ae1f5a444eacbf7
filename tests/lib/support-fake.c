// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server made for the test.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support-fake.h"

bool get(int fd, struct expiry_record *records, uint32_t nr)
{
	char *at = (void *)records;
	size_t left = nr * RECORD;
	ssize_t ret;

	while (left) {
		ret = read(fd, at, left);
		if (ret <= 0)
			return false;
		at += ret;
		left -= ret;
	}
	return true;
}

void put_bytes(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;
	ssize_t ret;

	while (len) {
		ret = send(fd, at, len, MSG_NOSIGNAL);
		if (ret <= 0)
			return;
		at += ret;
		len -= ret;
	}
}

void put(int fd, const struct expiry_record *records, uint32_t nr)
{
	put_bytes(fd, records, nr * RECORD);
}

void put_event(int fd, uint8_t op, uint64_t cookie)
{
	struct expiry_record event = { .op = op, .cookie = cookie };

	put(fd, &event, 1);
}

void greet(int fd, uint64_t window)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	hello = (struct expiry_record){
		.op = EXPIRY_OP_HELLO,
		.id = 5,
		.cookie = window,
	};
	put(fd, &hello, 1);
}

void drain(int fd)
{
	struct expiry_record record;

	while (get(fd, &record, 1))
		;
}

static void *serve(void *arg)
{
	struct fake *server = arg;
	fake_script *script = NULL;
	int i, fd;

	for (i = 0; i < FAKE_SCRIPTS || server->repeat; i++) {
		if (i < FAKE_SCRIPTS && server->scripts[i])
			script = server->scripts[i];
		else if (!server->repeat)
			break;
		fd = accept(server->listen_fd, NULL, NULL);
		if (fd < 0)
			break;
		script(fd);
		/* A child that a test forked meanwhile has the descriptor, too. */
		shutdown(fd, SHUT_RDWR);
		close(fd);
	}
	return NULL;
}

void fake_start(struct fake *server, fake_script *script)
{
	fake_script *const scripts[] = { script, NULL };

	strcpy(server->directory, "/tmp/expiry-test-XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	snprintf(server->address, sizeof(server->address), "unix:%s/s",
		 server->directory);
	fake_resume(server, scripts);
}

void fake_resume(struct fake *server, fake_script *const *scripts)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int i;

	strcpy(addr.sun_path, server->address + strlen("unix:"));
	memset(server->scripts, 0, sizeof(server->scripts));
	for (i = 0; i < FAKE_SCRIPTS && scripts[i]; i++)
		server->scripts[i] = scripts[i];
	server->repeat = false;
	server->joined = false;
	server->listen_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(server->listen_fd >= 0);
	assert_int_equal(bind(server->listen_fd, (void *)&addr, sizeof(addr)),
			 0);
	assert_int_equal(listen(server->listen_fd, 1), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server),
			 0);
}

void fake_wait(struct fake *server)
{
	if (!server->joined)
		pthread_join(server->thread, NULL);
	server->joined = true;
}

void fake_halt(struct fake *server)
{
	/* Without a client accept() ends with this. */
	shutdown(server->listen_fd, SHUT_RDWR);
	fake_wait(server);
	close(server->listen_fd);
	unlink(server->address + strlen("unix:"));
}

void fake_stop(struct fake *server)
{
	fake_halt(server);
	rmdir(server->directory);
}

struct expiry *fake_open(struct fake *server, fake_script *script,
			 uint32_t flags, uint32_t credit)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.credit = credit,
	};
	struct expiry *h = NULL;

	fake_start(server, script);
	assert_int_equal(expiry_open(&h, server->address, &options), 0);
	assert_non_null(h);
	return h;
}

void fake_end(struct fake *server, struct expiry *h)
{
	expiry_close(h);
	fake_stop(server);
}

void fill_arm(struct expiry_record *records, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.deadline_ns = 1000 + i,
			.cookie = i,
		};
}

void take(struct expiry *h, struct expiry_record *records, uint32_t nr)
{
	uint32_t done = 0;
	int ret;

	while (done < nr) {
		ret = expiry_next(h, records + done, nr - done);
		assert_true(ret >= 0);
		done += ret;
		if (!ret)
			assert_int_equal(expiry_wait(h, 60000), 1);
	}
}

int next_error(struct expiry *h)
{
	struct expiry_record record;
	int ret;

	do {
		ret = expiry_next(h, &record, 1);
		if (!ret)
			assert_int_equal(expiry_wait(h, 60000), 1);
	} while (ret >= 0);
	return ret;
}

void echo(int fd)
{
	struct expiry_record record;

	greet(fd, 5);
	while (get(fd, &record, 1))
		put(fd, &record, 1);
}

void scan_refused(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		if (record.op == EXPIRY_OP_SCAN)
			record.status = -EINVAL;
		put(fd, &record, 1);
	}
}
