/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stands between a client and the daemon, and cuts the connection at moments
 * drawn by chance: in the middle of a record, of a greeting, of a burst.
 */
#ifndef TESTS_LIB_SUPPORT_CUT_H
#define TESTS_LIB_SUPPORT_CUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/**
 * struct cutter
 * @address: where clients find it
 * @target: path of the daemon's socket
 * @bytes: a connection carries less than so many, both ways together
 * @left: cuts still to be made; after them it carries everything
 * @client: the connection there is
 * @seed: of the moments
 */
struct cutter {
	pthread_t thread;
	char directory[32];
	char address[64];
	const char *target;
	int listen_fd;
	uint32_t bytes;
	atomic_int left;
	atomic_int client;
	uint64_t seed;
};

void cutter_start(struct cutter *cutter, const char *target, uint32_t bytes,
		  int cuts);
/* Cut the connection that there is, now. */
void cutter_cut(struct cutter *cutter);
/* The client is gone; so goes the cutter. */
void cutter_stop(struct cutter *cutter);

#endif /* TESTS_LIB_SUPPORT_CUT_H */
