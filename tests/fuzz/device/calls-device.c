// SPDX-License-Identifier: LGPL-2.1-or-later
/* The device's own commands and reads, and other operations on its file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "calls.h"
#include "oracle.h"
#include "report.h"
#include "values.h"

#define IOVECS		3

/* Only this thread writes to its memory and arms timers now. */
static bool is_alone(const struct worker *worker)
{
	return state.alone && !worker->flying && !state.rings_closed;
}

void call_submit(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	static struct expiry_record asked[REGION / RECORD];
	struct place place = place_of(worker->number, call->place);
	struct expiry_record *records = (void *)place.mine;
	struct expiry_batch batch = {
		.addr = (uintptr_t)place.user,
		.count = count_of(call->count),
	};
	uint32_t count = batch.count, i;
	bool alone = is_alone(worker);
	int ret;

	if (count > place.room / RECORD)
		count = place.room / RECORD;
	if (records)
		records_fill(records, count, queue, call);
	else
		count = 0;
	if (alone)
		memcpy(asked, records, count * RECORD);
	if (call_how(call) == 15)
		batch.flags = 1U << call->seed % 32;
	ret = ioctl(fd, EXPIRY_IOC_SUBMIT, &batch);
	oracle_call(RULE_SUBMIT, ret);
	if (ret < 0 || !records)
		return;
	if (ret > (int)count) {
		finding("SUBMIT of %u records did %d", count, ret);
		return;
	}
	for (i = 0; i < (uint32_t)ret && i < IDS; i++)
		if (records[i].op == EXPIRY_OP_ARM && !records[i].status)
			id_remember(queue, records[i].id);
	if (!alone || state.memory_touched[0])
		return;
	oracle_replies(asked, records, ret);
	if (!state.faults && ret < (int)count &&
	    (uintptr_t)place.user + count * RECORD <=
	    (uintptr_t)state.user[worker->number] + READ_ONLY_PAGE * PAGE)
		finding("SUBMIT ends early, with nothing in its way");
}

/* A struct expiry_batch at any address, with any content. */
void call_submit_raw(struct worker *worker, const struct call *call,
		     unsigned int queue, int fd)
{
	struct place place = place_of(worker->number, call->place);
	struct expiry_batch batch = {
		.addr = (uintptr_t)place_of(worker->number, call->what).user,
		.count = count_of(call->count),
		.flags = call->more,
	};

	(void)queue;
	if (place.mine && place.room >= sizeof(batch))
		memcpy(place.mine, &batch, sizeof(batch));
	oracle_call(RULE_SUBMIT, ioctl(fd, EXPIRY_IOC_SUBMIT, place.user));
}

static void read_done(struct worker *worker, unsigned int queue,
		      const struct place *place, ssize_t ret)
{
	oracle_call(RULE_READ, ret);
	/* Memory that was mapped anew is not the fuzzer's own any more. */
	if (ret <= 0 || !place->mine || !is_alone(worker) ||
	    state.memory_touched[0])
		return;
	if (ret % RECORD)
		finding("a read of %zd bytes", ret);
	oracle_read(queue, (void *)place->mine, ret / RECORD, true);
}

void call_read(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	struct place place = place_of(worker->number, call->place);
	size_t size = size_of(call->count);

	if (place.mine && size > place.room)
		size = call_how(call) & 1 ? size : place.room;
	read_done(worker, queue, &place, read(fd, place.user, size));
}

void call_readv(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	struct iovec iov[IOVECS];
	uint32_t chance = call->seed;
	ssize_t ret;
	int i;

	(void)queue;
	for (i = 0; i < IOVECS; i++) {
		iov[i].iov_base = place_of(worker->number, call->place + i *
					   call->more).user;
		iov[i].iov_len = call->what & 1 << i ? draw(&chance) % 100 :
			size_of(call->count + i) % REGION;
	}
	ret = preadv2(fd, iov, 1 + call_how(call) % IOVECS,
		      call->what & 0x40 ? 0 : -1,
		      call->what & 0x80 ? RWF_NOWAIT : 0);
	if (ret < 0 && errno != ESPIPE)
		oracle_errno(RULE_READ, errno);
	if (ret > 0 && ret % RECORD)
		finding("a readv of %zd bytes", ret);
}

void call_pread(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	(void)queue;
	oracle_call(RULE_PREAD,
		   pread(fd, place_of(worker->number, call->place).user,
			 size_of(call->count), (int8_t)call->what));
}

