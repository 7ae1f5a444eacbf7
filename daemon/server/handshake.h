/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Handshakes: connections before their HELLO. The first thread, which listens,
 * reads that one record. It names the queue, and so the thread of the
 * connection.
 */
#ifndef DAEMON_HANDSHAKE_H
#define DAEMON_HANDSHAKE_H

#include <stdint.h>
#include <sys/types.h>
#include <linux/expiry.h>

#include "daemon/loop/loop.h"
#include "daemon/loop/mailbox.h"
#include "daemon/util/util.h"

struct account;
struct directory_entry;
struct server;

/**
 * struct handshake - one connection
 * @server: the server that listens
 * @all: in the server's list of handshakes
 * @account: the peer's, a reference
 * @fd: of the socket
 * @pid: of the peer
 * @received: the receive of @hello; @len bytes have arrived
 * @due_ns: time limit of HELLO, CLOCK_MONOTONIC; 0 = none
 * @left: time limit of the present receive
 * @received_ns: when HELLO was complete, CLOCK_MONOTONIC
 * @in_directory: its queue's entry, a reference; NULL = one thread
 * @handoff: posted to the thread of @in_directory
 */
struct handshake {
	struct server *server;
	struct list all;
	struct account *account;
	int fd;
	pid_t pid;
	struct loop_op received;
	struct expiry_record hello;
	uint32_t len;
	uint64_t due_ns;
	struct __kernel_timespec left;
	uint64_t received_ns;
	struct directory_entry *in_directory;
	struct mail handoff;
};

/* Takes @fd and the reference to @account, and charges it with a connection.
 * -ENOMEM: takes neither.
 */
int handshake_new(struct server *server, int fd, pid_t pid,
		  struct account *account);

void handshakes_init(struct server *server);

/* Frees all remaining handshakes, after the loop has ended. */
void handshakes_deinit(struct server *server);

/* Refuses a connection with a reply to HELLO, if it can be sent, and closes it.
 */
void connection_refuse(struct server *server, int fd, int error);

#endif /* DAEMON_HANDSHAKE_H */
