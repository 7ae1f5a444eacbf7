/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A proxy between a client and the daemon that cuts the connection at random
 * moments: in the middle of a record, of a greeting, of a burst.
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
 * @bytes: a connection carries fewer, both directions together
 * @left: cuts still to be made; after them it carries everything
 * @client: the present connection
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
/* Cuts the present connection now. */
void cutter_cut(struct cutter *cutter);
/* Ends the cutter after its client. */
void cutter_stop(struct cutter *cutter);

#endif /* TESTS_LIB_SUPPORT_CUT_H */
