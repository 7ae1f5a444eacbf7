// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kept programs of the fuzzer (tests/fuzz/seeds/device), each run once,
 * without the fuzzer: past findings must not return. FUZZ_SEEDS is their
 * directory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fuzz/device/report.h"
#include "../fuzz/device/threads.h"
#include "../fuzz/device/state.h"

#define SKIPPED	4

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void live_through(const char *name, int number)
{
	unsigned int before = findings();
	unsigned char data[PROGRAM_MAX];
	char path[512];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", FUZZ_SEEDS, name);
	/* Print it before, so that a crash shows its program. */
	printf("# %s\n", name);
	fflush(stdout);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, data, sizeof(data));
	close(fd);
	if (size > 0)
		program_run(data, size);
	printf("%sok %d %s\n", size > 0 && findings() == before ? "" : "not ",
	       number, name);
}

int main(void)
{
	const char *settime = getenv("EXPIRY_TEST_SETTIME");
	struct dirent **entries;
	int i, nr;

	printf("TAP version 13\n");
	if (getenv("EXPIRY_DEVICE"))
		options.device = getenv("EXPIRY_DEVICE");
	nr = scandir(FUZZ_SEEDS, &entries, is_file, alphasort);
	if (nr <= 0 || access(options.device, R_OK | W_OK)) {
		printf("1..0 # SKIP %s\n", nr <= 0 ? "no seeds" : options.device);
		return SKIPPED;
	}
	options.settime = settime && !strcmp(settime, "1");
	state_init();
	threads_start(NULL);
	printf("1..%d\n", nr);
	for (i = 0; i < nr; i++)
		live_through(entries[i]->d_name, i + 1);
	return findings() ? 1 : 0;
}
