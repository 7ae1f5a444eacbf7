/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernel timers by number, of one sort or another: what bench/kernel/speed
 * compares. What fails ends the program.
 */
#ifndef BENCH_KERNEL_PEERS_H
#define BENCH_KERNEL_PEERS_H

#include <stdint.h>

/**
 * struct peer - a sort of timer
 * @name: as reports have it
 * @own: the sort's own
 * @init: make room for timers 0 to @nr - 1, none of them there
 * @arm: @nr timers that are not there, by number, for @in_ns from now each
 * @refresh: @nr that are there
 * @cancel: likewise; they are gone then
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

/* Most that are passed at once. */
#define PEER_BATCH	512U

extern const struct peer peer_ring;	/* a uring_cmd for all (peer-expiry.c) */
extern const struct peer peer_ioctl;	/* an ioctl for all */
extern const struct peer peer_single;	/* an ioctl for each */
extern const struct peer peer_timerfd;	/* peer-system.c */
extern const struct peer peer_posix;

#endif /* BENCH_KERNEL_PEERS_H */
