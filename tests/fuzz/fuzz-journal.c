// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files of a journal: blocks with good checksums and any records, and some that are
 * damaged. A journal is refused with a reason, or its queues are exported, imported and
 * exported again, the same. It can be dumped in either case.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/journal/format.h"
#include "daemon/journal/recovery.h"
#include "fuzz.h"
#include "journals.h"
#include "tools/journal/dump.h"

#define BLOCK_RECORDS	8U

struct subject {
	struct memory_disk disk;
	struct journal_file file;
	uint64_t next_lsn;
	uint64_t offset;
	const uint8_t *data, *end;
};

static uint32_t byte(struct subject *subject)
{
	return subject->data < subject->end ? *subject->data++ : 0;
}

/* Few small numbers, and both ends. */
static uint64_t number(struct subject *subject)
{
	uint32_t n = byte(subject);

	return n < 128 ? n : n * (~0ULL / 255);
}

static void make_make(struct subject *subject, struct expiry_record *record)
{
	static const uint8_t clock_ids[] = { 0, 1, 7, 3 };
	uint32_t n = byte(subject);
	struct journal_make make = {
		.op = JOURNAL_OP_MAKE,
		.mode = n & 128 ? n : EXPIRY_MODE_ALL,
		.clock_id = clock_ids[n & 3],
		.uid = n,
	};

	make.name[0] = "abc/"[n >> 2 & 3];
	memcpy(record, &make, sizeof(make));
}

static void make_record(struct subject *subject, struct expiry_record *record)
{
	static const uint8_t ops[] = {
		EXPIRY_OP_ARM, EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL, EXPIRY_OP_ACK,
		EXPIRY_OP_QUERY, EXPIRY_OP_CLEAR, JOURNAL_OP_SEGMENT,
		JOURNAL_OP_SHIFT, JOURNAL_OP_START, JOURNAL_OP_END,
		JOURNAL_OP_CLOCK, JOURNAL_OP_QUEUE, JOURNAL_OP_DROP,
		JOURNAL_OP_MAKE, JOURNAL_OP_MAKE, EXPIRY_OP_EXPIRED,
	};
	uint32_t op = byte(subject);

	if (ops[op % sizeof(ops)] == JOURNAL_OP_MAKE) {
		make_make(subject, record);
		return;
	}
	*record = (struct expiry_record) {
		.op = ops[op % sizeof(ops)],
		.flags = op >> 4 & 3,
		.period_ms = op >> 6,
		.id = number(subject),
		.deadline_ns = number(subject),
		.cookie = number(subject),
	};
}

static void add_file(struct subject *subject)
{
	uint32_t n = byte(subject);

	subject->file = (struct journal_file) {
		.kind = n & 1 ? JOURNAL_CHECKPOINT : JOURNAL_SEGMENT,
		.number = n >> 1 & 7,
	};
	subject->offset = 0;
	if (subject->file.kind == JOURNAL_CHECKPOINT)
		subject->next_lsn = 1;
}

/* Adds a block: with the number that continues the stream, or any. */
static void add_block(struct subject *subject)
{
	struct {
		struct journal_block head;
		struct expiry_record records[BLOCK_RECORDS];
		char padding[JOURNAL_UNIT];
	} block = { .head.count = 0 };
	const struct disk_ops *ops = subject->disk.disk.ops;
	uint32_t how = byte(subject), size, i;
	char name[JOURNAL_NAME];
	int fd;

	journal_name(name, &subject->file, false);
	fd = ops->open(&subject->disk.disk, name,
		       subject->offset ? DISK_WRITE : DISK_MAKE);
	if (fd < 0)
		return;
	block.head.count = how % (BLOCK_RECORDS + 1);
	block.head.lsn = how & 128 ? byte(subject) :
			 subject->offset ||
				 subject->file.kind == JOURNAL_CHECKPOINT ?
				 subject->next_lsn++ : 0;
	block.head.durable = how & 64 ? byte(subject) : 0;
	for (i = 0; i < block.head.count; i++)
		make_record(subject, &block.records[i]);
	size = journal_seal(&block.head, &subject->file, JOURNAL_UNIT);
	if (how & 32) {
		i = byte(subject) | byte(subject) << 8;
		((char *)&block)[i % size] ^= 1 + byte(subject) % 255;
	}
	ops->write(&subject->disk.disk, fd, &block, size, subject->offset);
	subject->offset += size;
}

static void dump(struct memory_disk *disk)
{
	struct recovery recovery;
	FILE *real = stdout;
	char *text = NULL;
	size_t len;

	stdout = open_memstream(&text, &len);
	assert_non_null(stdout);
	if (!recovery_open(&recovery, &disk->disk, 0, true))
		recovery_replay(&recovery, dump_record, NULL);
	recovery_close(&recovery);
	fclose(stdout);
	stdout = real;
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct subject *subject = calloc(1, sizeof(*subject));

	fuzz_abort_on_failure();
	assert_non_null(subject);
	subject->data = data;
	subject->end = data + size;
	subject->next_lsn = 1;
	memory_disk_init(&subject->disk);
	add_file(subject);
	while (subject->data < subject->end)
		if (byte(subject) % 8)
			add_block(subject);
		else
			add_file(subject);
	journals_check(&subject->disk);
	dump(&subject->disk);
	memory_disk_free(&subject->disk);
	free(subject);
	return 0;
}
