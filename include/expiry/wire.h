/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The wire format of expiryd's Unix stream socket beside the records of
 * <linux/expiry.h>. docs/protocol.md is the normative text.
 *
 * Everything is a multiple of 32 bytes in the machine's own byte order. The
 * first record of a connection is HELLO. Replies come in the order of their
 * requests; expirations may stand between them.
 */
#ifndef EXPIRY_WIRE_H
#define EXPIRY_WIRE_H

#include <linux/expiry.h>

#define EXPIRY_WIRE_VERSION	1
#define EXPIRY_SOCKET_DEFAULT	"/run/expiryd/socket"
#define EXPIRY_SOCKET_USER	"expiry/socket"	/* in $XDG_RUNTIME_DIR */

#define EXPIRY_OP_HELLO		64
#define EXPIRY_OP_CREDIT	65	/* period_ms = more credit; no reply */
#define EXPIRY_OP_SCAN		66	/* id = cursor, period_ms = most rows */
#define EXPIRY_OP_STAT		67	/* reply: period_ms units of 32 bytes follow */
#define EXPIRY_OP_DROP		68	/* remove this named queue */
#define EXPIRY_OP_QUEUES	69	/* id = cursor, period_ms = most queues */
#define EXPIRY_OP_MISSED	70	/* to an observer: cookie = copies dropped */

#define EXPIRY_HELLO_CONSUME	0x01	/* this connection takes the expirations */
#define EXPIRY_HELLO_ACK	0x02	/* EXPIRY_MODE_ACK */
#define EXPIRY_HELLO_DURABLE	0x04	/* the queue outlives daemon and machine */
#define EXPIRY_HELLO_KEYED	0x08	/* EXPIRY_MODE_KEYED */
#define EXPIRY_HELLO_EXISTING	0x10	/* only a queue that exists, else -ENOENT */
#define EXPIRY_HELLO_OBSERVE	0x40	/* copies of the consumer's records */

#define EXPIRY_WINDOW_MASK	0xffffffffU
#define EXPIRY_COMMIT_SHIFT	32

#define EXPIRY_NAME_MAX		24
#define EXPIRY_NAME_CHARACTERS	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
				"abcdefghijklmnopqrstuvwxyz" \
				"0123456789._-"

/**
 * struct expiry_hello - the first record of a connection, as sent
 * @op: EXPIRY_OP_HELLO
 * @flags: EXPIRY_HELLO_*
 * @version: EXPIRY_WIRE_VERSION, in place of a record's status
 * @clock_id: 0, 1 or 7, in place of a record's period
 * @name: [A-Za-z0-9._-], NUL-padded, all 24 bytes may be used
 *
 * An empty @name is an anonymous queue, which lives as long as the connection.
 * With EXPIRY_HELLO_EXISTING it means no queue: STAT and QUEUES only.
 *
 * The reply is a struct expiry_record: status; id = timers in the queue,
 * deadline_ns = now on its clock, cookie & EXPIRY_WINDOW_MASK = most records the
 * server takes in flight on this connection. The queue is durable if flags have
 * EXPIRY_HELLO_DURABLE; then cookie >> EXPIRY_COMMIT_SHIFT = milliseconds between
 * flushes, 0 = requests are answered once they are on the disk.
 */
struct expiry_hello {
	__u8  op;
	__u8  flags;
	__s16 version;
	__u32 clock_id;
	char  name[EXPIRY_NAME_MAX];
};

#define EXPIRY_ENGINE_EMBEDDED	1	/* queues live and die with the daemon */
#define EXPIRY_ENGINE_KERNEL	2	/* queues live in the kernel module */

#define EXPIRY_LOOP_IO_URING	1
#define EXPIRY_LOOP_EPOLL	2	/* more system calls, where io_uring is refused */

#define EXPIRY_SERVER_BUCKETS	40

