/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The name of a queue: its characters and its hash. */
#ifndef DAEMON_NAME_H
#define DAEMON_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether @name, EXPIRY_NAME_MAX bytes, has only the characters of a
 * name and then only NULs.
 */
bool name_is_valid(const char *name);

/**
 * struct name_key - the secret of a hash table of names
 * @words: random. A client that knows them can choose names of one bucket.
 */
struct name_key {
	uint64_t words[2];
};

/* Draws a key: 0, or the errno of getrandom(2). */
int name_key_init(struct name_key *key);

/* Returns the hash of the EXPIRY_NAME_MAX bytes at @name. */
uint32_t name_hash(const struct name_key *key, const char *name);

#endif /* DAEMON_NAME_H */
