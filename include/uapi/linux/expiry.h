/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR LGPL-2.1-or-later */
/*
 * expiry: queues of timers behind file descriptors.
 *
 * Every open file of /dev/expiry is a queue: a heap of timers on one clock.
 *
 *   open             a queue without a clock: configure it before anything else
 *                    (-ENOTCONN until then; poll says EPOLLERR). -EMFILE: the
 *                    user has too many queues (module parameter
 *                    queues_per_user) and no CAP_SYS_RESOURCE; -ENOMEM
 *   EXPIRY_IOC_FEATURES   what this kernel can do; also before CONFIG
 *   EXPIRY_IOC_CONFIG   clock, mode, slack and limit; once
 *   EXPIRY_IOC_SUBMIT   a batch of records, changed in place into their replies;
 *                    the same as IORING_OP_URING_CMD with cmd_op
 *                    EXPIRY_IOC_SUBMIT and a struct expiry_batch in the
 *                    command area of the SQE
 *   read             whole records (op EXPIRY_OP_EXPIRED), as many as are due
 *                    and fit; blocks until one is due unless O_NONBLOCK
 *                    (-EAGAIN). On a REALTIME queue that was stepped since the
 *                    last read the first record is EXPIRY_OP_CLOCK_SET; a step
 *                    alone wakes readers that asked with
 *                    EXPIRY_CONFIG_CLOCK_SET. -EINVAL: no room for a record;
 *                    -EFAULT, -ENOMEM, -EIO: no record is lost
 *   poll             EPOLLIN: an expiration can be read
 *   EXPIRY_IOC_STAT, _SCAN, _REWIND    what is in the queue; see the structs
 *
 * A request, its reply and an expiration are the same 32-byte struct in the
 * machine's own byte order, so that no layer parses or converts it.
 *
 * What changes the queue (LAYOUT, CONFIG, SUBMIT, REWIND) takes a descriptor
 * that is open for writing, read and what looks (STAT, SCAN) one for reading;
 * else -EBADF. FEATURES takes any.
 *
 * How this may grow. A command's number has the size of its struct. A struct
 * grows at its end, and a field there does what it did before if it is 0. So
 *
 *   a smaller struct than the kernel's     the missing fields are 0; of what
 *                    comes back the caller gets the part that it has room for
 *   a larger one     must be 0 behind what the kernel knows, else -E2BIG;
 *                    what comes back is 0 there
 *   less than the fields without a default -EINVAL
 *
 * A new bit of a flags or mode field, a new op, clock or layout is refused by an
 * older kernel: -EINVAL, an op -EOPNOTSUPP. FEATURES tells without trying.
 *
 * Spare in a record: the bits of @flags that have no name, and @status of a
 * request. They must be 0. They are for new flags, one bit each, and a new flag
 * may give meaning to a field that its op ignores. Without one an ignored field
 * stays the caller's own for ever.
 *
 * Times are on the caller's clocks: in a time namespace they are converted by its
 * offsets, in requests, replies, expirations, SCAN and STAT.
 */
#ifndef _UAPI_LINUX_EXPIRY_H
#define _UAPI_LINUX_EXPIRY_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct expiry_record - a request, its reply, or an expiration
 * @op: EXPIRY_OP_*
 * @flags: EXPIRY_F_*. In: a bit that is unknown or has no meaning for @op is
 *	-EINVAL. Out, when @status is 0: only bits about the result.
 * @status: in: must be 0 (else -EINVAL). Out: 0 or a negative errno. Only
 *	this field of a refused record changes.
 * @period_ms: milliseconds; 0 = once. Else each delivery arms the timer again
 *	for the first time after now that is a multiple of the period behind its
 *	deadline. Used by ARM; out of REFRESH, CANCEL, QUERY.
 * @count: in the place of @period_ms, out of EXPIRED: 0 = the timer has no
 *	period. Else the times that this record stands for, from @deadline_ns
 *	on: 1, or more if its reader was late. At most 2^32 - 1, also if there
 *	were more.
 * @id: names the timer. On a plain queue the reply to ARM gives it (generation
 *	<< 32 | slot number from 1). On a keyed queue the client chooses it. 0
 *	is never a timer.
 * @deadline_ns: nanoseconds, absolute on the queue's clock, or from now with
 *	EXPIRY_F_RELATIVE. A past deadline is due at once; EXPIRY_NEVER is never.
 * @cookie: the caller's own, returned unchanged
 */