void call_write(struct worker *worker, const struct call *call,
		unsigned int queue, int fd)
{
	(void)queue;
	oracle_call(RULE_WRITE, write(fd, state.user[worker->number],
				     size_of(call->count) % REGION));
}

void call_stat(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	struct place place = place_of(worker->number, call->place);

	(void)queue;
	oracle_call(RULE_STAT, ioctl(fd, EXPIRY_IOC_STAT, place.user));
}

/* From the start, or from any place, until the end or not. */
void call_scan(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	struct place place = place_of(worker->number, call->place);
	struct expiry_scan scan = {
		.addr = (uintptr_t)place.user,
		.count = count_of(call->count),
		.flags = call_how(call) == 15 ? call->seed : 0,
	};
	unsigned int steps = 1 + call->more % 8;
	int ret;

	(void)queue;
	if (call->what & 1)
		scan.cursor = call->what & 2 ? (uint64_t)call->seed << (call->what >> 2) :
			call->seed;
	do {
		ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);
		oracle_call(RULE_SCAN, ret);
	} while (ret >= 0 && scan.cursor && --steps);
}

void call_rewind(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	(void)worker;
	(void)queue;
	oracle_call(RULE_REWIND, ioctl(fd, EXPIRY_IOC_REWIND, (long)call->what));
}

void call_config(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	struct place place = place_of(worker->number, call->place);
	struct expiry_config config = {
		.clock_id = clock_of(call->what),
		.mode = call->what >> 4 & EXPIRY_MODE_ALL,
		.slack_ns = slack_of(call->when),
		.limit = limit_of(call->count),
	};
	int ret;

	if (call_how(call) == 14)
		config.mode = call->seed;
	if (call_how(call) == 15)
		config.reserved = call->seed;
	if (call_how(call) == 13)
		config.flags = call->seed;
	if (!place.mine || place.room < sizeof(config)) {
		oracle_call(RULE_CONFIG, ioctl(fd, EXPIRY_IOC_CONFIG, place.user));
		return;
	}
	memcpy(place.mine, &config, sizeof(config));
	ret = ioctl(fd, EXPIRY_IOC_CONFIG, place.user);
	oracle_call(RULE_CONFIG, ret);
	if (!ret) {
		state.mode[queue] = config.mode;
		state.clock_id[queue] = config.clock_id;
	}
}

void call_layout(struct worker *worker, const struct call *call,
		 unsigned int queue, int fd)
{
	static const unsigned long layouts[] = { 1, 2, 3, 2, 0, 4, 3, ~0UL };

	(void)worker;
	(void)queue;
	oracle_call(RULE_LAYOUT,
		   ioctl(fd, EXPIRY_IOC_LAYOUT,
			 layouts[call->what % ARRAY_SIZE(layouts)]));
}

void call_other_ioctl(struct worker *worker, const struct call *call,
		      unsigned int queue, int fd)
{
	unsigned long cmd;

	(void)queue;
	switch (call_how(call) % 4) {
	case 0:	/* a command that is not there */
		cmd = _IO(EXPIRY_IOC_MAGIC, 8 + call->what % 200);
		break;
	case 1:	/* a struct that ends too early, or the wrong direction */
		cmd = _IOC(call->more & 3, EXPIRY_IOC_MAGIC, 1 + call->what % 7,
			   1 + call->count % 7);
		break;
	case 2:	/* with another direction */
		cmd = EXPIRY_IOC_STAT ^ (1U + call->more % 3) << 30;
		break;
	default:	/* another device's */
		cmd = 0x54000000U | call->more << 8 | call->what;
	}
	oracle_call(RULE_OTHER_IOCTL,
		   ioctl(fd, cmd, place_of(worker->number, call->place).user));
}

void call_mmap(struct worker *worker, const struct call *call,
	       unsigned int queue, int fd)
{
	void *address = mmap(NULL, PAGE * (call->count & 7),
			     call->what & 7, call->more & 1 ? MAP_SHARED : MAP_PRIVATE,
			     fd, 0);

	(void)worker;
	(void)queue;
	if (address == MAP_FAILED) {
		if (errno != EACCES)
			oracle_errno(RULE_MMAP, errno);
		return;
	}
	munmap(address, PAGE * (call->count & 7));
	if (!state.closes)
		finding("the device can be mapped");
}
