// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <sys/ioctl.h>

#include "oracle.h"
#include "report.h"
#include "values.h"

#define ERRNOS_MAX	8
#define SCAN_ROWS	128U
#define DUE_TRIES	2000	/* of a millisecond */
#define NODES_SPARE	4096

/* expiry(4). EINTR of most of them is for a process being killed. */
static const struct {
	const char *name;
	int errnos[ERRNOS_MAX];
} rules[] = {
	[RULE_OPEN] = { "open", { EMFILE, ENOMEM } },
	[RULE_CONFIG] = { "CONFIG", { EINVAL, EBUSY, EPERM, ENOMEM, EFAULT,
					EOPNOTSUPP } },
	[RULE_LAYOUT] = { "LAYOUT", { EINVAL, EBUSY } },
	[RULE_SUBMIT] = { "SUBMIT", { EINVAL, EFAULT, ENOTCONN } },
	[RULE_STAT] = { "STAT", { ENOTCONN, EFAULT } },
	[RULE_SCAN] = { "SCAN", { EINVAL, EFAULT, ENOTCONN, ECANCELED } },
	[RULE_REWIND] = { "REWIND", { EINVAL, ENOTCONN } },
	[RULE_READ] = { "read", { EAGAIN, EINVAL, EFAULT, EINTR, ENOTCONN } },
	[RULE_PREAD] = { "pread", { ESPIPE, EINVAL } },
	[RULE_MMAP] = { "mmap", { ENODEV, EINVAL } },
	[RULE_WRITE] = { "write", { EINVAL, EBADF } },
	[RULE_OTHER_IOCTL] = { "ioctl", { ENOTTY, EINVAL } },
	[RULE_URING_CMD] = { "uring_cmd", { EINVAL, EFAULT, ENOTCONN,
					    EOPNOTSUPP, E2BIG, ECANCELED } },
	[RULE_URING_READ] = { "uring read", { EAGAIN, EINVAL, EFAULT, EINTR,
					      ENOTCONN, ECANCELED } },
	[RULE_STATUS] = { "a record's status", { EOPNOTSUPP, EINVAL, ENOENT,
						 EEXIST, ENOSPC } },
};

/* Errors that only short memory or failing swap can cause. */
static bool is_shortage(enum rule rule, int err)
{
	switch (err) {
	case EFAULT:
		return rule != RULE_STATUS;
	case ENOMEM:
		return true;
	/* io_uring's own, where it has no memory for a command that is to wait. */
	case EAGAIN:
		return rule == RULE_URING_CMD;
	case ENFILE:
		return rule == RULE_OPEN || rule == RULE_CONFIG;
	case EIO:
		return rule == RULE_READ || rule == RULE_URING_READ ||
		       rule == RULE_STATUS || rule == RULE_REWIND ||
		       rule == RULE_SCAN;
	default:
		return false;
	}
}

void oracle_errno(enum rule rule, int err)
{
	unsigned int i;

	/* A closed number may be another file's by now. */
	if (!err || state.closes)
		return;
	for (i = 0; i < ERRNOS_MAX && rules[rule].errnos[i]; i++)
		if (rules[rule].errnos[i] == err)
			return;
	if (state.faults && is_shortage(rule, err))
		return;
	finding("%s ends with errno %d (%s), of which nothing is said",
		rules[rule].name, err, strerror(err));
}

void oracle_replies(const struct expiry_record *asked,
		   const struct expiry_record *replies, uint32_t count)
{
	struct expiry_record refused;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (replies[i].op != asked[i].op) {
			finding("op %u came back as %u", asked[i].op,
				replies[i].op);
			return;
		}
		if (!replies[i].status) {
			if (asked[i].op == EXPIRY_OP_ARM && !replies[i].id)
				finding("an armed timer has no id");
			continue;
		}
		if (replies[i].status > 0) {
			finding("status %d of op %u", replies[i].status,
				replies[i].op);
			return;
		}
		oracle_errno(RULE_STATUS, -replies[i].status);
		refused = asked[i];
		refused.status = replies[i].status;
		if (memcmp(&refused, &replies[i], sizeof(refused)))
			finding("op %u was refused with %d and changed",
				asked[i].op, replies[i].status);
	}
}

