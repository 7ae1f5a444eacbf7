// SPDX-License-Identifier: LGPL-2.1-or-later
/* Words, numbers and bytes of the agent's lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

const char *word_get(const struct command *command, const char *key)
{
	size_t len = strlen(key);
	const char *word = command->rest;

	/* split() has ended each word with a NUL, the last with two. */
	for (; word && *word; word += strlen(word) + 1) {
		if (strncmp(word, key, len) || word[len] != '=')
			continue;
		word += len + 1;
		return strcmp(word, "-") ? word : "";
	}
	return NULL;
}

uint64_t word_number(const struct command *command, const char *key,
		     uint64_t preset)
{
	const char *value = word_get(command, key);

	return value ? strtoull(value, NULL, 10) : preset;
}

bool word_lists(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list && *list) {
		if (!strncmp(list, word, len) && (!list[len] || list[len] == ','))
			return true;
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	return false;
}

size_t hex_read(const char *text, void *bytes, size_t max)
{
	unsigned char *to = bytes;
	unsigned int byte;
	size_t nr = 0;

	while (nr < max && sscanf(text + 2 * nr, "%2x", &byte) == 1)
		to[nr++] = byte;
	return nr;
}

void hex_print(const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	size_t i;

	for (i = 0; i < size; i++)
		printf("%02x", from[i]);
}

void print_error_name(int error)
{
	const char *name = strerrorname_np(error < 0 ? -error : error);

	if (name)
		printf("%s", name);
	else
		printf("%d", error);
}

void print_error(int error)
{
	printf("error ");
	print_error_name(error);
}

void print_timer(const char *word, const struct expiry_record *record)
{
	printf("%s id=%" PRIu64 " deadline=%" PRIu64 " cookie=%" PRIu64
	       " period=%u redelivered=%d late=%d\n", word,
	       (uint64_t)record->id, (uint64_t)record->deadline_ns,
	       (uint64_t)record->cookie, record->period_ms,
	       !!(record->flags & EXPIRY_F_REDELIVERED),
	       !!(record->flags & EXPIRY_F_LATE));
}
