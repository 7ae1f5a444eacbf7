// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "tools/exporter/listen.h"
#include "tools/input/parse-line.h"

#define ADDRESS_TEXT	64	/* bytes for any numeric address */
#define BACKLOG		64

int listen_inherited(int *fds, size_t max)
{
	int i, flags, fd, nr = sd_listen_fds(1);

	if (nr > (int)max)
		return -E2BIG;
	for (i = 0; i < nr; i++) {
		fd = SD_LISTEN_FDS_START + i;
		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
			return -ENOTSOCK;
		flags = fcntl(fd, F_GETFL);
		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
			return -errno;
		fds[i] = fd;
	}
	return nr;
}

/* Resolves "HOST:PORT" or "[HOST]:PORT". Returns 0 or -EINVAL. */
static int resolve(const char *address, struct addrinfo **result)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	const char *port = strrchr(address, ':');
	char text[ADDRESS_TEXT], *host = text;
	size_t len = port ? (size_t)(port - address) : 0;
	uint64_t number;

	if (!len || len >= sizeof(text) ||
	    parse_number(port + 1, &number) || number > UINT16_MAX)
		return -EINVAL;
	memcpy(text, address, len);
	text[len] = '\0';
	if (*host == '[' && text[len - 1] == ']') {
		text[len - 1] = '\0';
		host++;
	} else if (strchr(host, ':')) {
		return -EINVAL;
	}
	return getaddrinfo(host, port + 1, &hints, result) ? -EINVAL : 0;
}

int listen_at(const char *address)
{
	struct addrinfo *info;
	int fd, ret;

	ret = resolve(address, &info);
	if (ret)
		return ret;
	fd = socket(info->ai_family,
		    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		/* Allow a restart while old connections end. */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 },
			   sizeof(int));
		if (!bind(fd, info->ai_addr, info->ai_addrlen) &&
		    !listen(fd, BACKLOG)) {
			freeaddrinfo(info);
			return fd;
		}
	}
	ret = -errno;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(info);
	return ret;
}

void listen_print(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	char host[ADDRESS_TEXT], port[8];

	if (getsockname(fd, (struct sockaddr *)&address, &size) ||
	    getnameinfo((struct sockaddr *)&address, size, host, sizeof(host),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	printf(strchr(host, ':') ? "listening on [%s]:%s\n" :
				   "listening on %s:%s\n", host, port);
	fflush(stdout);
}
