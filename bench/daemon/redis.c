// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: Redis. As a delay queue in a sorted set, with a batch as one command
 * of many members; or with --keys as keys with SET EX and keyspace
 * notifications. The protocol is implemented here, so that no client library is
 * measured.
 */
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/driver.h"

#define REQUESTS_MAX	1000000U
#define REQUEST_BYTES	80U		/* the longest request of one timer */
#define STREAMS_MAX	1000U
#define FILL_BATCH	512U
#define FAR_MS		3600000ULL
#define NOTIFY_MS	5000		/* how long to wait for notifications */
#define TEXT_MAX	32

/* Takes up to 512 due members, in one step. */
#define POP \
	"local r = redis.call('ZRANGEBYSCORE', 'q', '-inf', ARGV[1], 'LIMIT', 0, 512) " \
	"if #r > 0 then redis.call('ZREMRANGEBYRANK', 'q', 0, #r - 1) end return r"

static struct driver driver;
static const char *socket_path;
static bool keys;
static uint64_t *ids;
static uint32_t nr_ids;
static uint64_t next_id, random_state = 1;
static struct stream streams[STREAMS_MAX];
static uint32_t nr_streams;
static struct batch *batches;
static char *text, *text_end;

/* ------------------------------------------------------------------------
 * Writing
 */

