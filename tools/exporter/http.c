// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/ctl.h"
#include "tools/exporter/http.h"
#include "tools/output/error.h"
#include "tools/output/metrics.h"
#include "tools/scrape.h"

#define PATH		"/metrics"
#define PAUSE_MS	100	/* without a descriptor for a client */

/**
 * struct connection - a client
 * @fd: its socket; -1: none
 * @end_ms: when it is disconnected
 */
struct connection {
	int fd;
	int64_t end_ms;
};

/**
 * struct server - a running server
 * @http: libmicrohttpd's part
 * @ctl: see http_serve()
 * @connections: all clients
 */
struct server {
	struct MHD_Daemon *http;
	struct ctl *ctl;
	struct connection connections[HTTP_CONNECTIONS_MAX];
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Returns an unused connection, or NULL. */
static struct connection *connection_unused(struct server *server)
{
	size_t i;

	for (i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		if (server->connections[i].fd < 0)
			return &server->connections[i];
	}
	return NULL;
}

/* Notes a connection's begin and end. http_accept() left room for it. */
static void connection_changed(void *state, struct MHD_Connection *http,
			       void **context,
			       enum MHD_ConnectionNotificationCode code)
{
	struct connection *connection = *context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (connection)
			connection->fd = -1;
		return;
	}
	connection = connection_unused(state);
	info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!connection || !info)
		return;
	connection->fd = info->connect_fd;
	connection->end_ms = now_ms() + HTTP_TIME_MS;
	*context = connection;
}

/* Disconnects the clients whose time is over. Returns the milliseconds until the next
 * one's end, or -1.
 */
static int connections_expire(struct server *server)
{
	const int64_t now = now_ms();
	struct connection *connection;
	int64_t left, least = -1;
	size_t i;

	for (i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		connection = &server->connections[i];
		if (connection->fd < 0)
			continue;
		/* libmicrohttpd sees the end of input, and closes the socket. */
		if (connection->end_ms <= now) {
			shutdown(connection->fd, SHUT_RDWR);
			connection->end_ms = now + HTTP_TIME_MS;
		}
		left = connection->end_ms - now;
		if (least < 0 || left < least)
			least = left;
	}
	return least;
}

/* Asks the daemon. Returns the answer, or NULL. */
static struct MHD_Response *metrics_response(struct ctl *ctl)
{
	struct MHD_Response *response = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	int ret;

	out = open_memstream(&text, &size);
	if (!out) {
		ctl_error("no memory");
		return NULL;
	}
	ret = scrape(ctl, out);
	expiry_close(ctl->handle);
	ctl->handle = NULL;
	if (fclose(out))
		ret = ctl_error("no memory");
	if (!ret)
		response = MHD_create_response_from_buffer(size, text,
							   MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return response;
}

/* Returns an answer with the line @text. */
static struct MHD_Response *text_response(const char *text)
{
	return MHD_create_response_from_buffer(strlen(text), (char *)text,
					       MHD_RESPMEM_PERSISTENT);
}

/* Answers a request when its head is complete, without its body. */
static enum MHD_Result answer(void *state, struct MHD_Connection *http,
			      const char *path, const char *method,
			      const char *version, const char *data,
			      size_t *size, void **context)
{
	const char *type = "text/plain; charset=utf-8";
	unsigned int status = MHD_HTTP_OK;
	struct MHD_Response *response;
	struct server *server = state;
	enum MHD_Result ret;

	(void)version;
	(void)data;
	(void)size;
	(void)context;
	if (strcmp(method, MHD_HTTP_METHOD_GET) &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		response = text_response("Method Not Allowed\n");
	} else if (strcmp(path, PATH)) {
		status = MHD_HTTP_NOT_FOUND;
		response = text_response("Not Found\n");
	} else {
		type = METRICS_TYPE;
		response = metrics_response(server->ctl);
		if (!response) {
			status = MHD_HTTP_SERVICE_UNAVAILABLE;
			type = "text/plain; charset=utf-8";
			response = text_response("Service Unavailable\n");
		}
	}
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
				"no-store");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
					"GET, HEAD");
	ret = MHD_queue_response(http, status, response);
	MHD_destroy_response(response);
	return ret;
}

/* Accepts one client, if there still is one. */
static void http_accept(struct server *server, int listener)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int fd;

	fd = accept4(listener, (struct sockaddr *)&address, &size,
		     SOCK_NONBLOCK | SOCK_CLOEXEC);
	/* Closes the socket where it fails. */
	if (fd >= 0)
		MHD_add_connection(server->http, fd,
				   (struct sockaddr *)&address, size);
	/* Without a descriptor or memory the client stays in the listener. */
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		 errno == ENOBUFS)
		poll(NULL, 0, PAUSE_MS);
}

/* Returns the milliseconds that the loop may wait, or -1. */
static int wait_ms(struct server *server)
{
	int ms = connections_expire(server);
	MHD_UNSIGNED_LONG_LONG http_ms;

	if (MHD_get_timeout(server->http, &http_ms) == MHD_YES &&
	    (ms < 0 || http_ms < (unsigned int)ms))
		ms = http_ms;
	return ms;
}

/* Serves until a signal. While there is no room, clients wait in the listeners. */
static int run(struct server *server, const int *listeners, size_t nr,
	       int stop_fd)
{
	struct pollfd fds[2 + HTTP_LISTENERS_MAX] = {
		{ .fd = stop_fd, .events = POLLIN },
		{ .events = POLLIN },
	};
	size_t i;
	int ret = 0;

	fds[1].fd = MHD_get_daemon_info(server->http,
					MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	while (!ret && !fds[0].revents) {
		for (i = 0; i < nr; i++) {
			fds[2 + i].fd = connection_unused(server) ?
					listeners[i] : -1;
			fds[2 + i].events = POLLIN;
		}
		if (poll(fds, 2 + nr, wait_ms(server)) < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		for (i = 0; i < nr; i++) {
			if (fds[2 + i].revents && connection_unused(server))
				http_accept(server, listeners[i]);
		}
		MHD_run(server->http);
	}
	return ret;
}

int http_serve(struct ctl *ctl, const int *listeners, size_t nr, int stop_fd)
{
	struct server server = { .ctl = ctl };
	size_t i;
	int ret;

	for (i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		server.connections[i].fd = -1;
	server.http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET,
				       0, NULL, NULL, answer, &server,
				       MHD_OPTION_CONNECTION_LIMIT,
				       (unsigned int)HTTP_CONNECTIONS_MAX,
				       MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				       (size_t)HTTP_MEMORY,
				       MHD_OPTION_STRICT_FOR_CLIENT, 1,
				       MHD_OPTION_NOTIFY_CONNECTION,
				       connection_changed, &server,
				       MHD_OPTION_END);
	if (!server.http)
		return -ENOMEM;
	ret = run(&server, listeners, nr, stop_fd);
	MHD_stop_daemon(server.http);
	return ret;
}
