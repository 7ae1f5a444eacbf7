// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: the disk itself. --socket is a file that it makes in the folder to be
 * measured. A request is 32 bytes; a batch is one write of as much, with a head and
 * filled up to 4096 bytes, behind the one before in a zeroed file, and an
 * fdatasync(): what a commit asks of the disk, without any program around it.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/driver.h"

#define FILE_BYTES	(64ULL << 20)
#define UNIT		4096U
#define RECORD		32U
#define TIMES_MAX	1000000U

static int file;
static char *memory;
static uint64_t offset;
static uint64_t *times_ns;

/* Makes the file. Where the file system refuses O_DIRECT it is written without. */
static void fill(const char *path, uint32_t unused)
{
	uint64_t done;

	(void)unused;
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
	if (file < 0)
		file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		die("%s: %m", path);
	memory = driver_map(FILE_BYTES);
	times_ns = driver_map(TIMES_MAX * sizeof(*times_ns));
	for (done = 0; done < FILE_BYTES; done += 1U << 20)
		if (pwrite(file, memory, 1U << 20, done) != 1 << 20)
			die("%s: %m", path);
	if (fdatasync(file) < 0)
		die("%s: %m", path);
}

static void commit(uint32_t size)
{
	if (offset + size > FILE_BYTES)
		offset = 0;
	if (pwrite(file, memory, size, offset) != (ssize_t)size ||
	    fdatasync(file) < 0)
		die("a commit failed: %m");
	offset += size;
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	uint32_t size = ((order->batch + 1) * RECORD + UNIT - 1) & ~(UNIT - 1);
	uint32_t i, nr = order->requests / order->batch;
	uint64_t began_ns = bench_now(), last_ns = began_ns, now_ns;

	if (strcmp(order->op, "flush") || !nr || nr > TIMES_MAX)
		return false;
	cost->client_ns = traffic_cpu_ns(0);
	for (i = 0; i < nr; i++) {
		memset(memory, i, size);
		commit(size);
		now_ns = bench_now();
		times_ns[i] = now_ns - last_ns;
		last_ns = now_ns;
	}
	cost->client_ns = traffic_cpu_ns(0) - cost->client_ns;
	cost->took_ns = last_ns - began_ns;
	traffic_sort(cost, times_ns, nr);
	return true;
}

int main(int argc, char **argv)
{
	static struct driver driver = {
		.name = "disk",
		.fill = fill,
		.measure = measure,
	};

	return driver_main(&driver, argc, argv);
}
