// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/traffic.h"
#include "bench/daemon/wire.h"

#define CONSUMER_BUFFER	(1024 * 1024)
#define ARM_BATCH	512U
#define ARM_AHEAD	4U	/* batches that are not answered yet */
#define WIRE_CLOCKS_FAR	1000U	/* timers of each of the other clocks */

struct wire_clock wire_clocks[WIRE_CLOCKS] = {
	{ .clock_id = CLOCK_REALTIME },
	{ .clock_id = CLOCK_BOOTTIME },
};

void wire_send(int fd, const struct expiry_record *records, uint32_t nr)
{
	const char *data = (const void *)records;
	size_t left = nr * sizeof(*records);

	while (left) {
		ssize_t n = send(fd, data, left, MSG_NOSIGNAL);

		if (n < 0)
			die("send: %m");
		data += n;
		left -= n;
	}
}

void wire_receive(int fd, struct expiry_record *records, uint32_t nr)
{
	size_t size = nr * sizeof(*records);
	ssize_t n = recv(fd, records, size, MSG_WAITALL);

	if (n < 0 || (size_t)n != size)
		die("the daemon ended a connection");
}

int wire_attach(const char *path, const char *name, uint8_t flags)
{
	return wire_attach_clock(path, name, flags, CLOCK_MONOTONIC);
}

int wire_attach_clock(const char *path, const char *name, uint8_t flags,
		      uint32_t clock_id)
{
	struct expiry_hello hello = {
		.op = EXPIRY_OP_HELLO,
		.flags = flags,
		.version = EXPIRY_WIRE_VERSION,
		.clock_id = clock_id,
	};
	struct expiry_record reply;
	int fd = traffic_connect(path);

	memcpy(hello.name, name, strnlen(name, sizeof(hello.name)));
	wire_send(fd, (const void *)&hello, 1);
	wire_receive(fd, &reply, 1);
	if (reply.status)
		die("HELLO is refused: %d", reply.status);
	return fd;
}

static void make_arms(struct expiry_record *records, uint32_t count,
		      const struct wire_arming *arming, uint32_t first)
{
	static uint64_t random = 1;
	uint32_t i;

	for (i = 0; i < count; i++)
		records[i] = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = arming->from_ns + (arming->every_ns ?
				(first + i) * arming->every_ns :
				bench_below(&random, arming->within_ns)),
		};
}

static void receive_arms(int fd, struct expiry_record *records, uint32_t count,
			 const struct wire_arming *arming, uint32_t first)
{
	uint32_t i;

	wire_receive(fd, records, count);
	for (i = 0; i < count; i++) {
		if (records[i].status)
			die("ARM is refused: %d", records[i].status);
		if (arming->ids)
			arming->ids[first + i] = records[i].id;
	}
}

static uint32_t batch_of(uint32_t left)
{
	return left < ARM_BATCH ? left : ARM_BATCH;
}

void wire_arm(int fd, const struct wire_arming *arming)
{
	static struct expiry_record out[ARM_BATCH], in[ARM_BATCH];
	uint32_t sent = 0, done = 0, count;

	while (done < arming->nr) {
		if (sent < arming->nr && sent - done < ARM_AHEAD * ARM_BATCH) {
			count = batch_of(arming->nr - sent);
			make_arms(out, count, arming, sent);
			wire_send(fd, out, count);
			sent += count;
			continue;
		}
		count = batch_of(arming->nr - done);
		receive_arms(fd, in, count, arming, done);
		done += count;
	}
}

void wire_credit(int fd, uint32_t credit)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_CREDIT,
		.period_ms = credit,
	};

	wire_send(fd, &record, 1);
}

void consumer_attach(struct consumer *consumer, const char *path,
		     const char *name, uint32_t window)
{
	consumer_attach_clock(consumer, path, name, window, CLOCK_MONOTONIC);
}

void consumer_attach_clock(struct consumer *consumer, const char *path,
			   const char *name, uint32_t window,
			   uint32_t clock_id)
{
	*consumer = (struct consumer) {
		.window = window,
		.clock_id = clock_id,
	};
	consumer->buffer = malloc(CONSUMER_BUFFER);
	if (!consumer->buffer)
		die("no memory");
	consumer->fd = wire_attach_clock(path, name, EXPIRY_HELLO_CONSUME,
					 clock_id);
	wire_credit(consumer->fd, window);
}

void wire_clocks_fill(const char *path)
{
	uint32_t i;

	for (i = 0; i < WIRE_CLOCKS; i++) {
		struct wire_clock *clock = &wire_clocks[i];
		char name[16];

		snprintf(name, sizeof(name), "clock-%u", clock->clock_id);
		consumer_attach_clock(&clock->consumer, path, name, 65536,
				      clock->clock_id);
		clock->producer = wire_attach_clock(path, name, 0,
						    clock->clock_id);
		wire_arm(clock->producer, &(struct wire_arming) {
			.nr = WIRE_CLOCKS_FAR,
			.from_ns = bench_clock(clock->clock_id) +
				   3600 * NSEC_PER_SEC,
			.every_ns = NSEC_PER_SEC,
		});
	}
}

void consumer_close(struct consumer *consumer)
{
	close(consumer->fd);
	free(consumer->buffer);
}

uint32_t consumer_take(struct consumer *consumer,
		       void (*each)(const struct expiry_record *record,
				    uint64_t now_ns))
{
	const struct expiry_record *record = (const void *)consumer->buffer;
	ssize_t n = recv(consumer->fd, consumer->buffer + consumer->part,
			 CONSUMER_BUFFER - consumer->part, 0);
	uint64_t now_ns = bench_clock(consumer->clock_id);
	uint32_t i, nr;

	if (n <= 0)
		die("the daemon ended the consumer's connection");
	n += consumer->part;
	nr = n / sizeof(*record);
	for (i = 0; i < nr; i++) {
		if (record[i].op != EXPIRY_OP_EXPIRED ||
		    (record[i].deadline_ns < consumer->latest_ns &&
		     !consumer->any_order))
			die("an expiration is out of order");
		if (record[i].deadline_ns > now_ns)
			die("an expiration is early");
		consumer->latest_ns = record[i].deadline_ns;
		if (each)
			each(&record[i], now_ns);
	}
	consumer->part = n % sizeof(*record);
	memmove(consumer->buffer, record + nr, consumer->part);
	if (nr && !consumer->got)
		consumer->first_ns = now_ns;
	if (nr)
		consumer->last_ns = now_ns;
	consumer->got += nr;
	consumer->owed += nr;
	if (consumer->owed >= consumer->window / 2) {
		wire_credit(consumer->fd, consumer->owed);
		consumer->owed = 0;
	}
	return nr;
}