void oracle_read(unsigned int queue, const struct expiry_record *records,
		uint32_t count, bool in_order)
{
	int clock_id = state.clock_id[queue];
	uint64_t now_ns = clock_ns(clock_id), last_ns = 0;
	const struct expiry_record *record;

	for (record = records; record < records + count; record++) {
		if (record->op == EXPIRY_OP_CLOCK_SET) {
			if (clock_id != CLOCK_REALTIME)
				finding("CLOCK_SET on clock %d", clock_id);
			continue;
		}
		if (record->op != EXPIRY_OP_EXPIRED || record->status ||
		    record->flags & ~EXPIRY_F_REDELIVERED || !record->id) {
			finding("an expiration with op %u, flags %#x, status %d, id %llx",
				record->op, record->flags, record->status,
				record->id);
			return;
		}
		if (record->deadline_ns > now_ns &&
		    !(clock_id == CLOCK_REALTIME && state.time_set))
			finding("delivered before its deadline");
		if (in_order && record->deadline_ns < last_ns)
			finding("a read out of order of deadline");
		last_ns = record->deadline_ns;
	}
}

static int stat_of(int fd, struct expiry_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	if (!ioctl(fd, EXPIRY_IOC_STAT, stat))
		return 0;
	oracle_errno(RULE_STAT, errno);
	return -errno;
}

/* Due timers become readable, sooner or later. */
static void oracle_due(unsigned int queue, int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct expiry_record records[SCAN_ROWS];
	struct expiry_stat stat;
	ssize_t ret;
	int i;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < DUE_TRIES; i++) {
		if (stat_of(fd, &stat) || stat.next_ns > stat.now_ns ||
		    stat.next_ns == EXPIRY_NEVER)
			return;
		if (poll(&pollfd, 1, 1) <= 0)
			continue;
		ret = read(fd, records, sizeof(records));
		if (ret < 0)
			oracle_errno(RULE_READ, errno);
		if (ret > 0) {
			oracle_read(queue, records, ret / RECORD, false);
			return;
		}
	}
	finding("something is due and cannot be read");
}

/**
 * struct rows - a scan's result
 * @nr: rows
 * @armed: of these, known to QUERY
 * @again: of these, periodic and with a delivery that may wait for its ACK
 * @first_ns: the earliest deadline of the other armed ones
 */
struct rows {
	uint64_t nr;
	uint64_t armed;
	uint64_t again;
	uint64_t first_ns;
};

/* Submits a batch: 0, or -1 where memory was short. */
static int submit_all(int fd, struct expiry_record *records, uint32_t count)
{
	struct expiry_batch batch = { .addr = (uintptr_t)records,
				      .count = count };
	uint32_t i;

	if (ioctl(fd, EXPIRY_IOC_SUBMIT, &batch) != (int)count) {
		if (!state.faults)
			finding("a batch of the oracle's is cut");
		return -1;
	}
	for (i = 0; i < count; i++) {
		if (!records[i].status || records[i].status == -ENOENT)
			continue;
		oracle_errno(RULE_STATUS, -records[i].status);
		return -1;
	}
	return 0;
}

/* Counts rows of a scan. QUERY tells which are armed, and returns those as they
 * are listed.
 */
static int count_rows(int fd, uint32_t mode, const struct expiry_record *listed,
		      uint32_t count, struct rows *rows)
{
	struct expiry_record asked[SCAN_ROWS];
	const struct expiry_record *row;
	uint32_t i;
	bool waits;

	for (i = 0; i < count; i++)
		asked[i] = (struct expiry_record) { .op = EXPIRY_OP_QUERY,
						    .id = listed[i].id };
	if (submit_all(fd, asked, count))
		return -1;
	for (i = 0; i < count; i++) {
		row = &listed[i];
		waits = row->flags & EXPIRY_F_REDELIVERED;
		rows->nr++;
		if (asked[i].status) {
			if (!waits)
				finding("a row is neither armed nor delivered");
			continue;
		}
		rows->armed++;
		if (memcmp(row, &asked[i], sizeof(*row)))
			finding("QUERY answers otherwise than SCAN");
		if (row->period_ms && (waits || !(mode & EXPIRY_MODE_ACK)))
			rows->again++;
		/* One to be repeated has a deadline for after that. */
		if (!(waits && row->period_ms) &&
		    row->deadline_ns < rows->first_ns)
			rows->first_ns = row->deadline_ns;
	}
	return 0;
}

