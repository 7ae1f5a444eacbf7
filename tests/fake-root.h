/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine made up of a few files, below a folder of its own. */
#ifndef TESTS_FAKE_ROOT_H
#define TESTS_FAKE_ROOT_H

/* The folder, from fake_root_make() to fake_root_remove(). */
extern char fake_root[];

/* cmocka's setup and teardown of a group; they return 0. */
int fake_root_make(void **state);
int fake_root_remove(void **state);

/* Removes all files; cmocka's setup or teardown of a test. */
int fake_root_clear(void **state);

/* Writes @text and a line end to the file @path below the folder. */
void fake_root_put(const char *path, const char *text);

#endif /* TESTS_FAKE_ROOT_H */
