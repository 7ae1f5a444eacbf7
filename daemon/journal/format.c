// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/journal/crc32c.h"
#include "daemon/journal/format.h"

#define UNFINISHED	".new"

static const char *const kinds[] = {
	[JOURNAL_SEGMENT] = "journal",
	[JOURNAL_CHECKPOINT] = "checkpoint",
};

void journal_name(char *name, const struct journal_file *file, bool is_new)
{
	snprintf(name, JOURNAL_NAME, "%s-%02x-%016" PRIx64 "%s",
		 kinds[file->kind], file->thread, file->number,
		 is_new ? UNFINISHED : "");
}

bool journal_parse(const char *name, struct journal_file *file)
{
	char again[JOURNAL_NAME];
	unsigned int thread;
	int kind;

	for (kind = JOURNAL_SEGMENT; kind <= JOURNAL_CHECKPOINT; kind++) {
		size_t len = strlen(kinds[kind]);

		if (strncmp(name, kinds[kind], len) ||
		    sscanf(name + len, "-%2x-%16" SCNx64, &thread,
			   &file->number) != 2)
			continue;
		file->kind = kind;
		file->thread = thread;
		/* Only one spelling is a name. */
		journal_name(again, file, false);
		if (!strcmp(name, again))
			return true;
	}
	return false;
}

bool journal_is_unfinished(const char *name)
{
	size_t len = strlen(name), end = strlen(UNFINISHED);
	struct journal_file file;
	char text[JOURNAL_NAME];

	if (len <= end || len >= sizeof(text) ||
	    strcmp(name + len - end, UNFINISHED))
		return false;
	memcpy(text, name, len - end);
	text[len - end] = '\0';
	return journal_parse(text, &file);
}

uint64_t journal_move(uint64_t deadline_ns, int64_t by_ns)
{
	if (deadline_ns == EXPIRY_NEVER || !by_ns)
		return deadline_ns;
	if (by_ns < 0)
		return deadline_ns > -(uint64_t)by_ns ? deadline_ns + by_ns : 0;
	return deadline_ns + by_ns < deadline_ns ? EXPIRY_NEVER :
						   deadline_ns + by_ns;
}

static uint32_t block_crc(const struct journal_block *block,
			  const struct journal_file *file)
{
	uint64_t seed = file->number << 8 | file->kind;
	size_t from = offsetof(struct journal_block, size);

	return crc32c(crc32c(0, &seed, sizeof(seed)),
		      (const char *)block + from, block->size - from);
}

uint32_t journal_seal(struct journal_block *block,
		      const struct journal_file *file, uint32_t align)
{
	uint32_t used = journal_block_size(block->count, 1);

	block->magic = JOURNAL_MAGIC;
	block->size = journal_block_size(block->count, align);
	memset((char *)block + used, 0, block->size - used);
	block->crc = block_crc(block, file);
	return block->size;
}

int journal_check(const struct journal_block *block,
		  const struct journal_file *file, uint64_t room)
{
	if (room < sizeof(*block))
		return -EAGAIN;
	if ((block->magic & JOURNAL_MAGIC_MASK) !=
	    (JOURNAL_MAGIC & JOURNAL_MAGIC_MASK))
		return 0;
	if (block->magic != JOURNAL_MAGIC)
		return -EPROTONOSUPPORT;
	if (block->size % JOURNAL_UNIT || block->size > JOURNAL_BLOCK_MAX ||
	    block->size < sizeof(*block) ||
	    block->count > block->size / sizeof(struct expiry_record) - 1)
		return 0;
	if (room < block->size)
		return -EAGAIN;
	return block_crc(block, file) == block->crc ? (int)block->size : 0;
}