static int scan_all(int fd, uint32_t mode, struct rows *rows)
{
	struct expiry_record records[SCAN_ROWS];
	struct expiry_scan scan = { .addr = (uintptr_t)records,
				    .count = SCAN_ROWS };
	int ret;

	*rows = (struct rows) { .first_ns = EXPIRY_NEVER };
	do {
		ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);
		if (ret < 0) {
			oracle_errno(RULE_SCAN, errno);
			return -errno;
		}
		if (ret && count_rows(fd, mode, records, ret, rows))
			return -1;
	} while (scan.cursor);
	return 0;
}

/* Cancels timers that are armed with a row like @again's, in an acknowledging
 * queue. The reply is flagged if a delivery still waits for its ACK, and that is
 * counted in *@waiting; else the timer has ended, which *@ended counts.
 */
static int cancel_all(int fd, uint64_t *waiting, uint64_t *ended)
{
	struct expiry_record records[SCAN_ROWS], cancel;
	struct expiry_scan scan = { .addr = (uintptr_t)records,
				    .count = SCAN_ROWS };
	int ret, i;

	*waiting = *ended = 0;
	do {
		ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);
		if (ret < 0)
			return -1;
		for (i = 0; i < ret; i++) {
			if (!records[i].period_ms ||
			    !(records[i].flags & EXPIRY_F_REDELIVERED))
				continue;
			cancel = (struct expiry_record) {
				.op = EXPIRY_OP_CANCEL, .id = records[i].id,
			};
			if (submit_all(fd, &cancel, 1))
				return -1;
			if (cancel.status)
				finding("a periodic timer is not armed");
			else if (cancel.flags & EXPIRY_F_REDELIVERED)
				++*waiting;
			else
				++*ended;
		}
	} while (scan.cursor);
	return 0;
}

/* Checks that listed timers are the counted ones, and that CLEAR removes all.
 */
static void oracle_rows(int fd)
{
	struct expiry_record clear = { .op = EXPIRY_OP_CLEAR };
	struct expiry_batch batch = { .addr = (uintptr_t)&clear, .count = 1 };
	uint64_t delivered, waiting, ended = 0;
	struct expiry_stat stat;
	struct rows rows;

	if (stat_of(fd, &stat) || scan_all(fd, stat.mode, &rows))
		return;
	if (rows.armed != stat.armed)
		finding("%llu listed and armed, %llu counted so",
			(unsigned long long)rows.armed, stat.armed);
	delivered = rows.nr - rows.armed;
	if (stat.unacked < delivered || stat.unacked > delivered + rows.again)
		finding("%llu listed as delivered, %llu perhaps, %llu counted so",
			(unsigned long long)delivered,
			(unsigned long long)rows.again, stat.unacked);
	if (stat.next_ns > rows.first_ns)
		finding("a timer is due before the earliest");
	if (stat.nodes < stat.armed ||
	    stat.nodes > 2 * stat.armed + NODES_SPARE)
		finding("%llu nodes for %llu timers", stat.nodes, stat.armed);
	if (stat.mode & EXPIRY_MODE_ACK) {
		if (cancel_all(fd, &waiting, &ended))
			return;
		if (stat.unacked != delivered + waiting)
			finding("%llu delivered and %llu repeated, %llu counted so",
				(unsigned long long)delivered,
				(unsigned long long)waiting, stat.unacked);
	}
	if (ioctl(fd, EXPIRY_IOC_SUBMIT, &batch) != 1 || clear.status) {
		if (!state.faults)
			finding("CLEAR is refused with %d", clear.status);
		return;
	}
	if (stat_of(fd, &stat))
		return;
	if (clear.cookie != rows.nr - ended)
		finding("%llu listed and %llu cleared",
			(unsigned long long)(rows.nr - ended), clear.cookie);
	if (stat.armed || stat.unacked || stat.next_ns != EXPIRY_NEVER)
		finding("something is left after CLEAR");
}

void oracle_queues(void)
{
	struct expiry_stat stat;
	unsigned int i;
	int err;

	for (i = 0; i < QUEUES; i++) {
		struct pollfd pollfd = { .fd = state.fd[i], .events = POLLIN };

		if (state.fd[i] < 0)
			continue;
		err = stat_of(state.fd[i], &stat);
		if (err == -ENOTCONN && poll(&pollfd, 1, 0) >= 0 &&
		    pollfd.revents != POLLERR)
			finding("a queue without a clock polls %#x",
				pollfd.revents);
		if (err)
			continue;
		state.mode[i] = stat.mode;
		state.clock_id[i] = stat.clock_id;
		oracle_due(i, state.fd[i]);
		oracle_rows(state.fd[i]);
	}
}
