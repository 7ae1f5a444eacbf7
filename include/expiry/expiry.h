/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * libexpiry: timers in a queue of expiryd (or of /dev/expiry itself), by the
 * same calls.
 *
 * Caveats, first:
 *
 * - A handle belongs to one thread at a time. Two threads open two handles; the
 *   library has no thread, no lock and no global state of its own.
 * - Nothing is printed and no signal is raised. Calls return 0 or more, or a
 *   negative errno. The variable errno is not used for results, and may change. A
 *   request that the queue refused is not an error of the call: its record carries
 *   the errno in ->status.
 * - All times are nanoseconds, absolute, on the queue's own clock: see
 *   expiry_now(). That need not be the machine's default clock. EXPIRY_NEVER is
 *   never; a past deadline is due at once.
 * - Poll the handle's fd only after expiry_next() returned fewer records than
 *   it had room for: the handle may hold records, and the fd does not show
 *   them.
 * - Requests of expiry_post() may wait in the handle. expiry_flush() at the end
 *   of a turn, or any blocking call, sends them.
 * - An expiration and the reply to a request can cross. If a keyed timer was
 *   armed again meanwhile, compare deadline_ns to tell which arming expired.
 * - A broken connection stays broken: every later call returns the same errno,
 *   and the handle can only be closed. It is unknown which unanswered requests
 *   were carried out. With EXPIRY_OPEN_RECONNECT the handle reconnects and
 *   resolves them by itself.
 * - After fork() only one of the two processes may use the handle.
 *
 * Only expiry_open() allocates memory.
 *
 * A minimal consumer:
 *
 *	struct expiry_options options = {
 *		.size = sizeof(options),
 *		.flags = EXPIRY_OPEN_CONSUME,
 *		.queue = "sessions",
 *	};
 *	struct expiry_record due[64];
 *	struct expiry *h = NULL;
 *	int i, nr;
 *
 *	nr = expiry_open(&h, NULL, &options);
 *	while (nr >= 0) {
 *		nr = expiry_receive(h, due, 64, -1);
 *		for (i = 0; i < nr; i++)
 *			forget(due[i].cookie);
 *	}
 *	expiry_close(h);
 */
#ifndef EXPIRY_EXPIRY_H
#define EXPIRY_EXPIRY_H

#include <stddef.h>
#include <stdint.h>
#include <linux/expiry.h>
#include <expiry/wire.h>

