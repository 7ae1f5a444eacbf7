// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by test-partial.py: the module carries out EXPIRY_FAIL_AFTER
 * records of a larger batch that comes by ioctl(), and fails at the next ones with EIO,
 * as where it reads or writes memory that is gone.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/expiry.h>

int ioctl(int fd, unsigned long request, ...)
{
	static _Thread_local bool fails;
	const char *text = getenv("EXPIRY_FAIL_AFTER");
	struct expiry_batch some, *batch;
	uint32_t most = text ? strtoul(text, NULL, 10) : UINT32_MAX;
	va_list list;

	va_start(list, request);
	batch = va_arg(list, struct expiry_batch *);
	va_end(list);
	if (request != EXPIRY_IOC_SUBMIT)
		return syscall(SYS_ioctl, fd, request, batch);
	if (fails) {
		fails = false;
		errno = EIO;
		return -1;
	}
	some = *batch;
	fails = some.count > most;
	if (fails)
		some.count = most;
	return syscall(SYS_ioctl, fd, request, &some);
}