struct expiry_record {
	__u8  op;
	__u8  flags;
	__s16 status;
	__extension__ union {
		__u32 period_ms;
		__u32 count;
	};
	__u64 id;
	__u64 deadline_ns;
	__u64 cookie;
};

/*
 * Requests. Errors common to all: -EINVAL (flags, status, id), -EOPNOTSUPP
 * (unknown op), -ENOMEM (no page available; nothing changed).
 *
 * ARM      in: deadline, cookie, period; id 0 (plain) or not 0 (keyed).
 *          out: id, deadline made absolute. On a keyed queue an armed id gets
 *          the new deadline, cookie and period in place; this
 *          acknowledges a delivered, unacknowledged one.
 *          -ENOSPC: the queue is at its limit; -EEXIST: EXPIRY_F_NEW and the
 *          id is armed. EXPIRY_F_REDELIVERED, for a periodic timer of an
 *          acknowledging queue: its last delivery waits for ACK, as a row of SCAN
 *          said (-EINVAL: any other timer). It stays in the reply.
 * REFRESH  in: id, deadline. out: deadline made absolute, cookie, period, and
 *          EXPIRY_F_REDELIVERED if a delivery waits for ACK.
 *          -ENOENT: no such timer is armed (any more).
 * CANCEL   in: id. out: deadline, cookie, period it had, and
 *          EXPIRY_F_REDELIVERED if a delivery still waits for ACK. -ENOENT.
 * ACK      in: id of a delivered timer of an acknowledging queue. out: deadline,
 *          cookie, period; with a period it is armed for that deadline, else it
 *          has ended. -ENOENT: not delivered or already acknowledged; -EINVAL:
 *          plain queue.
 * QUERY    in: id. out: deadline, cookie, period, and EXPIRY_F_REDELIVERED if a
 *          delivery waits for ACK. -ENOENT.
 * CLEAR    cancel and forget every timer of the queue; out: cookie = how many.
 */
#define EXPIRY_OP_ARM		1
#define EXPIRY_OP_REFRESH	2
#define EXPIRY_OP_CANCEL	3
#define EXPIRY_OP_ACK		4
#define EXPIRY_OP_QUERY		5
#define EXPIRY_OP_CLEAR		6

/* Records for readers; as a request: -EOPNOTSUPP. */
#define EXPIRY_OP_EXPIRED	16	/* id, the deadline it had, cookie, count */
#define EXPIRY_OP_CLOCK_SET	17	/* REALTIME was stepped; deadline_ns = now */

#define EXPIRY_F_RELATIVE	0x01	/* in, ARM REFRESH: deadline from now */
#define EXPIRY_F_REDELIVERED	0x02	/* out: delivered before; in, ARM: likewise */
#define EXPIRY_F_NEW		0x04	/* in, ARM keyed: -EEXIST if armed */
#define EXPIRY_F_LATER		0x08	/* in, ARM REFRESH: never bring forward */

#define EXPIRY_F_LATE		0x10	/* out, EXPIRED: due before the daemon began */

#define EXPIRY_NEVER		0xffffffffffffffffULL

/* Modes of a queue, for its whole life. */
#define EXPIRY_MODE_ACK		0x02	/* at least once: keep until ACK */
#define EXPIRY_MODE_KEYED	0x08	/* the client names the timers */
#define EXPIRY_MODE_ALL		(EXPIRY_MODE_ACK | EXPIRY_MODE_KEYED)

/**
 * struct expiry_features - EXPIRY_IOC_FEATURES: what this kernel can do
 * @abi: EXPIRY_ABI of the kernel: only grows, and by changes that no older
 *	program notices
 * @batch_max: EXPIRY_BATCH_MAX of the kernel
 * @features: EXPIRY_FEATURE_*
 * @clocks: bit n: clock_id n
 * @modes: EXPIRY_MODE_*
 * @config_flags: EXPIRY_CONFIG_*
 * @layouts: bit n: EXPIRY_LAYOUT_* n
 * @ops: bit n: EXPIRY_OP_* n, as a request
 * @record_flags: EXPIRY_F_* of requests
 * @limit_default: the limit of a queue that asks for none
 * @limit_max: the most without CAP_SYS_RESOURCE
 * @config_size: sizeof(struct expiry_config) in the kernel; likewise
 *	@batch_size, @scan_size, @stat_size
 *
 * Errors: -EFAULT, -EINVAL (room for less than @abi and @batch_max).
 */
