// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver of make bench-clients: libexpiry by orders on standard input, "blocking
 * single", "blocking batch" or "blocking consume". Prints the processor time and the
 * time of an operation, as JSON. The operations are those of client-python.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <expiry/expiry.h>

#define BATCH		512U
#define BATCHES		600U
#define SINGLES		9000U
#define CONSUMED	200000U
#define CREDIT		4096U
#define NSEC_PER_SEC	1000000000ULL
#define TTL		(3600 * NSEC_PER_SEC)

static const uint8_t ops[] = {
	EXPIRY_OP_ARM, EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL,
};
static uint64_t times[SINGLES];

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void need(int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "client-c: %s\n", strerror(-ret));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void single(struct expiry *h)
{
	uint32_t i;

	for (i = 0; i < SINGLES; i++) {
		uint64_t begun = now_ns(CLOCK_MONOTONIC), id = 1 + i / 3;

		if (ops[i % 3] == EXPIRY_OP_ARM)
			need(expiry_arm(h, &id, TTL, 0, 0, EXPIRY_F_RELATIVE));
		else if (ops[i % 3] == EXPIRY_OP_REFRESH)
			need(expiry_refresh(h, id, TTL, EXPIRY_F_RELATIVE, NULL));
		else
			need(expiry_cancel(h, id, NULL));
		times[i] = now_ns(CLOCK_MONOTONIC) - begun;
	}
	qsort(times, SINGLES, sizeof(*times), compare);
}

static void submit(struct expiry *h, struct expiry_record *records, uint32_t count)
{
	uint32_t done, i;
	int ret;

	for (done = 0; done < count; done += ret) {
		ret = expiry_submit(h, records + done, count - done);
		need(ret);
	}
	for (i = 0; i < count; i++)
		need(records[i].status);
}

static void fill(struct expiry_record *records, uint8_t op, uint64_t id, uint64_t ttl)
{
	uint32_t i;

	for (i = 0; i < BATCH; i++)
		records[i] = (struct expiry_record) {
			.op = op,
			.flags = op == EXPIRY_OP_CANCEL ? 0 : EXPIRY_F_RELATIVE,
			.id = id + i,
			.deadline_ns = op == EXPIRY_OP_CANCEL ? 0 : ttl,
		};
}

static void batch(struct expiry *h)
{
	struct expiry_record records[BATCH];
	uint32_t i;

	for (i = 0; i < BATCHES; i++) {
		fill(records, ops[i % 3], 1 + i / 3 * BATCH, TTL);
		submit(h, records, BATCH);
	}
}

static void prepare(struct expiry *h)
{
	struct expiry_record records[BATCH];
	uint32_t id;

	for (id = 1; id <= CONSUMED; id += BATCH) {
		fill(records, EXPIRY_OP_ARM, id, 0);
		submit(h, records, id + BATCH > CONSUMED + 1 ? CONSUMED + 1 - id : BATCH);
	}
}

static void consume(struct expiry *h)
{
	struct expiry_record due[BATCH];
	uint32_t left = CONSUMED;

	while (left) {
		int ret = expiry_receive(h, due, BATCH, 30000);

		need(ret);
		if (!ret)
			need(-1);
		left -= ret;
	}
}

static void measure(const char *path, const char *op)
{
	char address[4096], queue[EXPIRY_NAME_MAX + 1];
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_KEYED,
		.queue = queue,
	};
	uint64_t cpu, begun;
	struct expiry *h;
	uint32_t nr;

	snprintf(address, sizeof(address), "unix:%s", path);
	snprintf(queue, sizeof(queue), "bench-c-%s", op);
	if (!strcmp(op, "consume")) {
		options.flags |= EXPIRY_OPEN_CONSUME;
		options.credit = CREDIT;
	}
	need(expiry_open(&h, address, &options));
	if (!strcmp(op, "consume"))
		prepare(h);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	begun = now_ns(CLOCK_MONOTONIC);
	if (!strcmp(op, "single")) {
		nr = SINGLES;
		single(h);
	} else if (!strcmp(op, "batch")) {
		nr = BATCHES * BATCH;
		batch(h);
	} else {
		nr = CONSUMED;
		consume(h);
	}
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	begun = now_ns(CLOCK_MONOTONIC) - begun;
	expiry_close(h);
	printf("{\"ns\": %.1f, \"took\": %.1f, \"p50\": %llu}\n", (double)cpu / nr,
	       (double)begun / nr,
	       strcmp(op, "single") ? 0ULL : (unsigned long long)times[SINGLES / 2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char style[16], op[16];

	if (argc < 2)
		return 2;
	while (scanf("%15s %15s", style, op) == 2)
		measure(argv[1], op);
	return 0;
}
