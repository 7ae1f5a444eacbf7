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

/* Reads one file of a folder. Returns 0 to continue. */
typedef int (*key_file_visit_t)(void *data, const char *path);

/* Calls @visit for each drop-in file of @folder, by name: *.conf, and not
 * hidden. Returns the first result that is not 0; -errno, after a line in the
 * log if the folder cannot be read; or 0, also if there is no folder.
 */
int key_file_visit_folder(const char *folder, key_file_visit_t visit,
			  void *data);

#endif /* DAEMON_KEY_FILE_H */
