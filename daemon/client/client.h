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

#include "daemon/engine/engine.h"
#include "daemon/loop/buffer.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/pool.h"

#define CLIENT_IOVECS	8

struct account;
struct queue;
struct context;
struct directory_entry;
struct user;

enum client_state {
	CLIENT_HELLO,	/* before its HELLO */
	CLIENT_OPEN,
	CLIENT_LEAVING,	/* gets its last replies */
	CLIENT_DEAD,	/* waits for its last completion */
};

/**
 * struct client - one connection
 * @context: const; likewise @fd, @pid, @user
 * @queue: from HELLO on; NULL again after DROP
 * @queueless: HELLO asked for no queue: STAT and QUEUES only
 * @access: what it may do with its queue, ACCESS_*
 * @in_directory: its queue's entry, a reference until HELLO is answered
 * @state: enum client_state
 * @ops: completions and other threads' answers to come
 * @durable: its queue was durable: its replies wait for the journal
 * @all: on the thread's list; likewise @ready, @writer, @sent, @starved,
 *	@blocked_lru and @held
 *
 * @recv: the receive, multishot or single
 * @receiving: @recv is in progress; @recv_ending: being cancelled
 * @recv_once: filled several buffers at once
 * @more: the last buffer was full: more may follow
 * @no_buffer: found no buffer in the ring
 * @eof: the peer has ended its direction
 * @denied: a refusal with -EACCES was logged
 * @overdue: a refusal of overdue requests was logged
 * @cut: a cut of its credit was logged
 * @carry: first @carry_len bytes of an incomplete record
 * @received: buffers of requests, @nr_received of them
 * @awaits_journal: the first of them does
 *
 * @io_pending: the first is; @nr_in_flight are the ring's meanwhile
 *
 * @batch: records of the first buffer at the engine, @busy
 * @batch_timers: timers charged for them beforehand
 * @batch_done: the batch is done, with @batch_result
 *
 * @parked: on a list of parked clients, @busy
 * @summary_ready: the other threads have answered
 *
 * @send: in progress if @sending
 * @sending_last: last buffer of the @send_len bytes in progress
 * @blocked: the socket was full; replies are in private memory
 * @replies: buffers to be sent, @replies_len bytes
 *
 * @observer: among its queue's observers, if it @observes
 * @missed: dropped copies, not yet reported to it
 *
 * @recv is single while the client is @recv_once, and for all clients where the
 * kernel's multishot is unreliable (probe.h). The first of @received may be
 * processed in part. @blocked lasts until all is sent.
 */
struct client {
	struct context *context;
	struct user *user;
	struct queue *queue;
	struct directory_entry *in_directory;
	int fd;
	pid_t pid;
	uint32_t ops;
	uint8_t state;
	uint8_t access;
	bool queueless;
	bool durable;
	bool denied;
	bool receiving;
	bool recv_ending;
	bool recv_once;
	bool more;
	bool no_buffer;
	bool eof;
	bool overdue;
	bool cut;
	bool awaits_journal;
	bool busy;
	bool io_pending;
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
	struct list blocked_lru;
	struct list held;

	struct loop_op recv;
	struct buffer_queue received;
	uint32_t nr_received;
	uint32_t nr_in_flight;

	struct engine_io batch;
	uint32_t batch_timers;
	int batch_result;

	struct list parked;
	bool summary_ready;

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

/**
 * struct connection_ops - calls of the modules above the connection
 * @consumer_changed: a queue's consumer may take more, or less
 * @copies_missed: copies were dropped; a send is complete, or memory was short
 * @ended: the client is not served any more
 * @freed: the connection is closed; its memory goes next
 */
struct connection_ops {
	void (*consumer_changed)(struct client *client);
	void (*copies_missed)(struct client *client);
	void (*ended)(struct client *client);
	void (*freed)(struct client *client);
};

/**
 * struct connections - a thread's connections
 * @ops: const
 * @pool: memory of clients
 * @multishot: multishot receive is reliable (const)
 * @skip_success: non-blocking sends post a CQE only on failure (const)
 * @clients: all, by their @all
 * @ready: clients with records to process, by their @ready
 * @ready_small: those with few records, likewise
 * @no_spare: those whose reply found no spare buffer, likewise
 * @no_journal: those whose requests found no room in the journal, likewise
 * @writers: clients with something to send, by their @writer
 * @no_memory: observers that a MISSED is owed to, by their @writer
 * @sent: clients whose send skips its CQE, by their @sent
 * @starved: clients that found no receive buffer, by their @starved
 * @blocked_lru: blocked clients, by their @blocked_lru
 * @held: clients whose next reply waits for the journal, by their @held
 * @dead: ended clients before their last completion, by @all
 * @overdue: the time at which the first of @no_spare is overdue, @overdue_in later
 * @timing: @overdue is in progress
 * @written_ns: when the previous turn's answers were ready to submit
 *
 * The first client in @blocked_lru has read nothing for the longest time.
 */
struct connections {
	struct context *context;
	const struct connection_ops *ops;
	struct pool pool;
	bool multishot;
	bool skip_success;
	struct list clients;
	struct list ready;
	struct list ready_small;
	struct list no_spare;
	struct list no_journal;
	struct list writers;
	struct list no_memory;
	struct list sent;
	struct list starved;
	struct list blocked_lru;
	struct list held;
	struct list dead;
	struct loop_op overdue;
	struct __kernel_timespec overdue_in;
	bool timing;
	uint64_t written_ns;
};

/**
 * struct connection_start - a connection after its HELLO
 * @account: the peer's; likewise @pid
 * @fd: of the socket
 * @in_directory: its queue's entry, a reference; NULL = one thread
 * @hello: the first record it sent
 * @received_ns: when @hello was complete, CLOCK_MONOTONIC
 */
struct connection_start {
	struct account *account;
	struct directory_entry *in_directory;
	int fd;
	pid_t pid;
	uint64_t received_ns;
	struct expiry_record hello;
};

static inline bool client_consumes(const struct client *client)
{
	return client->queue && client->queue->consumer == client;
}

/* Returns whether the waiting replies have reached their limit. */
static inline bool client_full(const struct client *client)
{
	return client->replies_len >=
	       client->context->config.records_in_flight *
		       sizeof(struct expiry_record);
}

/* Returns whether what waits for the journal shall leave a shared buffer: few are left,
 * and clients hold less than half of their private memory.
 */
static inline bool client_leaves_shared(const struct client *client,
				     enum buffer_kind kind)
{
	const struct context *context = client->context;

	return buffers_are_few(&context->buffers, kind) &&
	       counter_read(&context->buffers.private_size) <
		       context_backlog_max(context) / context->shared->nr / 2;
}

/* Returns whether replies in place, to the first requests of a buffer, have not been
 * sent yet.
 */
static inline bool client_has_replies(const struct client *client)
{
	const struct buffer *buffer = client->received.first;

	return buffer && buffer->reply_tail != buffer->reply;
}

/* Returns whether it can be sent more now: it is open, reads, and has no
 * earlier reply in progress.
 */
static inline bool client_takes(const struct client *client)
{
	return client->state == CLIENT_OPEN && !client->blocked &&
	       !client->busy && !client_full(client) &&
	       !client_has_replies(client);
}

#endif /* DAEMON_CLIENT_H */
