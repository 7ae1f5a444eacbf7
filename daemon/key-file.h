/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Key files: lines `key = value`; a '#' begins a comment.
 */
#ifndef DAEMON_KEY_FILE_H
#define DAEMON_KEY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Returned by a function that sets keys for an unknown one. */
extern const char key_file_unknown[];

/* Sets one key. Returns NULL, or the fault. */
typedef const char *(*key_file_set_t)(void *data, const char *key,
				      const char *value);

/* Reads the lines of @file, which is @path in messages, and calls @set for
 * each. Continues after a faulty line. Returns 0, or -errno after a line in the
 * log for each fault: -EINVAL, -EIO.
 */
int key_file_read(FILE *file, const char *path, key_file_set_t set, void *data);

/* Reads the number of @base at the start of @value. A number above 64 bits is
 * UINT64_MAX. Returns the text after the number, or NULL if there is none.
 */
const char *key_file_number(const char *value, int base, uint64_t *number);

/* Returns whether @name is one of a drop-in key file: *.conf, and not hidden.
 */
bool key_file_is_name(const char *name);

#endif /* DAEMON_KEY_FILE_H */
