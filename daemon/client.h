/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients: one connection each.
 *
 * A received buffer waits in @received until its records are processed, in
 * place, by requests.c. Then it waits in @replies until it is sent, and returns
 * to the ring. Both are emptied within a turn or two, so that shared buffers
 * always return.
 *
 * A client that does not read is *blocked*: its replies are gathered in private
 * memory. It is *full* once these are as many records as its window. Then
 * nothing more is received from it or processed for it, and received bytes go
 * to private memory, too. The rest stays in the client's own socket buffer
 * until it reads. All private memory together has a limit; beyond it the
 * clients end that have read nothing for the longest time.
 */
#ifndef DAEMON_CLIENT_H
#define DAEMON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <expiry/wire.h>

#include "daemon/buffer.h"
#include "daemon/engine.h"
#include "daemon/log.h"
#include "daemon/util.h"

#define CLIENT_IOVECS	8

struct arrival;
struct place;
struct queue;
struct server;
struct user;

enum client_state {
	CLIENT_HELLO,	/* before its HELLO */
	CLIENT_OPEN,
	CLIENT_LEAVING,	/* gets its last replies */
	CLIENT_DEAD,	/* waits for its last completion */
};

/**
 * struct client - one connection
 * @server: const; likewise @fd, @pid, @user
 * @queue: from HELLO on; NULL again after DROP
 * @queueless: HELLO asked for no queue: STAT and QUEUES only
 * @access: what it may do with its queue, ACCESS_*
 * @place: where the queue is, a reference until HELLO is answered
 * @state: enum client_state
 * @ops: completions to come, and answers of other threads
 * @all: on the server's list; likewise @ready, @writer, @sent, @starved,
 *	@stuck
 *
 * @recv: multishot, or once for one that was greedy (or if the kernel's
 *	multishot is not to be trusted, see probe.h)
 * @receiving: @recv is under way; @recv_ending: it was told to end
 * @greedy: filled several buffers at once
 * @more: its last buffer was full: there may be more in the socket
 * @starving: found no buffer in the ring
 * @eof: it will send no more
 * @denied: a request of it was refused with -EACCES, and logged
 * @overdue: requests of it were refused for having waited, which was said
 * @carry: the beginning of a record, @carry_len bytes of it
 * @received: buffers of requests, @nr_received of them; the first may be
 *	processed in part
 *
 * @batch: the first buffer's records on their way through the engine, @busy
 * @batch_timers: charged for it beforehand
 * @batch_done: they are back, with @batch_result
 *
 * @asking: among those who wait, @busy, for what other threads say
 * @told: they have said it
 *
 * @send: under way, @sending; what it sends is @replies up to @sending_last,
 *	@send_len bytes
 * @blocked: the socket took less than it was given; until all is sent, in
 *	private memory
 * @replies: buffers to be sent, @replies_len bytes
 *
 * @observer: among its queue's observers, if it @observes
 * @missed: dropped copies, not yet reported to it
 */
struct client {
	struct server *server;
	struct user *user;
	struct queue *queue;
	struct place *place;
	int fd;
	pid_t pid;
	uint32_t ops;
	uint8_t state;
	uint8_t access;
	bool queueless;
	bool denied;
	bool receiving;
	bool recv_ending;
	bool greedy;
	bool more;
	bool starving;
	bool eof;
	bool overdue;
	bool busy;
	bool batch_done;
	bool sending;
	bool blocked;
	uint8_t carry_len;
	char carry[sizeof(struct expiry_record)];
	struct list all;
	struct list ready;
	struct list writer;
	struct list sent;
	struct list starved;
	struct list stuck;

	struct loop_op recv;
	struct buffer_queue received;
	uint32_t nr_received;

	struct engine_io batch;
	uint32_t batch_timers;
	int batch_result;

	struct list asking;
	bool told;

	struct loop_op send;
	struct buffer *sending_last;
	uint32_t send_len;
	struct buffer_queue replies;
	uint64_t replies_len;
	struct msghdr msg;
	struct iovec iov[CLIENT_IOVECS];

	struct list observer;
	bool observes;
	uint64_t missed;
};

/* client.c ----------------------------------------------------------------- */

/* Makes a client of a connection after its HELLO, the first record it sent.
 * Takes the descriptor, the place and the charge of a connection. -ENOMEM:
 * takes nothing.
 */
int client_new(struct server *server, struct arrival *arrival);

/* Ends all remaining clients, at the end. */
void clients_deinit(struct server *server);

/* Returns whether it can be sent more now: it is open, reads, and has no
 * earlier reply in progress.
 */
bool client_takes(const struct client *client);

/* Returns whether the most allowed waits to be sent to it. */
bool client_full(const struct client *client);

/* Lets it send in this turn, before clients marked later. */
void client_will_write(struct client *client);

/* Sends a buffer after all others; it is freed afterwards. */
void client_send(struct client *client, struct buffer *buffer);

/* Returns room for @len bytes that are sent after all others, or NULL: try
 * again next turn. The caller fills it before any other call.
 */
void *client_room(struct client *client, size_t len);

/* Logs @why (NULL: no line) and the errno @error (0 = none), sends the pending
 * replies, then ends it.
 */
void client_leave(struct client *client, const char *why, int error);

/* Ends a client at once: logs @why and the errno @error (0 = none). */
void client_fail(struct client *client, const char *why, int error);

/* Returns the fields of a log line about it. */
struct log_about client_about(const struct client *client, const char *id,
			      int error);

/* Lends its first buffer: the client is @busy until it is returned, however it
 * ends. After that it is still @busy until the buffer's processing continues.
 */
void client_lend(struct client *client);
void client_return(struct client *client);

/* Parks the client, @busy and on the list @waiting, until other threads answer;
 * client_told() then continues it.
 */
void client_ask(struct client *client, struct list *waiting);
void client_told(struct client *client);

/* Does what is possible now, after a change. */
void client_update(struct client *client);

/* Completes sends with success skipped, submitted before this turn. */
void clients_sent(struct server *server);

/* Sends pending bytes. */
void clients_write(struct server *server);

/* Ends clients that do not read, where that takes too much memory. */
void clients_bound(struct server *server);

/* Ends a turn: sends, receives again, frees the dead. */
void clients_turn(struct server *server);

/* requests.c --------------------------------------------------------------- */

/* Processes the records of the first received buffer. Returns their cost, in
 * ordinary ones.
 */
uint32_t client_process(struct client *client);

/* Processes received requests, within this turn's budget. */
void clients_process(struct server *server);

/* Called by the engine when a batch is done. */
void client_batch_done(struct engine_io *io, int result);

/* hello.c ------------------------------------------------------------------ */

/* Returns whether @name, EXPIRY_NAME_MAX bytes, has only the characters of a
 * name and then only NULs.
 */
bool hello_name_valid(const char *name);

/* Returns whether HELLO requests a connection without any queue. */
bool hello_wants_no_queue(const struct expiry_hello *hello);

/* Answers the first record, in place. */
void client_hello(struct client *client, struct expiry_record *record);

#endif /* DAEMON_CLIENT_H */
