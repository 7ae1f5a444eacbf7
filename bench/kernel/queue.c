// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/kernel/queue.h"
#include "tests/device/uring.h"

#define PAGEABLE	"/sys/module/expiry/parameters/pageable"
#define BATCH		256U
#define RING_ENTRIES	8U

int queue_new(clockid_t clock, unsigned long layout)
{
	struct expiry_config config = { .clock_id = clock };
	int fd = open("/dev/expiry", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		die("/dev/expiry: %m");
	if (layout && ioctl(fd, EXPIRY_IOC_LAYOUT, layout))
		die("layout %#lx: %m", layout);
	if (ioctl(fd, EXPIRY_IOC_CONFIG, &config))
		die("EXPIRY_IOC_CONFIG: %m");
	return fd;
}

void queue_pageable(bool pageable)
{
	int fd = open(PAGEABLE, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, pageable ? "1" : "0", 1) != 1)
		die(PAGEABLE ": %m");
	close(fd);
}

void queue_stat(int fd, struct expiry_stat *stat)
{
	if (ioctl(fd, EXPIRY_IOC_STAT, stat))
		die("EXPIRY_IOC_STAT: %m");
}

void queue_check(const struct expiry_record *records, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (records[i].status)
			die("op %u: %s", records[i].op,
			    strerror(-records[i].status));
}

void queue_submit(int fd, struct expiry_record *records, uint32_t nr)
{
	struct expiry_batch batch = {
		.addr = (uintptr_t)records,
		.count = nr,
	};

	if (ioctl(fd, EXPIRY_IOC_SUBMIT, &batch) != (int)nr)
		die("EXPIRY_IOC_SUBMIT: %m");
	queue_check(records, nr);
}

void queue_submit_single(int fd, struct expiry_record *records, uint32_t nr)
{
	while (nr--)
		queue_submit(fd, records++, 1);
}

void queue_ring(struct uring *ring)
{
	if (uring_init(ring, RING_ENTRIES))
		die("io_uring_setup: %m");
}

void queue_submit_ring(struct uring *ring, int fd,
		       struct expiry_record *records, uint32_t nr)
{
	struct io_uring_sqe *sqe = uring_sqe(ring, IORING_OP_URING_CMD, fd, 1);
	struct expiry_batch *batch = (void *)sqe->cmd;
	struct io_uring_cqe cqe;

	sqe->cmd_op = EXPIRY_IOC_SUBMIT;
	batch->addr = (uintptr_t)records;
	batch->count = nr;
	if (uring_submit(ring) != 1 || uring_wait(ring, &cqe, -1) ||
	    cqe.res != (int)nr)
		die("uring_cmd: %d", cqe.res);
	queue_check(records, nr);
}

void queue_read(int fd, struct expiry_record *records, uint32_t nr)
{
	size_t left = nr * sizeof(*records);
	char *to = (char *)records;
	uint64_t last = 0;
	ssize_t ret;
	uint32_t i;

	while (left) {
		ret = read(fd, to, left);
		/* Its pages are being brought in. */
		if (ret < 0 && errno == EAGAIN)
			continue;
		if (ret <= 0)
			die("read: %m");
		to += ret;
		left -= ret;
	}
	for (i = 0; i < nr; i++) {
		if (records[i].op != EXPIRY_OP_EXPIRED ||
		    records[i].deadline_ns < last)
			die("an expiration out of order");
		last = records[i].deadline_ns;
	}
}

/* Returns how far ahead of the present a timer is set. */
static uint64_t ahead(struct hold *hold)
{
	return hold->in_order ? hold->horizon_ns :
	       1 + bench_below(&hold->random, hold->horizon_ns);
}

static void make_arm(struct expiry_record *record, uint64_t deadline_ns)
{
	memset(record, 0, sizeof(*record));
	record->op = EXPIRY_OP_ARM;
	record->deadline_ns = deadline_ns;
	record->cookie = deadline_ns;
}

void hold_fill(struct hold *hold, uint32_t nr)
{
	struct expiry_record records[BATCH];
	uint32_t i, n, done;

	for (done = 0; done < nr; done += n) {
		n = nr - done < BATCH ? nr - done : BATCH;
		for (i = 0; i < n; i++)
			make_arm(&records[i], hold->in_order ?
				 (done + i) * hold->horizon_ns / nr + 1 :
				 ahead(hold));
		queue_submit(hold->fd, records, n);
	}
}

void hold_run(struct hold *hold, uint64_t nr, uint64_t *read_ns,
	      uint64_t *arm_ns)
{
	struct expiry_record records[BATCH];
	uint64_t begun_ns, read_done_ns;
	uint32_t i;

	for (; nr; nr -= nr < BATCH ? nr : BATCH) {
		begun_ns = bench_now();
		queue_read(hold->fd, records, BATCH);
		read_done_ns = bench_now();
		*read_ns += read_done_ns - begun_ns;
		for (i = 0; i < BATCH; i++)
			make_arm(&records[i],
				 records[i].deadline_ns + ahead(hold));
		begun_ns = bench_now();
		queue_submit(hold->fd, records, BATCH);
		*arm_ns += bench_now() - begun_ns;
	}
}

/* Returns User Mode Linux, or QEMU's name of its processor. */
static const char *machine(void)
{
	static char line[256];
	FILE *file = fopen("/proc/cpuinfo", "r");
	const char *found = "unknown";

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "model name", 10))
			continue;
		line[strcspn(line, "\n")] = '\0';
		found = strchr(line, ':') + 2;
		if (!strcmp(found, "UML"))
			found = "User Mode Linux, native";
		else if (strstr(found, "TCG"))
			found = "QEMU, emulated";
		break;
	}
	if (file)
		fclose(file);
	return found;
}

void report_machine(const char *bench)
{
	struct utsname name;

	if (uname(&name))
		die("uname: %m");
	printf("{\"bench\":\"%s\",\"engine\":\"kernel\",\"release\":\"%s\","
	       "\"machine\":\"%s\",\"processors\":%ld}\n",
	       bench, name.release, machine(), sysconf(_SC_NPROCESSORS_ONLN));
	fflush(stdout);
}
