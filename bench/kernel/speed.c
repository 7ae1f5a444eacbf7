// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of timers in the kernel: one call for many against a call for each,
 * pageable memory against plain, one queue against a timerfd or a POSIX timer
 * for each timer.
 *
 *	speed [--peers N] [--hold N] [--blocks N] [--rounds N]
 *
 * --peers: timers of each sort beside which others come and go. --hold: timers
 * of a queue whose memory is pageable or not. --blocks: how many times 512
 * requests of a kind a round takes, and four times as many of --hold. As root,
 * with the module loaded. A line of JSON for each figure of a round; all are
 * interleaved in each round.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/kernel/peers.h"
#include "bench/kernel/queue.h"

#define FAR_NS		(3600 * NSEC_PER_SEC)
#define FILES_OWN	64
#define HORIZON_NS	1000000000ULL

static const struct peer *const peers[] = {
	&peer_ring, &peer_ioctl, &peer_single, &peer_timerfd, &peer_posix,
};

#define PEERS	(sizeof(peers) / sizeof(peers[0]))

static uint32_t nr_peers = 50000, nr_hold = 1000000, blocks = 8;
static uint32_t rounds = 9;
static uint64_t random_state = 1;

static void far(uint64_t *in_ns, uint32_t nr)
{
	while (nr--)
		*in_ns++ = FAR_NS + bench_below(&random_state, FAR_NS);
}

/* ------------------------------------------------------------------------
 * Memory of the kernel
 */

struct memory {
	long long slab;		/* KiB, likewise @shmem, @free */
	long long shmem;
	long long free;
};

static long long meminfo(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "r");
	size_t length = strlen(name);
	char line[128];
	long long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			kib = strtoll(line + length + 1, NULL, 10);
	if (!file || kib < 0)
		die("/proc/meminfo: no %s", name);
	fclose(file);
	return kib;
}

static struct memory memory_now(void)
{
	return (struct memory) {
		.slab = meminfo("Slab"),
		.shmem = meminfo("Shmem"),
		.free = meminfo("MemFree"),
	};
}

static double each(long long before_kib, long long after_kib, uint32_t nr)
{
	return (after_kib - before_kib) * 1024.0 / nr;
}

static void fill(const struct peer *peer)
{
	uint32_t timers[PEER_BATCH], i, n, done;
	struct memory before, after;
	uint64_t in_ns[PEER_BATCH];

	peer->init(peer->own, nr_peers);
	before = memory_now();
	for (done = 0; done < nr_peers; done += n) {
		n = nr_peers - done < PEER_BATCH ? nr_peers - done : PEER_BATCH;
		for (i = 0; i < n; i++)
			timers[i] = done + i;
		far(in_ns, n);
		peer->arm(peer->own, timers, n, in_ns);
	}
	after = memory_now();
	printf("{\"bench\":\"memory\",\"subject\":\"%s\",\"timers\":%u,"
	       "\"slab\":%.1f,\"shmem\":%.1f,\"free\":%.1f}\n",
	       peer->name, nr_peers,
	       each(before.slab, after.slab, nr_peers),
	       each(before.shmem, after.shmem, nr_peers),
	       each(after.free, before.free, nr_peers));
	fflush(stdout);
}

/* ------------------------------------------------------------------------
 * Requests
 */

static void report(const char *bench, const char *subject, const char *op,
		   uint32_t timers, unsigned int round, uint64_t ns,
		   uint64_t nr)
{
	printf("{\"bench\":\"%s\",\"subject\":\"%s\",\"op\":\"%s\","
	       "\"timers\":%u,\"round\":%u,\"ns\":%.1f}\n",
	       bench, subject, op, timers, round, (double)ns / nr);
	fflush(stdout);
}

/* Chooses different ones, evenly from all. */
static void choose(uint32_t *timers)
{
	uint32_t step = nr_peers / PEER_BATCH, i;

	for (i = 0; i < PEER_BATCH; i++)
		timers[i] = i * step + bench_below(&random_state, step);
}

