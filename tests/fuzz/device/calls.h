/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calls of programs. */
#ifndef FUZZ_DEVICE_CALLS_H
#define FUZZ_DEVICE_CALLS_H

#include "state.h"

/* Makes one call. */
void call_run(struct worker *worker, const struct call *call);

typedef void call_fn(struct worker *worker, const struct call *call,
		     unsigned int queue, int fd);

/* calls-device.c */
call_fn call_submit, call_submit_raw, call_read, call_readv, call_pread,
	call_write, call_stat, call_scan, call_rewind, call_config,
	call_layout, call_other_ioctl, call_mmap;

/* calls-around.c */
call_fn call_poll, call_epoll, call_open, call_close, call_dup,
	call_fcntl, call_splice, call_memory, call_look, call_machine,
	call_sleep, call_fail, call_killed;

/* calls-uring.c */
call_fn call_uring_cmd, call_uring_read, call_uring_poll,
	call_uring_cancel, call_uring_enter, call_uring_close;

#endif /* FUZZ_DEVICE_CALLS_H */
