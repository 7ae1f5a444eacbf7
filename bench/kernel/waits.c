// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How long a request takes whose pages are in memory, while another thread waits
 * for pages of the same queue. A queue is paged out to a disk that takes five
 * milliseconds for each page. One thread lists all timers by SCAN, which brings
 * them in page by page. Another arms one timer again and again.
 *
 *	waits [--timers N] [--rounds N]
 *
 * In a machine of its own, as root, with the module null_blk for the disk. A line
 * of JSON for each round, of the ARMs in microseconds: first alone, then while SCAN
 * runs.
 */
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/kernel/queue.h"
#include "tests/device/pressure.h"

#define DISK		"/dev/nullb0"
#define DISK_MODULE	"modprobe null_blk nr_devices=1 memory_backed=1 gb=1 irqmode=2 completion_nsec=5000000"
#define DISK_PAGES	(128U << 20 >> 12)
#define READ_AHEAD	"/proc/sys/vm/page-cluster"
#define UNPIN_MS	"/sys/module/expiry/parameters/unpin_ms"
#define BATCH		4096U
#define SAMPLES_MAX	1000000U
#define PAUSE_US	200
#define ALONE		10000U	/* ARMs without a SCAN */

static uint32_t timers = 100000, rounds = 3;
static struct expiry_record batch[BATCH];
static double took_us[SAMPLES_MAX];

struct scan {
	int fd;
	int done;
	uint64_t ns;
};

static void *scan_all(void *arg)
{
	static struct expiry_record rows[BATCH];
	struct expiry_scan request = {
		.addr = (uintptr_t)rows,
		.count = BATCH,
	};
	struct scan *scan = arg;
	uint64_t start = bench_now();

	do {
		if (ioctl(scan->fd, EXPIRY_IOC_SCAN, &request) < 0)
			die("EXPIRY_IOC_SCAN: %m");
	} while (request.cursor);
	scan->ns = bench_now() - start;
	__atomic_store_n(&scan->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void fill(int fd)
{
	uint32_t i, nr, done;

	for (done = 0; done < timers; done += nr) {
		nr = timers - done < BATCH ? timers - done : BATCH;
		for (i = 0; i < nr; i++)
			batch[i] = (struct expiry_record) {
				.op = EXPIRY_OP_ARM,
				.deadline_ns = 1ULL << 62,
				.cookie = done + i,
			};
		queue_submit(fd, batch, nr);
	}
}

static void push_out(int fd)
{
	struct expiry_stat stat;
	int tries;

	for (tries = 0; tries < 100; tries++) {
		group_write("memory.reclaim", "1G");
		queue_stat(fd, &stat);
		if (stat.pages_resident < 64)
			return;
		usleep(100000);
	}
	die("%llu pages cannot be paged out",
	    (unsigned long long)stat.pages_resident);
}

/* Arms a timer and cancels it: its slot and its node are in memory from the first
 * time on. Returns the nanoseconds of the ARM.
 */
static uint64_t arm_one(int fd)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = 1ULL << 62,
	};
	uint64_t start = bench_now(), took;

	queue_submit(fd, &record, 1);
	took = bench_now() - start;
	record.op = EXPIRY_OP_CANCEL;
	queue_submit(fd, &record, 1);
	return took;
}

static uint32_t measure(struct scan *scan, uint32_t most)
{
	uint32_t nr = 0;

	while (!__atomic_load_n(&scan->done, __ATOMIC_ACQUIRE) &&
	       nr < most) {
		took_us[nr++] = arm_one(scan->fd) / 1e3;
		usleep(PAUSE_US);
	}
	return nr;
}

static double quantile(uint32_t nr, double part)
{
	uint32_t i = nr * part;

	return took_us[i < nr ? i : nr - 1];
}

static void report(uint32_t round, const char *beside, double seconds,
		   uint32_t nr)
{
	qsort(took_us, nr, sizeof(*took_us), bench_compare);
	printf("{\"bench\":\"waits\",\"round\":%u,\"timers\":%u,"
	       "\"beside\":\"%s\",\"seconds\":%.2f,\"arms\":%u,"
	       "\"p50\":%.1f,\"p99\":%.1f,\"p9999\":%.1f,\"worst\":%.1f}\n",
	       round, timers, beside, seconds, nr, quantile(nr, 0.5),
	       quantile(nr, 0.99), quantile(nr, 0.9999), took_us[nr - 1]);
	fflush(stdout);
}

static void run(uint32_t round)
{
	struct scan scan = { .fd = queue_new(CLOCK_MONOTONIC, 0) };
	pthread_t thread;
	uint64_t start;
	uint32_t nr;

	fill(scan.fd);
	start = bench_now();
	nr = measure(&scan, ALONE);
	report(round, "nothing", (bench_now() - start) / 1e9, nr);

	push_out(scan.fd);
	arm_one(scan.fd);
	if (pthread_create(&thread, NULL, scan_all, &scan))
		die("no thread");
	nr = measure(&scan, SAMPLES_MAX);
	pthread_join(thread, NULL);
	close(scan.fd);
	if (!nr)
		die("the scan was too fast");
	report(round, "SCAN", scan.ns / 1e9, nr);
}

int main(int argc, char **argv)
{
	static const struct option_row options[] = {
		{ "timers", "N", .number = &timers, .least = 2 * BATCH,
		  .most = 1000000 },
		{ "rounds", "N", .number = &rounds, .least = 1 },
		{ 0 }
	};
	const char *why;
	uint32_t round;

	options_parse(argc, argv, options, "");
	why = group_make();
	if (why)
		die("%s", why);
	if (system(DISK_MODULE " 2>/dev/null") ||
	    swap_make(DISK, DISK_PAGES) || swapon(DISK, 0))
		die("no disk by null_blk");
	/* One page at a time, and only those that are used. */
	if (write_text(READ_AHEAD, "0") || write_text(UNPIN_MS, "50"))
		die("settings: %m");
	if (group_enter())
		die("cannot enter the control group");
	report_machine("waits");
	for (round = 0; round < rounds; round++)
		run(round);
	group_leave();
	swapoff(DISK);
	group_remove();
	return 0;
}
