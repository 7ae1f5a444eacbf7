// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by test-seeds.py: appends the bytes of each getrandom() in
 * hexadecimal to a file, EXPIRY_LOG_RANDOM, a line each. strace(1) does not see the call
 * where the C library takes it from the vDSO (glibc 2.41, Linux 6.11).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t getrandom(void *data, size_t len, unsigned int flags)
{
	const char *path = getenv("EXPIRY_LOG_RANDOM");
	ssize_t nr = syscall(SYS_getrandom, data, len, flags), i;
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return nr;
	for (i = 0; i < nr; i++)
		fprintf(file, "%02x", ((unsigned char *)data)[i]);
	fputc('\n', file);
	if (fclose(file))
		abort();
	return nr;
}
