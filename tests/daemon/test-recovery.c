// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where a checkpoint began exactly at a header that moves deadlines: of a start that went
 * on with the segment. tests/journal/crash.c comes there too seldom.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/journal/recovery.h"
#include "tests/journal/simulated-disk.h"

#define RECORDS	5U	/* of a block, at most */
#define QUEUE	7U
#define SHIFT_NS	1000

/* Deadlines that are found, as the journal has them, and by how much they move. */
static struct {
	uint64_t deadline_ns[4];
	int64_t by_ns[4];
	uint32_t nr;
} found;

static struct sim_disk disk;

static int visit(void *data, const struct recovery_place *place,
		 const struct expiry_record *record)
{
	(void)data;
	if (record->op != EXPIRY_OP_ARM && record->op != EXPIRY_OP_QUERY)
		return 0;
	assert_int_equal(place->queue, QUEUE);
	found.deadline_ns[found.nr] = record->deadline_ns;
	found.by_ns[found.nr++] = place->shift_ns[1];
	return 0;
}

static struct expiry_record timer(uint8_t op, uint64_t deadline_ns)
{
	return (struct expiry_record) {
		.op = op, .id = 1, .deadline_ns = deadline_ns,
	};
}

/* Writes one block at @offset. Returns where the next one begins. */
static uint64_t put(const struct journal_file *file, uint64_t offset,
		    uint64_t lsn, const void *const *records, uint32_t count)
{
	_Alignas(SECTOR) char memory[SECTOR];
	struct journal_block *block = (void *)memory;
	char name[JOURNAL_NAME];
	uint32_t i;
	int fd;

	assert_in_range(count, 1, RECORDS);
	memset(memory, 0, sizeof(memory));
	block->count = count;
	block->lsn = lsn;
	for (i = 0; i < count; i++)
		memcpy(journal_records(block) + i, records[i],
		       sizeof(struct expiry_record));
	assert_int_equal(journal_seal(block, file, SECTOR), SECTOR);
	journal_name(name, file, false);
	fd = disk.disk.ops->open(&disk.disk, name,
				 offset ? DISK_WRITE : DISK_MAKE);
	assert_true(fd >= 0);
	assert_int_equal(disk.disk.ops->write(&disk.disk, fd, memory, SECTOR,
					      offset), 0);
	disk.disk.ops->close(&disk.disk, fd);
	return offset + SECTOR;
}

/* Writes a segment's header of start number @boot of the machine, at @ns. Returns as
 * put().
 */
static uint64_t put_header(const struct journal_file *file, uint64_t offset,
			   uint8_t boot, uint64_t ns, int64_t by_ns)
{
	struct journal_segment segment = {
		.op = JOURNAL_OP_SEGMENT, .align = SECTOR,
		.number = file->number, .boot_id = { boot },
	};
	struct journal_clock clock = {
		.op = JOURNAL_OP_CLOCK, .ns = { ns, ns, ns },
	};
	struct journal_shift shift = {
		.op = JOURNAL_OP_SHIFT, .by_ns = { by_ns, by_ns },
	};
	const void *records[] = { &segment, &clock, &shift };

	return put(file, offset, 0, records, by_ns ? 3 : 2);
}

/* Writes a journal whose checkpoint began before or behind the second header, and reads
 * it.
 */
static void read_journal(struct recovery *recovery, bool before)
{
	const struct journal_file segment = { JOURNAL_SEGMENT, 0, 1 };
	const struct journal_file checkpoint = { JOURNAL_CHECKPOINT, 0, 2 };
	const struct expiry_record queue = {
		.op = JOURNAL_OP_QUEUE, .id = QUEUE,
	};
	const struct expiry_record first = timer(EXPIRY_OP_ARM, 10000);
	const struct expiry_record row = timer(EXPIRY_OP_QUERY,
					       before ? 10000 : 11000);
	const struct expiry_record later = timer(EXPIRY_OP_ARM, 30000);
	const struct journal_clock clock = {
		.op = JOURNAL_OP_CLOCK, .ns = { 5000, 5000, 5000 },
	};
	struct journal_segment about = {
		.op = JOURNAL_OP_SEGMENT, .boot_id = { before ? 1 : 2 },
	};
	struct journal_mark mark = {
		.op = JOURNAL_OP_START, .lsn = 2, .number = 1,
	}, end = { .op = JOURNAL_OP_END, .lsn = 2, .number = 1, .count = 2 };
	const void *timers[] = { &queue, &first };
	const void *more[] = { &queue, &later };
	const void *starts[] = { &mark, &about, &clock };
	const void *rows[] = { &queue, &row, &end };
	uint64_t offset;

	sim_disk_init(&disk);
	memset(&found, 0, sizeof(found));
	offset = put_header(&segment, 0, 1, 100, 0);
	offset = put(&segment, offset, 1, timers, 2);
	if (before)
		mark.count = offset;
	offset = put_header(&segment, offset, 2, 200, SHIFT_NS);
	if (!before)
		mark.count = offset;
	put(&segment, offset, 2, more, 2);
	offset = put(&checkpoint, 0, 1, starts, 3);
	put(&checkpoint, offset, 2, rows, 3);

	assert_int_equal(recovery_open(recovery, &disk.disk, 0, false), 0);
	assert_int_equal(recovery_replay(recovery, visit, NULL), 0);
	assert_int_equal(found.nr, 2);
	assert_int_equal(found.deadline_ns[0], row.deadline_ns);
	assert_int_equal(found.deadline_ns[1], later.deadline_ns);
	assert_int_equal(found.by_ns[1], 0);
}

static void test_begins_at_the_header(void **state)
{
	struct recovery recovery;

	(void)state;
	read_journal(&recovery, true);
	assert_int_equal(found.by_ns[0], SHIFT_NS);
	/* The clocks have begun anew. */
	assert_true(recovery.has_clock);
	assert_int_equal(recovery.clock.ns[2], 200);
	assert_int_equal(recovery.boot_id[0], 2);
	recovery_close(&recovery);
	sim_disk_deinit(&disk);
}

static void test_begins_behind_the_header(void **state)
{
	struct recovery recovery;

	(void)state;
	read_journal(&recovery, false);
	assert_int_equal(found.by_ns[0], 0);
	assert_true(recovery.has_clock);
	assert_int_equal(recovery.clock.ns[2], 5000);
	assert_int_equal(recovery.boot_id[0], 2);
	recovery_close(&recovery);
	sim_disk_deinit(&disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begins_at_the_header),
		cmocka_unit_test(test_begins_behind_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