#ifdef __cplusplus
extern "C" {
#endif

struct expiry;	/* a handle: one connection, or one open device */

/* ------------------------------------------------------------------------
 * Opening
 */

#define EXPIRY_OPEN_CONSUME	0x01	/* this handle takes the expirations */
#define EXPIRY_OPEN_ACK		0x02	/* at least once: EXPIRY_MODE_ACK */
#define EXPIRY_OPEN_DURABLE	0x04	/* outlive daemon and machine, see below */
#define EXPIRY_OPEN_KEYED	0x08	/* own ids: EXPIRY_MODE_KEYED */
#define EXPIRY_OPEN_EXISTING	0x10	/* make no queue, see below */
#define EXPIRY_OPEN_OBSERVE	0x40	/* copies of expirations, see below */
#define EXPIRY_OPEN_MANUAL	0x100	/* no credit but by expiry_credit() */
#define EXPIRY_OPEN_RECONNECT	0x200	/* outlive the connection, as below */

#define EXPIRY_CREDIT_DEFAULT	1024
#define EXPIRY_CREDIT_MAX	1048576
#define EXPIRY_WINDOW_MAX	65536

/**
 * expiry_restore_fn - yields timers from where the program keeps its truth
 * @arg: restore_arg of the options
 * @cursor: the function's own: 0 = begin with the first timer; else what it left
 *	there
 * @timers: to be filled in: id, deadline_ns (absolute), cookie and period_ms. The
 *	other fields are not read, and hold nothing.
 * @max: room in @timers, at least 1
 *
 * The function must not use the handle. It may block: so does the call of the
 * library that calls it.
 *
 * Returns how many it filled in, 0 when there are no more, or a negative errno,
 * which breaks the handle.
 */
typedef int expiry_restore_fn(void *arg, uint64_t *cursor,
			      struct expiry_record *timers, uint32_t max);

/**
 * struct expiry_options - which queue, and how
 * @size: sizeof(struct expiry_options); a program built with a later header
 *	runs with this library as long as what it does not know is zero
 * @flags: EXPIRY_OPEN_*
 * @queue: the queue's name, [A-Za-z0-9._-], at most EXPIRY_NAME_MAX bytes; NULL
 *	or "" = an anonymous queue, which dies with the handle. A device's queue
 *	is always anonymous. Only read during expiry_open().
 * @clock_id: CLOCK_REALTIME (0), CLOCK_MONOTONIC or CLOCK_BOOTTIME
 * @credit: most expirations that may have been sent to this handle and not yet
 *	been handed to the program; 32 bytes each; for an observer, copies. 0 = EXPIRY_CREDIT_DEFAULT; at
 *	most EXPIRY_CREDIT_MAX. Without EXPIRY_OPEN_MANUAL the handle asks for
 *	more whenever half of them are used up.
 * @window: most requests in flight; 0 = as many as the server takes, at most
 *	EXPIRY_WINDOW_MAX
 * @timeout_ms: longest time a call waits for the server without hearing from
 *	it, connecting included; 0 = for ever. The first signal that interrupts a
 *	wait begins its time anew, later ones do not. A call that timed out breaks
 *	the connection.
 * @slack_ns: device only, as in struct expiry_config
 * @limit: device only, as in struct expiry_config
 * @restore: yields the timers of an empty or lost queue, see below; NULL = none
 * @restore_arg: the first argument of @restore
 */
struct expiry_options {
	uint32_t size;
	uint32_t flags;
	const char *queue;
	uint32_t clock_id;
	uint32_t credit;
	uint32_t window;
	uint32_t timeout_ms;
	uint64_t slack_ns;
	uint64_t limit;
	expiry_restore_fn *restore;
	void *restore_arg;
};

/*
 * EXPIRY_OPEN_DURABLE: the queue outlives kill -9 of the daemon, a reboot and a loss
 * of power. On sockets only; with EXPIRY_OPEN_ACK, EXPIRY_OPEN_KEYED and a name. The
 * daemon needs a journal: -EOPNOTSUPP without. A handle that does not ask for it gets
 * a durable queue, too, if the queue is one: expiry_info() tells.
 *
 * - A request is answered once it is on the disk, or, if info.commit_ms is not 0,
 *   once it is written: then a loss of power undoes what came in the last commit_ms
 *   milliseconds. QUERY and SCAN show nothing that may vanish.
 * - After a restart what was due and not acknowledged comes first, in order of
 *   deadline. EXPIRY_F_LATE marks expirations whose deadline passed before the daemon
 *   started. EXPIRY_F_REDELIVERED marks those that may have been delivered before;
 *   a program that keeps what it has seen by id and deadline can tell.
 * - A periodic timer comes once for all the times that it missed. Its phase stays.
 * - A full disk refuses ARM and REFRESH with -ENOSPC. A failed write refuses all
 *   requests with its errno, such as -EIO, until the daemon has mended its journal.
 * - An ACK of a delivery from before the restart may answer -ENOENT although it was
 *   not carried out: the expiration comes again, with EXPIRY_F_REDELIVERED.
 * - With EXPIRY_OPEN_RECONNECT a restart of the daemon loses nothing, on both engines,
 *   and the program sees a pause. A number of the queue shows whether it is the same:
 *   -ESTALE only means that it was dropped, or that the daemon has another journal.
 *
 * EXPIRY_OPEN_OBSERVE: this handle gets copies of all records sent to the
 * queue's consumer. On sockets only; for a queue that exists and has a name;
 * never with EXPIRY_OPEN_CONSUME.
 *
 * - expiry_receive() and expiry_next() hand out the copies, EXPIRY_OP_EXPIRED and
 *   EXPIRY_OP_CLOCK_SET, in the consumer's order. There is no credit.
 * - The queue never waits for the handle. Copies that the program does not take
 *   in time are dropped. EXPIRY_OP_MISSED stands in their place; cookie = how
 *   many.
 * - The program may query, scan, read counters and list queues. Every other
 *   request is answered -EACCES. During such a call, the handle holds
 *   options.credit copies at most.
 * - With EXPIRY_OPEN_RECONNECT deliveries during the pause are not reported. A
 *   queue that was dropped is lost (-ESTALE).
 *
 * EXPIRY_OPEN_EXISTING: attach to a queue that exists, of this clock and mode,
 * and make none. On sockets only. Without a name the handle has no queue.
 * expiry_stat() then fills in the daemon's part and leaves the rest 0,
 * expiry_queues() works, and any other request is answered -ENOENT. CONSUME,
 * OBSERVE, ACK, KEYED, DURABLE and MANUAL are not allowed then.
 *
 * EXPIRY_OPEN_RECONNECT: a broken connection is replaced by one to the same
 * queue, and the program sees a pause. For named queues on a socket. To
 * consume, the queue must be acknowledging. expiry_open() makes the first
 * connection, and fails if there is no server.
 *
 * - Blocking calls keep waiting. After timeout_ms they return -ETIMEDOUT, and
 *   the next call tries again. expiry_receive() and expiry_wait() wait as long
 *   as their own timeout. Other calls behave as if no record had arrived. The
 *   handle reconnects at once, then with pauses that double up to a second.
 *   After five seconds of refusals it fails with that errno.
 * - Unanswered requests are sent again, in order. If the first attempt was
 *   carried out, CANCEL and ACK now answer -ENOENT; but an ACK that is not posted
 *   has succeeded if its timer is not due. Relative deadlines count from the call.
 *   They are made absolute in posted requests and in those sent again.
 * - Requests that are not idempotent are not sent again: ARM on a plain queue,
 *   ARM with EXPIRY_F_NEW, CLEAR. They return with status -ECONNRESET, as do
 *   unanswered requests before them. They may have been carried out.
 * - ARM and REFRESH overwrite another client's changes to the same id. Suppose
 *   an unanswered ARM expires during the pause at another consumer, which
 *   acknowledges it: the timer expires once more, without EXPIRY_F_REDELIVERED.
 * - Expirations that the program took and has not acknowledged are delivered
 *   again, with EXPIRY_F_REDELIVERED. So are those that the handle held. A
 *   REFRESH that is sent again may find such a timer armed for redelivery, and
 *   move it.
 * - A step of the clock during the pause is not reported.
 * - If the queue was lost, -ESTALE breaks the handle. With the embedded engine
 *   that is every restart of the daemon, unless the queue is durable. Otherwise
 *   it is when the queue has counted fewer timers than this handle knows of. With
 *   EXPIRY_OPEN_EXISTING it is also when the queue was dropped during the pause:
 *   it is not made again. Open another handle, and arm again.
 * - -EPROTO breaks the handle, too.
 *
 * restore: the queue gets the timers that the program's function yields, when it
 * is empty: at expiry_open(), and at each connection of a reconnecting handle. So
 * does a lost queue, instead of -ESTALE. For keyed queues on a socket; not with
 * EXPIRY_OPEN_EXISTING or _OBSERVE.
 *
 * - These timers are armed before anything else is sent: before requests in
 *   doubt, and before credit. expiry_open() returns when all are armed.
 * - If the connection breaks meanwhile, a reconnecting handle begins with the
 *   first timer again. To arm a keyed timer twice is to arm it once.
 * - A server that is held up refuses timers with -EBUSY. These are sent again,
 *   after pauses of 10 ms to a second. After five seconds in which it armed none,
 *   and after any other refusal, the handle fails with that errno.
 */

/**
 * expiry_open - attach to a queue, making it if it is not there
 * @handle: where the handle goes; untouched on failure
 * @address: "unix:PATH", "device:PATH", or NULL: expiry_default_address()
 * @options: NULL = an anonymous REALTIME queue, producing only
 *
 * Blocks until the server has answered, at most timeout_ms.
 *
 * Returns 0, or:
 * -EINVAL	an option or the address is malformed; the queue exists with
 *		another clock or mode; EXPIRY_OPEN_RECONNECT without a name, or to
 *		consume without acknowledgement; EXPIRY_OPEN_EXISTING without a
 *		name and with another flag; EXPIRY_OPEN_OBSERVE without a name or to
 *		consume; EXPIRY_OPEN_DURABLE without _ACK, _KEYED or a name, or the
 *		queue is not durable; restore without EXPIRY_OPEN_KEYED, or with
 *		EXPIRY_OPEN_EXISTING or _OBSERVE; or a daemon that does not know a flag
 * -E2BIG	options hold something this library does not know
 * -EACCES	the socket or the device belongs to another user, or this user
 *		has no right on the queue, see expiry.queue(5)
 * -EBUSY	the queue has a consumer already, or as many observers as it may
 * -ENOSPC, -EDQUOT, -EMFILE, -ENFILE, -EPERM
 *		a limit of the server's, the user's or the process's; -ENOSPC also:
 *		EXPIRY_OPEN_DURABLE, and the disk of the daemon's journal is full
 * -EIO		EXPIRY_OPEN_DURABLE, and the journal cannot be written at present;
 *		or another errno of the write
 * -EOPNOTSUPP	EXPIRY_OPEN_DURABLE, and the daemon has no journal; a queue name,
 *		EXPIRY_OPEN_EXISTING, _OBSERVE or restore on a device; slack or limit
 *		on a socket; or the server speaks another version of the protocol
 * -ENOENT, -ECONNREFUSED
 *		nobody is there; -ENOENT also: EXPIRY_OPEN_EXISTING or _OBSERVE, and
 *		there is no queue of this name
 * -ENAMETOOLONG	the path does not fit a socket address
 * -ECONNRESET	the server ended the connection without an answer: it is at
 *		its limit of connections, or stopping
 * -ETIMEDOUT	no answer within timeout_ms
 * -ESTALE	EXPIRY_OPEN_RECONNECT of a durable queue: a daemon without it has taken
 *		over during the call
 * -EPROTO	what answered is not expiryd
 * -ENOMEM	no memory
 * another	what the restore function returned, or the refusal of one of its
 *		timers
 */
int expiry_open(struct expiry **handle, const char *address,
		const struct expiry_options *options);

#define EXPIRY_ADDRESS_MAX	4128	/* holds any path */

/**
 * expiry_default_address - the address that expiry_open() takes for NULL
 * @address: "unix:PATH", where PATH is
 *	1. $EXPIRY_SOCKET, if it is set and not empty;
 *	2. EXPIRY_SOCKET_DEFAULT, if there is such a file, or for root;
 *	3. $XDG_RUNTIME_DIR/expiry/socket, where a user's own daemon listens;
 *	4. EXPIRY_SOCKET_DEFAULT, if that variable holds no absolute path.
 *	Programs that run with more rights than their caller (set-user-ID) ignore
 *	both variables.
 * @size: room for it: EXPIRY_ADDRESS_MAX
 *
 * Never blocks. Nobody need listen there, and the path may be longer than that of
 * a socket can be.
 *
 * Returns 0, or:
 * -ENAMETOOLONG	the address does not fit @size
 */
int expiry_default_address(char *address, size_t size);

/**
 * expiry_close - end the connection and free the handle
 * @h: NULL is allowed
 *
 * Requests of expiry_post() still in the handle are not sent. Never blocks. An
 * anonymous queue and its timers are gone; a named one stays. On an
 * acknowledging queue, expirations that the handle still held are delivered
 * again.
 */
void expiry_close(struct expiry *h);

/**
 * struct expiry_info - what was opened
 * @clock_id: the queue's clock; likewise @mode, EXPIRY_MODE_*
 * @window: most requests in flight
 * @credit: most expirations on their way or held
 * @timers: timers in the queue when it was opened
 * @device: 1 = a device, 0 = a socket
 * @reconnects: connections made since, with EXPIRY_OPEN_RECONNECT
 * @durable: 1 = the queue is durable, see EXPIRY_OPEN_DURABLE
 * @commit_ms: of a durable queue: milliseconds between flushes, 0 = requests are
 *	answered once they are on the disk; as the latest connection was told
 */
struct expiry_info {
	uint32_t clock_id;
	uint32_t mode;
	uint32_t window;
	uint32_t credit;
	uint64_t timers;
	uint32_t device;
	uint32_t reconnects;
	uint32_t durable;
	uint32_t commit_ms;
};

/* Fills in at most @size bytes of @info. Never blocks, never fails. */
void expiry_info(const struct expiry *h, struct expiry_info *info, size_t size);

/* Returns now on the queue's clock, in nanoseconds. Never blocks, never fails. */
uint64_t expiry_now(const struct expiry *h);

/* ------------------------------------------------------------------------
 * Synchronous calls: they return when the answer has arrived. The handle keeps
 * expirations that arrive meanwhile for expiry_next() or expiry_receive().
 *
 * Errors common to all calls from here on, after which the handle is unusable:
 * -ECONNRESET	the server ended the connection
 * -ETIMEDOUT	it was silent for timeout_ms while an answer was due
 * -EPROTO	it broke the protocol
 * With EXPIRY_OPEN_RECONNECT, instead:
 * -ETIMEDOUT	there was no server for timeout_ms; the next call tries again
 * -EPROTO	as above
 * -ESTALE	the queue was lost, and its timers
 * -EBUSY, -EACCES and others of expiry_open()
 *		the server refused for five seconds
 */

/**
 * expiry_submit - have records processed, in order
 * @records: changed in place into their replies; the caller's throughout
 * @count: 0 to INT32_MAX; any number, the window is the library's care
 *
 * Blocks. Signals do not end it.
 *
 * Returns how many records were answered, each with its own status. Fewer than
 * @count only if the connection broke after the first answer. The next call then
 * returns the errno (or, with EXPIRY_OPEN_RECONNECT, tries again). Records without an
 * answer are unchanged, also where the call returns an errno. Or:
 * -EINVAL	@count, or a record whose op is one of the protocol's own (64 on)
 *		or one of EXPIRED and CLOCK_SET; nothing was sent
 * -EFAULT	device: @records is no writable memory
 * -ENOTCONN	device: not configured
 */
int expiry_submit(struct expiry *h, struct expiry_record *records,
		  uint32_t count);

/*
 * One timer each. @flags: EXPIRY_F_*. Pointers named ret_* may be NULL and are
 * untouched on failure. Each returns 0, or the status of its record, or an
 * errno of expiry_submit(). Status -EACCES: the user has no right to do this with
 * the queue, or the handle observes it.
 */

/**
 * expiry_arm - arm a timer
 * @id: keyed queue: in, the timer's id, not 0. Plain queue: out, the id given;
 *	untouched on failure. NULL if the program does not need it.
 * @deadline_ns: when; from now with EXPIRY_F_RELATIVE
 * @period_ms: 0 = once, else milliseconds; an expiration that comes late counts
 *	the times it stands for
 * @cookie: comes back with the expiration
 * @flags: EXPIRY_F_RELATIVE; keyed queues also _NEW and _LATER
 *
 * -EINVAL	flags, or an id of 0 or NULL on a keyed queue
 * -EEXIST	EXPIRY_F_NEW, and the id is armed
 * -ENOSPC	the queue is full, or the disk of a durable queue's journal;
 *		-EDQUOT the user's timers are
 * -EIO		durable queue: the journal cannot be written at present; likewise any
 *		other request; or another errno of the write
 * -ENOMEM	the server has no memory
 */
int expiry_arm(struct expiry *h, uint64_t *id, uint64_t deadline_ns,
	       uint32_t period_ms, uint64_t cookie, unsigned int flags);

/**
 * expiry_refresh - move a timer's deadline, earlier or later
 * @ret_deadline_ns: the deadline in force, absolute
 * @flags: EXPIRY_F_RELATIVE, EXPIRY_F_LATER
 *
 * -ENOENT: it has expired, was cancelled, or never was. -ENOSPC: durable queue, and
 * the disk of the daemon's journal is full.
 */
int expiry_refresh(struct expiry *h, uint64_t id, uint64_t deadline_ns,
		   unsigned int flags, uint64_t *ret_deadline_ns);

/* Cancels a timer; @ret_timer: the deadline, period and cookie it had.
 * -ENOENT as above: its expiration may be on its way.
 */
int expiry_cancel(struct expiry *h, uint64_t id,
		  struct expiry_record *ret_timer);

/* Gets a timer. -ENOENT as above. */
int expiry_query(struct expiry *h, uint64_t id,
		 struct expiry_record *ret_timer);

/* Acknowledges an expiration of an acknowledging queue. -ENOENT: not delivered,
 * or acknowledged before; -EINVAL: not an acknowledging queue.
 */
int expiry_ack(struct expiry *h, uint64_t id);

/* Cancels and forgets every timer of the queue. */
int expiry_clear(struct expiry *h, uint64_t *ret_count);

/**
 * expiry_scan - list the timers of the queue
 * @cursor: in: 0 to start, else what the last call left; out: where to go on, 0
 *	when everything was seen
 * @rows: one record a timer, op EXPIRY_OP_QUERY, in no order; one that is
 *	delivered and not acknowledged carries EXPIRY_F_REDELIVERED
 * @max: room in @rows, at least 1
 *
 * Blocks. A timer armed during the whole scan is seen exactly once.
 *
 * Returns the number of rows, which may be 0 before the end, or:
 * -EINVAL	@max, or a cursor the server never gave
 * -ECANCELED	the scan was not continued for 2^20 records, or for a minute while
 *		nobody used the queue, and timers have moved; or the daemon was started
 *		anew, and the queue is durable: begin anew
 */
int expiry_scan(struct expiry *h, uint64_t *cursor,
		struct expiry_record *rows, uint32_t max);

/**
 * expiry_stat - counters of the queue and of the daemon
 * @stat: always filled in
 * @server: may be NULL; all zero when no daemon is between (device)
 * @server_size: sizeof(*server): a later library or daemon that has more
 *	writes no more than this
 *
 * Blocks. Returns 0 or an errno common to all.
 */
int expiry_stat(struct expiry *h, struct expiry_stat *stat,
		struct expiry_server_stat *server, size_t server_size);

/**
 * struct expiry_queue - one queue of a daemon's
 * @name: ends with a NUL; "" = anonymous
 * @daemon: what the daemon knows of it: number, owner, consumer
 * @stat: its counters, as expiry_stat() has them
 */
struct expiry_queue {
	char name[EXPIRY_NAME_MAX + 8];
	struct expiry_queue_stat daemon;
	struct expiry_stat stat;
};

/**
 * expiry_queues - list the queues of the daemon
 * @cursor: in: 0 to start, else what the last call left; out: where to go on, 0
 *	when everything was seen
 * @rows: one a queue, in no order. root and the daemon's own user see every
 *	queue, other users their own and those that they may look at. This
 *	handle's own anonymous queue is left out.
 * @max: room in @rows, at least 1
 *
 * Blocks. A queue that is there during the whole listing is seen exactly once.
 * The call neither attaches to a queue nor makes one.
 *
 * Returns the number of rows, which may be 0 before the end, or:
 * -EINVAL	@max
 * -EOPNOTSUPP	a device, or a daemon that cannot do it yet
 */
int expiry_queues(struct expiry *h, uint64_t *cursor,
		  struct expiry_queue *rows, uint32_t max);

/**
 * expiry_drop - remove this named queue and its timers, for all clients
 *
 * Blocks. Afterwards the handle can only be closed; other calls return
 * -ENOTCONN.
 *
 * -EINVAL	the queue has no name
 * -EBUSY	others are attached to it
 * -EOPNOTSUPP	a device
 */
int expiry_drop(struct expiry *h);

/**
 * expiry_rewind - make what was delivered and not acknowledged due again
 *
 * Device only; a daemon's queue does so by itself when a consumer attaches.
 *
 * -EINVAL	not an acknowledging queue
 * -ENOMEM	done in part, may be called again
 * -EOPNOTSUPP	a socket
 */
int expiry_rewind(struct expiry *h);

/* ------------------------------------------------------------------------
 * Non-blocking calls
 */

/**
 * expiry_post - send requests without waiting for their replies
 * @records: read during the call only; the caller's again when it returns
 *
 * Never blocks. Replies come by expiry_next(), in the order of the requests.
 * The handle collects small batches until expiry_flush(). A device carries
 * requests out at once.
 *
 * Returns how many records were taken, from the first on: fewer than @count,
 * even 0, when the window or the socket is full. Then take replies, poll and
 * try again.
 * -EINVAL as in expiry_submit(): nothing was taken.
 */
int expiry_post(struct expiry *h, const struct expiry_record *records,
		uint32_t count);

/**
 * expiry_flush - send what the handle has gathered
 *
 * Never blocks. Returns 0 if all of it was sent. Returns 1 if the socket is
 * full or not connected: call again when the fd is ready, see expiry_events().
 * With EXPIRY_OPEN_RECONNECT it may connect again, and take records that come with
 * the connection into the handle: look at expiry_pending() before polling.
 */
int expiry_flush(struct expiry *h);

/**
 * expiry_next - take what has arrived
 * @records: replies to expiry_post(), in order, and expirations; those have op
 *	EXPIRY_OP_EXPIRED (or EXPIRY_OP_CLOCK_SET, EXPIRY_OP_MISSED)
 * @max: room in @records, at least 1
 *
 * Never blocks. Also flushes, and tops up the credit.
 *
 * Returns the number of records; 0 = nothing is there now; -EINVAL: @max is 0.
 * After a connection broke, records that had arrived come first.
 */
int expiry_next(struct expiry *h, struct expiry_record *records, uint32_t max);

/* Returns the handle's file descriptor, for poll, epoll, sd-event or IORING_OP_POLL_ADD.
 * It stays the same and belongs to the handle: do not read, write or close it.
 * With EXPIRY_OPEN_RECONNECT it is an epoll file around the socket, and
 * outlives each connection. A program that polls reconnects by calling
 * expiry_next() when the fd is ready.
 */
int expiry_fd(const struct expiry *h);

/* Returns the events to poll the fd for: POLLIN, and POLLOUT while requests
 * wait to be sent or the last expiry_post() found the socket full. Call it
 * again after every other call on the handle.
 */
short expiry_events(const struct expiry *h);

/* Returns how many records expiry_next() can hand out at once, without the fd
 * being readable.
 */
uint32_t expiry_pending(const struct expiry *h);

/**
 * expiry_wait - wait until expiry_next() has something, or more can be posted
 * @timeout_ms: milliseconds; 0 = look only, -1 = for ever
 *
 * Blocks. Also flushes.
 *
 * Returns 1 if there is a record to take, room in the socket for requests, or
 * an errno to return. Spurious returns are possible. 0: timeout.
 * -EINTR: a signal.
 */
int expiry_wait(struct expiry *h, int timeout_ms);

/* ------------------------------------------------------------------------
 * Receiving
 */

/**
 * expiry_receive - take expirations, waiting for the first
 * @records: op EXPIRY_OP_EXPIRED, in order of deadline; on a REALTIME queue
 *	also EXPIRY_OP_CLOCK_SET; to an observer also EXPIRY_OP_MISSED. Flags:
 *	EXPIRY_F_REDELIVERED, and on a durable queue EXPIRY_F_LATE
 * @max: room in @records, at least 1
 * @timeout_ms: milliseconds; 0 = do not wait, -1 = for ever
 *
 * Returns the number of expirations; 0 = time is up; or:
 * -EINVAL	@max, or a handle opened without EXPIRY_OPEN_CONSUME or _OBSERVE
 * -EBUSY	replies to expiry_post() are outstanding: take them with
 *		expiry_next()
 * -EINTR	a signal came while it waited
 */
int expiry_receive(struct expiry *h, struct expiry_record *records,
		   uint32_t max, int timeout_ms);

/**
 * expiry_credit - request @nr more expirations
 *
 * For handles with EXPIRY_OPEN_MANUAL; others request credit by themselves.
 * Never blocks. Tries to flush; otherwise the next flush sends the credit.
 *
 * Returns 0, or:
 * -EINVAL	the handle does not consume, or requests credit by itself
 * -ENOBUFS	more than options.credit would be on their way or held
 */
int expiry_credit(struct expiry *h, uint32_t nr);

/* ------------------------------------------------------------------------
 * Words
 */

/**
 * expiry_explain - what an errno means here, and what to do about it
 * @error: negative or positive errno, of a call or of a record's status
 * @op: EXPIRY_OP_* it was the answer to; EXPIRY_OP_HELLO for expiry_open()
 *
 * Returns a constant English phrase without capital or full stop, never NULL.
 */
const char *expiry_explain(int error, unsigned int op);

/**
 * expiry_id_of - make an id of a name
 * @name: any bytes; @size: how many
 * @key: a secret of the program's, of 16 to 64 bytes. Without it nobody can choose
 *	names whose ids collide.
 * @key_size: its size
 * @id: the id, never 0; untouched on failure, like @ret_check
 * @ret_check: a cookie for programs that have none: names with the same id almost
 *	surely differ in it; may be NULL
 *
 * Keyed BLAKE2b (RFC 7693) with a digest of 16 bytes, whose halves are id and
 * check. The clients of other languages make the same of it. Two of n names have
 * the same id with a probability of n * n / 2^65: 3e-8 for a million. Never
 * blocks.
 *
 * Returns 0, or:
 * -EINVAL	@key_size
 */
int expiry_id_of(const void *name, size_t size, const void *key,
		 size_t key_size, uint64_t *id, uint64_t *ret_check);

/* Returns the library's version, as in "0.1.0". */
const char *expiry_version(void);

#ifdef __cplusplus
}
#endif

#endif /* EXPIRY_EXPIRY_H */
