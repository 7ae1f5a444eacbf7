// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <expiry/wire.h>

#include "core/siphash.h"
#include "daemon/util/name.h"

bool name_is_valid(const char *name)
{
	static const char allowed[] = EXPIRY_NAME_CHARACTERS;
	size_t len = strnlen(name, EXPIRY_NAME_MAX), i;

	for (i = 0; i < len; i++)
		if (!memchr(allowed, name[i], sizeof(allowed) - 1))
			return false;
	for (; i < EXPIRY_NAME_MAX; i++)
		if (name[i])
			return false;
	return true;
}

int name_key_init(struct name_key *key)
{
	return getrandom(key->words, sizeof(key->words), 0) < 0 ? -errno : 0;
}

/* Clients choose names, so the function is a keyed one: whatever the names, without the
 * key two of them meet by chance only.
 */
uint32_t name_hash(const struct name_key *key, const char *name)
{
	u64 words[EXPIRY_NAME_MAX / 8];
	const u64 secret[2] = { key->words[0], key->words[1] };

	memcpy(words, name, sizeof(words));
	return siphash_words(words, EXPIRY_NAME_MAX / 8, secret) >> 32;
}