static void put(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void put(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_end += vsprintf(text_end, format, args);
	va_end(args);
}

static void put_bulk(const char *bulk)
{
	put("$%zu\r\n%s\r\n", strlen(bulk), bulk);
}

static void put_number(uint64_t number)
{
	char digits[TEXT_MAX];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	put_bulk(digits);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static uint64_t far_ms(uint64_t from_ms)
{
	return from_ms + FAR_MS + bench_below(&random_state, FAR_MS);
}

static uint64_t some_id(void)
{
	return ids[bench_below(&random_state, nr_ids)];
}

static uint64_t drop_id(void)
{
	uint64_t *id = &ids[bench_below(&random_state, nr_ids)], old = *id;

	*id = ids[--nr_ids];
	return old;
}

/* Writes a quarter new ones, half with another time, in one command, and ends a
 * quarter in another. They are carried out in one turn of its loop.
 */
static uint32_t put_mix(uint32_t count, uint64_t from_ms)
{
	uint32_t cancels = count / 4, i;

	put("*%u\r\n$4\r\nZREM\r\n$1\r\nq\r\n", 2 + cancels);
	for (i = 0; i < cancels; i++)
		put_number(drop_id());
	put("*%u\r\n$4\r\nZADD\r\n$1\r\nq\r\n", 2 + 2 * (count - cancels));
	for (i = cancels; i < count; i++) {
		put_number(far_ms(from_ms));
		if (i < 2 * cancels)
			ids[nr_ids++] = ++next_id;
		put_number(i < 2 * cancels ? next_id : some_id());
	}
	return 2;
}

/* Writes one batch of @count timers; returns how many answers it has. */
static uint32_t put_batch(const char *op, uint32_t count, uint64_t from_ms)
{
	bool arm = !strcmp(op, "arm"), fire = !strcmp(op, "fire");
	uint32_t i;

	if (keys) {
		for (i = 0; i < count; i++) {
			put("*5\r\n$3\r\nSET\r\n");
			put_number(++next_id);
			put("$1\r\n1\r\n$2\r\nEX\r\n$4\r\n7200\r\n");
		}
		return count;
	}
	if (!strcmp(op, "mix"))
		return put_mix(count, from_ms);
	if (!strcmp(op, "cancel")) {
		put("*%u\r\n$4\r\nZREM\r\n$1\r\nq\r\n", 2 + count);
		for (i = 0; i < count; i++)
			put_number(drop_id());
		return 1;
	}
	put("*%u\r\n$4\r\nZADD\r\n$1\r\nq\r\n",
	    2 + 2 * count + !(arm || fire));
	if (!arm && !fire)
		put_bulk("XX");
	for (i = 0; i < count; i++) {
		put_number(fire ? 1 : far_ms(from_ms));
		if (fire) {
			put_number(++next_id);
		} else if (arm) {
			ids[nr_ids++] = ++next_id;
			put_number(next_id);
		} else {
			put_number(some_id());
		}
	}
	return 1;
}

/* ------------------------------------------------------------------------
 * Reading
 */

/* Parses answers of one line each; a line that begins with - is an error. */
static uint32_t parse_lines(struct stream *stream, const char *data, size_t len)
{
	const char *end = data + len, *line = data;
	uint32_t nr = 0;

	(void)stream;
	if (len && *data == '-')
		die("redis: %.*s", (int)(len < 80 ? len : 80), data);
	while ((line = memchr(line, '\n', end - line))) {
		line++;
		nr++;
	}
	return nr;
}

/* The consumer: takes due members repeatedly. */
static struct {
	int fd;
	uint64_t got;
	uint64_t wanted;
	uint32_t lines;		/* left of this answer */
	char head[TEXT_MAX];	/* its first line, as far as it has arrived */
	uint32_t head_len;
} popper = { .fd = -1 };

static void pop(void)
{
	static const char command[] = "*4\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n"
				      "$1\r\n0\r\n$13\r\n%013llu\r\n";
	char buffer[512];
	int len = snprintf(buffer, sizeof(buffer), command, strlen(POP), POP,
			   (unsigned long long)now_ms());

	if (send(popper.fd, buffer, len, MSG_NOSIGNAL) != len)
		die("redis: send: %m");
}

static bool popped(struct traffic *traffic)
{
	char buffer[65536];
	ssize_t n = recv(popper.fd, buffer, sizeof(buffer), 0), i;

	(void)traffic;
	if (n <= 0)
		die("redis ended a connection");
	for (i = 0; i < n; i++) {
		if (popper.lines) {
			if (buffer[i] != '\n' || --popper.lines)
				continue;
		} else {
			if (popper.head_len == sizeof(popper.head) - 1)
				die("redis: not an array: %s", popper.head);
			popper.head[popper.head_len++] = buffer[i];
			if (buffer[i] != '\n')
				continue;
			popper.head[popper.head_len] = 0;
			popper.head_len = 0;
			if (*popper.head != '*')
				die("redis: %s", popper.head);
			popper.lines = 2 * atoi(popper.head + 1);
			popper.got += popper.lines / 2;
			if (popper.lines)
				continue;
		}
		if (popper.got >= popper.wanted)
			return true;
		pop();
	}
	return false;
}

/* ------------------------------------------------------------------------
 * Measuring
 */

static struct traffic_cost run(const struct order *order)
{
	bool fire = !strcmp(order->op, "fire");
	struct traffic traffic = {
		.streams = streams,
		.nr_streams = order->connections,
		.depth = driver_depth(order),
		.parse = parse_lines,
		.batches = batches,
		.side_fd = -1,
	};
	uint64_t from_ms = now_ms();
	uint32_t done, count;

	if (order->requests > REQUESTS_MAX || order->connections > STREAMS_MAX)
		die("too many requests or connections");
	for (; nr_streams < order->connections; nr_streams++)
		streams[nr_streams].fd = traffic_connect(socket_path);
	traffic.pid = traffic_peer(streams[0].fd);
	text_end = text;
	for (done = 0; done < order->requests; done += count) {
		struct batch *batch = &batches[traffic.nr_batches++];

		count = order->requests - done < order->batch ?
			order->requests - done : order->batch;
		batch->out = text_end;
		batch->replies = put_batch(order->op, count, from_ms);
		batch->len = text_end - batch->out;
	}
	if (fire) {
		if (popper.fd < 0)
			popper.fd = traffic_connect(socket_path);
		popper.wanted = popper.got + order->requests;
		traffic.side_fd = popper.fd;
		traffic.side = popped;
		pop();
	}
	return traffic_run(&traffic);
}

/* Sets @requests keys that expire at the same moment, beside all others.
 * Measures how many notifications come within NOTIFY_MS of it, and how late
 * they are.
 */
static void notify(const struct order *order, struct traffic_cost *cost)
{
	uint64_t due_ms = now_ms() + 1000, *late, began;
	uint32_t i, nr = 0;
	struct pollfd poll_fd = { .fd = traffic_connect(socket_path),
				  .events = POLLIN };
	int commands = traffic_connect(socket_path), left;
	char buffer[65536];
	ssize_t n;

	text_end = text;
	put("*2\r\n$10\r\nPSUBSCRIBE\r\n$22\r\n__keyevent@0__:expired\r\n");
	if (send(poll_fd.fd, text, text_end - text, 0) < 0 ||
	    recv(poll_fd.fd, buffer, sizeof(buffer), 0) <= 0)
		die("redis: PSUBSCRIBE: %m");
	late = calloc(order->requests, sizeof(*late));
	if (!late)
		die("no memory");
	text_end = text;
	for (i = 0; i < order->requests; i++) {
		put("*5\r\n$3\r\nSET\r\n");
		put_number(++next_id);
		put("$1\r\n1\r\n$4\r\nPXAT\r\n");
		put_number(due_ms);
	}
	for (i = 0; i < text_end - text; i += n) {
		n = send(commands, text + i, text_end - text - i, 0);
		if (n < 0)
			die("redis: send: %m");
	}
	for (i = 0; i < order->requests; i += parse_lines(NULL, buffer, n)) {
		n = recv(commands, buffer, sizeof(buffer), 0);
		if (n <= 0)
			die("redis ended a connection");
	}
	began = bench_now();
	while (nr < order->requests) {
		const char *at = buffer;

		left = (int)(due_ms + NOTIFY_MS - now_ms());
		if (left <= 0 || poll(&poll_fd, 1, left) <= 0)
			break;
		n = recv(poll_fd.fd, buffer, sizeof(buffer) - 1, 0);
		if (n <= 0)
			die("redis ended a connection");
		buffer[n] = 0;
		/* Each message contains the pattern it matched. */
		for (; (at = strstr(at, "pmessage")) && nr < order->requests;
		     at++)
			late[nr++] = (now_ms() - due_ms) * 1000000;
	}
	cost->took_ns = bench_now() - began;
	cost->done = nr;
	bench_sort_ns(late, nr);
	if (nr) {
		cost->p50_ns = late[nr / 2];
		cost->p99_ns = late[nr - 1 - nr / 100];
		cost->max_ns = late[nr - 1];
	}
	free(late);
	close(commands);
	close(poll_fd.fd);
}

static void fill(const char *path, uint32_t timers)
{
	struct order order = {
		.op = "arm",
		.batch = FILL_BATCH,
		.connections = 1,
	};
	uint32_t done;

	if (keys)
		driver.name = "redis keys";
	socket_path = path;
	ids = driver_map(((uint64_t)timers + REQUESTS_MAX) * sizeof(*ids));
	batches = driver_map((uint64_t)REQUESTS_MAX * sizeof(*batches));
	text = driver_map((uint64_t)REQUESTS_MAX * REQUEST_BYTES);
	for (done = 0; done < timers; done += order.requests) {
		order.requests = timers - done < REQUESTS_MAX ?
				 timers - done : REQUESTS_MAX;
		run(&order);
	}
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	if (keys && !strcmp(order->op, "notify"))
		notify(order, cost);
	else if (!strcmp(order->op, "arm") ||
		 (!keys && (!strcmp(order->op, "refresh") ||
			    !strcmp(order->op, "cancel") ||
			    (!strcmp(order->op, "mix") && order->batch >= 4) ||
			    !strcmp(order->op, "fire"))))
		*cost = run(order);
	else
		return false;
	return true;
}

static const struct option_row options[] = {
	{ "keys", .flag = &keys },
	{ 0 }
};

static struct driver driver = {
	.name = "redis zset",
	.fill = fill,
	.measure = measure,
	.options = options,
};

int main(int argc, char **argv)
{
	return driver_main(&driver, argc, argv);
}
