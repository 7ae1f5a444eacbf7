// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/fake-root.h"

char fake_root[] = "/tmp/expiry-root.XXXXXX";

int fake_root_make(void **state)
{
	(void)state;
	return mkdtemp(fake_root) ? 0 : -1;
}

int fake_root_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", fake_root);
	return system(command);
}

int fake_root_clear(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s/*", fake_root);
	return system(command);
}

void fake_root_put(const char *path, const char *text)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "f=%s%s; install -D /dev/null $f && printf '%%b' '%s\\n' >$f",
		 fake_root, path, text);
	assert_int_equal(system(command), 0);
}
