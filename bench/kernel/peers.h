/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernel timers by number, of several sorts: bench/kernel/speed compares them.
 * Failures end the program.
 */
#ifndef BENCH_KERNEL_PEERS_H
#define BENCH_KERNEL_PEERS_H

#include <stdint.h>

/**
 * struct peer - a sort of timer
 * @name: in reports
 * @own: the sort's own
 * @init: make room for timers 0 to @nr - 1, none existing
 * @arm: @nr new timers, by number, each for @in_ns from now
 * @refresh: @nr existing ones
 * @cancel: likewise; they no longer exist
 */
struct peer {
	const char *name;
	void *own;
	void (*init)(void *own, uint32_t nr);
	void (*arm)(void *own, const uint32_t *timers, uint32_t nr,
		    const uint64_t *in_ns);
	void (*refresh)(void *own, const uint32_t *timers, uint32_t nr,
			const uint64_t *in_ns);
	void (*cancel)(void *own, const uint32_t *timers, uint32_t nr);
};

/* Most timers passed at once. */
#define PEER_BATCH	512U

extern const struct peer peer_ring;	/* a uring_cmd for all (peer-expiry.c) */
extern const struct peer peer_ioctl;	/* an ioctl for all */
extern const struct peer peer_single;	/* an ioctl for each */
extern const struct peer peer_timerfd;	/* peer-system.c */
extern const struct peer peer_posix;

#endif /* BENCH_KERNEL_PEERS_H */
