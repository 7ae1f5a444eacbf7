/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A proxy between a client and the daemon. The test cuts the connection.
 */
#ifndef TESTS_LIB_SUPPORT_CUT_H
#define TESTS_LIB_SUPPORT_CUT_H

#include <pthread.h>
#include <stdatomic.h>

/**
 * struct cutter
 * @address: where clients find it
 * @target: path of the daemon's socket
 * @client: the present connection
 */
struct cutter {
	pthread_t thread;
	char directory[32];
	char address[64];
	const char *target;
	int listen_fd;
	atomic_int client;
};

void cutter_start(struct cutter *cutter, const char *target);
/* Cuts the present connection now. */
void cutter_cut(struct cutter *cutter);
/* Ends the cutter after its client. */
void cutter_stop(struct cutter *cutter);

#endif /* TESTS_LIB_SUPPORT_CUT_H */