struct expiry_features {
	__u32 abi;
	__u32 batch_max;
	__u64 features;
	__u32 clocks;
	__u32 modes;
	__u32 config_flags;
	__u32 layouts;
	__u32 ops;
	__u32 record_flags;
	__u64 limit_default;
	__u64 limit_max;
	__u32 config_size;
	__u32 batch_size;
	__u32 scan_size;
	__u32 stat_size;
};

#define EXPIRY_ABI		1

#define EXPIRY_FEATURE_URING_CMD	0x01	/* SUBMIT by io_uring */
#define EXPIRY_FEATURE_COUNT		0x02	/* missed times are counted */
#define EXPIRY_FEATURE_TIME_NS		0x04	/* deadlines on the caller's clocks */

/**
 * struct expiry_config - EXPIRY_IOC_CONFIG
 * @clock_id: CLOCK_REALTIME (0), CLOCK_MONOTONIC (1), CLOCK_BOOTTIME (7) or
 *	CLOCK_BOOTTIME_ALARM (9), which wakes a suspended machine
 * @mode: EXPIRY_MODE_*
 * @slack_ns: how late a wake-up may be, so that several share one; 0 = the
 *	precision of the machine's timers
 * @limit: most timers, armed and delivered-not-acknowledged together; 0 = the
 *	module's default. Out: the limit in force.
 * @flags: EXPIRY_CONFIG_*
 * @reserved: must be 0
 *
 * At least @clock_id and @mode. Errors: -EINVAL (a field; @limit above 2^30),
 * -E2BIG, -EBADF, -EBUSY (already configured), -EOPNOTSUPP (a flag for which
 * this kernel lacks what it takes; no clock of the machine can wake it),
 * -EPERM (@limit above the module's maximum and no CAP_SYS_RESOURCE;
 * CLOCK_BOOTTIME_ALARM and no CAP_WAKE_ALARM), -ENOMEM, -ENFILE, -EFAULT.
 */
struct expiry_config {
	__u32 clock_id;
	__u32 mode;
	__u64 slack_ns;
	__u64 limit;
	__u32 flags;
	__u32 reserved;
};

/*
 * A step of CLOCK_REALTIME wakes readers, as TFD_TIMER_CANCEL_ON_SET does for
 * timerfd: poll says EPOLLIN, and a read returns EXPIRY_OP_CLOCK_SET. -EINVAL on
 * another clock.
 */
#define EXPIRY_CONFIG_CLOCK_SET	0x01

/**
 * struct expiry_batch - EXPIRY_IOC_SUBMIT, by ioctl or by uring_cmd
 * @addr: address of the records, 8-byte aligned
 * @count: how many, 1 to EXPIRY_BATCH_MAX
 * @flags: must be 0
 *
 * Returns how many records were processed, each with its own status; fewer than
 * @count only if the memory at @addr ends there. Errors: -EINVAL (alignment,
 * count, flags), -EFAULT (the first record is not readable and writable memory:
 * nothing was done), -ENOTCONN (no config yet), -E2BIG, -EBADF,
 * -EINTR (a fatal signal came before the first record).
 *
 * At least @addr and @count. A struct of more than 16 bytes goes by io_uring only
 * in a ring with IORING_SETUP_SQE128 (-EINVAL).
 */
struct expiry_batch {
	__u64 addr;
	__u32 count;
	__u32 flags;
};
#define EXPIRY_BATCH_MAX	65536

/**
 * struct expiry_scan - EXPIRY_IOC_SCAN: list the timers of a queue
 * @addr: where records are written, 8-byte aligned (op EXPIRY_OP_QUERY)
 * @count: room in @addr, 1 to EXPIRY_BATCH_MAX
 * @flags: must be 0
 * @cursor: in: 0 to start, else what the last call left; out: where to
 *	continue, 0 at the end
 *
 * A timer armed during the whole scan is listed exactly once. A timer armed or
 * ended meanwhile may or may not be listed. Rows have no order. A timer with a
 * delivery that waits for ACK carries EXPIRY_F_REDELIVERED. Returns the number of
 * records written, which may be 0 before the end. At least all four fields.
 * Errors as SUBMIT; -ECANCELED: the scan was not continued for 2^20 records, or for
 * a minute while nobody used the queue, and timers have moved since. Begin anew.
 */
