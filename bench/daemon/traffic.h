/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traffic: batches of requests made before the clock starts, sent over one or
 * many connections by one thread. Each connection has a fixed number of batches
 * in flight and gets the next one when an answer is complete.
 */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TRAFFIC_DEPTH_MAX	8

/**
 * struct batch - requests sent in one piece
 * @out: their bytes; @len of them
 * @replies: how many answers they have
 */
struct batch {
	char *out;
	size_t len;
	uint32_t replies;
};

/**
 * struct stream - one connection
 * @fd: of the socket
 * @flight: the batches in flight, oldest first, @nr_flight of them
 * @began_ns: when each was sent
 * @sent: batches of @flight sent completely
 * @send_offset: bytes of the next one that are sent
 * @received: bytes (in place) or answers of the oldest one
 * @state: the parser's, 0 at first
 * @blocked: the socket takes no more for now
 */
struct stream {
	int fd;
	uint32_t flight[TRAFFIC_DEPTH_MAX];
	uint64_t began_ns[TRAFFIC_DEPTH_MAX];
	uint32_t nr_flight;
	uint32_t sent;
	size_t send_offset;
	size_t received;
	uint64_t state;
	bool blocked;
};

/**
 * struct traffic - some connections and their load
 * @parse: count the answers that end in @len bytes; or NULL
 * @depth: batches in flight a connection
 * @side_fd: an additional connection to read, -1 = none
 * @pid: its processor time counts as the server's, 0 = none
 * @done: called after each batch; or NULL
 *
 * Without @parse an answer is as long as its request and overwrites it. @side
 * is called when @side_fd is readable, until it returns true: then it is
 * complete.
 */
struct traffic {
	struct stream *streams;
	uint32_t nr_streams;
	uint32_t depth;
	uint32_t (*parse)(struct stream *stream, const char *data, size_t len);
	struct batch *batches;
	uint32_t nr_batches;
	int side_fd;
	bool (*side)(struct traffic *traffic);
	pid_t pid;
	void (*done)(uint64_t took_ns);

	uint64_t *took_ns;	/* of each batch, in the order of their ends */
	uint32_t nr_done;
	uint32_t next;
	int epoll;
};

/* Cost of a run: time, processor time of either side, and a batch's time from
 * sending to answer. @done: how many requests, 0 = all.
 */
struct traffic_cost {
	uint32_t done;
	uint64_t took_ns;
	uint64_t server_ns;
	uint64_t client_ns;
	uint64_t p50_ns;
	uint64_t p99_ns;
	uint64_t p999_ns;	/* 0 = not measured */
	uint64_t max_ns;
};

/* Raises the limit of descriptors to the maximum. */
void traffic_files(void);

/* Returns a connected socket; ends the program if there is none. */
int traffic_connect(const char *path);

/* Returns the process that listens at the other end. */
pid_t traffic_peer(int fd);

/* Sends all batches and waits for all answers. */
struct traffic_cost traffic_run(struct traffic *traffic);

/* Sorts the times of @nr batches, and sets the percentiles. */
void traffic_sort(struct traffic_cost *cost, uint64_t *took_ns, uint32_t nr);

/* Returns the processor time that process @pid has used; 0 = this one. */
uint64_t traffic_cpu_ns(pid_t pid);

#endif /* BENCH_TRAFFIC_H */