/**
 * struct expiry_server_stat - second part of a STAT reply's body
 * @engine: EXPIRY_ENGINE_*
 * @consumers: 1 if this queue has a consumer, else 0
 * @credit: expirations that its consumer may still get
 * @producers: connections attached to this queue, without observers
 * @uptime_ns: since the daemon started
 * @queues: of the whole daemon; likewise all fields below
 * @connections: open now
 * @records: requests answered since the start
 * @expirations: sent since the start
 * @refused_connections: for a limit; likewise @refused_queues, @refused_timers
 * @closed_protocol: connections ended for breaking the protocol
 * @refused_busy: requests answered -EBUSY: they had waited too long
 * @refused_credit: times that a consumer's credit was cut to its limit
 * @closed_backlog: connections ended for unread memory at its limit
 * @backlog: bytes of that memory now
 * @loop: EXPIRY_LOOP_*
 * @turn_ns: turns of the daemon's loop, by their time
 * @batch: batches of requests, by their number of requests
 * @request_ns: requests, by the time until their answers
 * @timers: armed, or delivered and not acknowledged, in all queues
 * @next_ns: the earliest deadline of all queues, as time of day
 * @lateness_max_ns: the most lateness of an expiration since the start
 * @closed_hello: connections ended without a timely HELLO
 * @log_dropped: lines of the daemon's log lost since the start
 * @log_left_out: lines about clients left out: beyond a user's budget
 * @refused_observers: HELLOs with OBSERVE above a queue's limit
 * @copies_missed: copies dropped because their observer did not read
 * @durable: of a durable queue, a number that no other one ever has, else 0
 * @journal_queues: durable queues; likewise all fields below are the journal's
 * @journal_timers: in these queues; the module's engine may count too many
 * @journal_overdue: of these when the daemon started
 * @journal_waiting: records that wait for the disk now
 * @journal_records: written since the start; likewise @journal_commits, blocks
 * @journal_bytes: written since the start, with checkpoints and new segments
 * @journal_size: bytes of its files now
 * @journal_checkpoints: complete ones since the start
 * @journal_failures: failed writes and flushes since the start
 * @journal_failed: threads whose journal takes nothing now
 * @refused_journal: requests refused because it was full or had failed
 * @commit_ns: commits, by the time until they were written and, unless there is an
 *	interval, flushed
 *
 * Bucket n of @turn_ns, @batch, @request_ns and @commit_ns counts values below
 * 2^n and not below 2^(n-1); the last bucket counts all greater values. A turn
 * does not include waiting. @request_ns is the time from when the daemon had a
 * request to when it handed the answer to the kernel.
 *
 * @timers and @next_ns may be some hundredths of a second old. @next_ns is
 * EXPIRY_NEVER if nothing is armed, and 0 if it is not known: there are very many
 * queues. @lateness_max_ns leaves out redeliveries, and the expirations that
 * struct expiry_stat counts as @past or @held. Lines are lost if the log is not
 * read in time or cannot be written.
 *
 * The body is a struct expiry_stat followed by this. A later daemon may append
 * to it, so a client reads the fields it knows and skips the other units.
 */
struct expiry_server_stat {
	__u32 engine;
	__u32 consumers;
	__u32 credit;
	__u32 producers;
	__u64 uptime_ns;
	__u64 queues;
	__u64 connections;
	__u64 records;
	__u64 expirations;
	__u64 refused_connections;
	__u64 refused_queues;
	__u64 refused_timers;
	__u64 closed_protocol;
	__u64 refused_busy;
	__u64 refused_credit;
	__u64 closed_backlog;
	__u64 backlog;
	__u32 loop;
	__u32 reserved;
	__u64 turn_ns[EXPIRY_SERVER_BUCKETS];
	__u64 batch[EXPIRY_SERVER_BUCKETS];
	__u64 request_ns[EXPIRY_SERVER_BUCKETS];
	__u64 timers;
	__u64 next_ns;
	__u64 lateness_max_ns;
	__u64 closed_hello;
	__u64 log_dropped;
	__u64 log_left_out;
	__u64 refused_observers;
	__u64 copies_missed;
	__u64 durable;
	__u64 journal_queues;
	__u64 journal_timers;
	__u64 journal_overdue;
	__u64 journal_waiting;
	__u64 journal_records;
	__u64 journal_commits;
	__u64 journal_bytes;
	__u64 journal_size;
	__u64 journal_checkpoints;
	__u64 journal_failures;
	__u64 journal_failed;
	__u64 refused_journal;
	__u64 reserved2[3];
	__u64 commit_ns[EXPIRY_SERVER_BUCKETS];
};

/**
 * struct expiry_queues_row - the record that begins a queue in the reply to
 *	QUEUES
 * @op: EXPIRY_OP_QUEUES
 * @status: 0; otherwise this record is the whole reply
 * @units: number of units of 32 bytes that follow
 * @name: as in struct expiry_hello
 *
 * The units are struct expiry_stat, then struct expiry_queue_stat, to which a
 * later daemon may append. @units is 0 in the last record. Its cookie (struct
 * expiry_record) is the cursor to continue with, 0 = the list is complete.
 */
struct expiry_queues_row {
	__u8  op;
	__u8  flags;
	__s16 status;
	__u32 units;
	char  name[EXPIRY_NAME_MAX];
};

#define EXPIRY_QUEUE_DECLARED	0x8000	/* by a file: expiry.queue(5) */
#define EXPIRY_QUEUE_DURABLE	0x4000	/* it outlives daemon and machine */
#define EXPIRY_NO_GROUP		0xffffffffU

/**
 * struct expiry_queue_stat - what the daemon knows of a queue, for QUEUES
 * @number: unique while the daemon runs
 * @uid: its owner
 * @connections: attached to it, without observers
 * @consumers: 1 if it has a consumer, else 0
 * @credit: expirations that the consumer may still get
 * @consumer_pid: the consumer's process, 0 = none
 * @observers: connections that observe it
 * @access: mode, EXPIRY_QUEUE_DECLARED and _DURABLE; 0 = unknown
 * @gid: its group, EXPIRY_NO_GROUP = none; only with @access
 *
 * The mode has three octal digits like that of a file. An older daemon does not
 * report @access.
 */
struct expiry_queue_stat {
	__u64 number;
	__u32 uid;
	__u32 connections;
	__u32 consumers;
	__u32 credit;
	__u32 consumer_pid;
	__u32 observers;
	__u32 access;
	__u32 gid;
	__u64 reserved[3];
};

#endif /* EXPIRY_WIRE_H */