struct expiry_scan {
	__u64 addr;
	__u32 count;
	__u32 flags;
	__u64 cursor;
};

#define EXPIRY_LATENESS_BUCKETS	40

/**
 * struct expiry_stat - EXPIRY_IOC_STAT; also the body of the socket's STAT
 * @now_ns: now on the queue's clock
 * @next_ns: the earliest deadline, EXPIRY_NEVER if nothing is armed. May be too
 *	early while cancelled timers are being cleaned up.
 * @armed: timers armed
 * @unacked: timers delivered and not acknowledged
 * @limit: most timers
 * @nodes: heap nodes, live and stale; never above twice the live ones by more
 *	than a constant
 * @pages_heap: pages the heap uses; likewise @pages_slots, @pages_index
 * @pages_resident: of these, held in memory now
 * @arms: since the queue was made; likewise @refreshes, @cancels, @acks,
 * @delivered, @redelivered
 * @refused: records answered with an error
 * @refused_limit: of these, because of the queue's limit
 * @clock_sets: steps of CLOCK_REALTIME seen
 * @lateness_max_ns: of the deliveries in @lateness
 * @past: deliveries of timers whose deadline had passed when it was set
 * @held: deliveries that were due before the daemon's consumer took any: there
 *	was no consumer, it had given no credit, or it did not read. And those that
 *	were due when a step of CLOCK_REALTIME was seen: the module does not know
 *	its readers' reasons and counts these alone.
 * @lateness: bucket n counts the deliveries that were late by less than 2^n ns,
 *	and not less than 2^(n-1) ns. The last bucket counts all the rest.
 *	Redeliveries, @past and @held are not counted.
 * @clock_id: as configured; likewise @mode
 */
struct expiry_stat {
	__u64 now_ns;
	__u64 next_ns;
	__u64 armed;
	__u64 unacked;
	__u64 limit;
	__u64 nodes;
	__u64 pages_heap;
	__u64 pages_slots;
	__u64 pages_index;
	__u64 pages_resident;
	__u64 arms;
	__u64 refreshes;
	__u64 cancels;
	__u64 acks;
	__u64 delivered;
	__u64 redelivered;
	__u64 refused;
	__u64 refused_limit;
	__u64 clock_sets;
	__u64 lateness_max_ns;
	__u32 clock_id;
	__u32 mode;
	__u64 past;
	__u64 held;
	__u64 reserved[1];
	__u64 lateness[EXPIRY_LATENESS_BUCKETS];
};

#define EXPIRY_IOC_MAGIC	0xEB
#define EXPIRY_IOC_CONFIG	_IOWR(EXPIRY_IOC_MAGIC, 1, struct expiry_config)
#define EXPIRY_IOC_SUBMIT	_IOW(EXPIRY_IOC_MAGIC, 2, struct expiry_batch)
#define EXPIRY_IOC_STAT		_IOR(EXPIRY_IOC_MAGIC, 3, struct expiry_stat)
#define EXPIRY_IOC_SCAN		_IOWR(EXPIRY_IOC_MAGIC, 4, struct expiry_scan)
/* Everything delivered and not acknowledged is due again, marked. Returns 0.
 * -EINVAL: not an acknowledging queue; -ENOMEM: in part, may be repeated.
 */
#define EXPIRY_IOC_REWIND	_IO(EXPIRY_IOC_MAGIC, 5)
/* How the queue's heap is laid out, EXPIRY_LAYOUT_*, as the argument itself;
 * before CONFIG, which takes EXPIRY_LAYOUT_SORTED if nothing was said. Speed
 * and memory traffic differ, nothing else does. Returns 0.
 * -EINVAL: no such layout; -EBUSY: already configured; -EINTR: killed.
 */
#define EXPIRY_IOC_LAYOUT	_IO(EXPIRY_IOC_MAGIC, 6)
#define EXPIRY_LAYOUT_SUBTREE	1	/* the B-heap: a subtree a page */
#define EXPIRY_LAYOUT_SORTED	2	/* a heap of pages, each sorted */
#define EXPIRY_LAYOUT_RADIX	3	/* a radix heap of chains of pages */
#define EXPIRY_IOC_FEATURES		_IOR(EXPIRY_IOC_MAGIC, 7, struct expiry_features)

#endif /* _UAPI_LINUX_EXPIRY_H */