static void requests(const struct peer *peer, unsigned int round)
{
	uint64_t arm_ns = 0, refresh_ns = 0, cancel_ns = 0;
	uint64_t begun_ns, in_ns[PEER_BATCH];
	uint32_t timers[PEER_BATCH], i;
	uint64_t nr = (uint64_t)blocks * PEER_BATCH;

	for (i = 0; i < blocks; i++) {
		choose(timers);
		far(in_ns, PEER_BATCH);
		begun_ns = bench_now();
		peer->refresh(peer->own, timers, PEER_BATCH, in_ns);
		refresh_ns += bench_now() - begun_ns;
		begun_ns = bench_now();
		peer->cancel(peer->own, timers, PEER_BATCH);
		cancel_ns += bench_now() - begun_ns;
		far(in_ns, PEER_BATCH);
		begun_ns = bench_now();
		peer->arm(peer->own, timers, PEER_BATCH, in_ns);
		arm_ns += bench_now() - begun_ns;
	}
	report("requests", peer->name, "arm", nr_peers, round, arm_ns, nr);
	report("requests", peer->name, "refresh", nr_peers, round, refresh_ns,
	       nr);
	report("requests", peer->name, "cancel", nr_peers, round, cancel_ns,
	       nr);
}

/* Measures a call that does nothing: the device has no such command. */
static void nothing(int fd, unsigned int round)
{
	uint64_t begun_ns = bench_now();
	uint32_t i, nr = blocks * PEER_BATCH;

	for (i = 0; i < nr; i++)
		if (!ioctl(fd, 0, NULL))
			die("the device has a command 0");
	report("requests", "an ioctl that does nothing", "none", 0, round,
	       bench_now() - begun_ns, nr);
}

static void measure_requests(void)
{
	int fd = queue_new(CLOCK_MONOTONIC, 0);
	unsigned int round, i;

	for (i = 0; i < PEERS; i++)
		fill(peers[i]);
	for (round = 0; round < rounds; round++) {
		nothing(fd, round);
		for (i = 0; i < PEERS; i++)
			requests(peers[i], round);
	}
}

/* ------------------------------------------------------------------------
 * Pageable memory or plain
 */

static const char *const pages[] = { "plain", "pageable" };

static void hold(struct hold *queue, const char *name, unsigned int round)
{
	uint64_t nr = 4ULL * blocks * PEER_BATCH, read_ns = 0, arm_ns = 0;

	hold_run(queue, nr, &read_ns, &arm_ns);
	report("hold", name, "expire", nr_hold, round, read_ns, nr);
	report("hold", name, "arm", nr_hold, round, arm_ns, nr);
	report("hold", name, "both", nr_hold, round, read_ns + arm_ns, nr);
}

/*
 * Measures each after a warm-up of the same length. No turn is so long that the
 * other's pages are unpinned meanwhile.
 */
static void measure_hold(void)
{
	struct hold queues[2];
	uint64_t unused = 0;
	unsigned int round, i;

	for (i = 0; i < 2; i++) {
		queue_pageable(i);
		queues[i] = (struct hold) {
			.fd = queue_new(CLOCK_REALTIME, 0),
			.random = 1,
			.horizon_ns = HORIZON_NS,
		};
		hold_fill(&queues[i], nr_hold);
	}
	for (i = 0; i < 2; i++)
		hold_run(&queues[i], nr_hold, &unused, &unused);
	for (round = 0; round < rounds; round++)
		for (i = 0; i < 2; i++)
			hold(&queues[(round + i) & 1], pages[(round + i) & 1],
			     round);
}

/* ------------------------------------------------------------------------ */

static void raise_limit(int resource, rlim_t most)
{
	struct rlimit limit = { .rlim_cur = most, .rlim_max = most };

	if (setrlimit(resource, &limit))
		die("limit %d of %llu: %m", resource, (unsigned long long)most);
}

int main(int argc, char **argv)
{
	static const struct option_row options[] = {
		{ "peers", "N", .number = &nr_peers, .least = PEER_BATCH },
		{ "hold", "N", .number = &nr_hold },
		{ "blocks", "N", .number = &blocks },
		{ "rounds", "N", .number = &rounds },
		{ 0 }
	};

	options_parse(argc, argv, options, "");
	raise_limit(RLIMIT_NOFILE, nr_peers + FILES_OWN);
	raise_limit(RLIMIT_SIGPENDING, nr_peers + FILES_OWN);
	report_machine("speed");
	measure_requests();
	measure_hold();
	return 0;
}
