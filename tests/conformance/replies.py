# SPDX-License-Identifier: LGPL-2.1-or-later
"""Replies that are more than a status: HELLO, CLEAR, SCAN, STAT, DROP,
QUEUES."""

import os

from wire import (CLEAR, DROP, ENOENT, HELLO, LISTED_STAT, NEVER, QUEUES,
                  QUEUES_ROW, QUEUE_STAT, QUEUE_STAT_SIZE, RECORD, REDELIVERED,
                  SCAN, SERVER_STAT, SIZE, STAT)


class Status:
    """A reply with one of several statuses, its record otherwise unchanged."""
    busy_is_refusal = True

    def __init__(self, record, statuses):
        self.record = record
        self.statuses = statuses
        self.status = None

    def allowed(self):
        return "the same record with status %s" % (self.statuses,)

    def reply(self, queue, record, now):
        self.status = record[2]
        if record[2] not in self.statuses or record[0] != self.record[0]:
            return False
        return not record[2] or \
            record == (*self.record[:2], record[2], *self.record[3:])


class Hello:
    """@statuses: what may come; @fields: op, flags, clock as sent"""
    busy_is_refusal = True

    def __init__(self, flags, clock, statuses, exact=True, delivered=0):
        self.flags = flags
        self.clock = clock
        self.statuses = statuses
        self.exact = exact
        self.status = None
        self.delivered = delivered

    def allowed(self):
        return "HELLO, flags %d, clock %d, status %s, and the queue's counts" \
            % (self.flags, self.clock, self.statuses)

    def reply(self, queue, record, now):
        op, flags, status, clock, timers, time, flight = record
        self.status = status
        if op != HELLO or status not in self.statuses:
            return False
        if self.exact and (flags != self.flags or clock != self.clock):
            return False
        if status:
            return True
        if queue is None:
            return True
        low, high = queue.bounds(now, True)[2]
        high += queue.delivered - self.delivered + queue.nr_counted_twice()
        if not low <= timers <= high or flight < 1:
            return False
        queue.in_flight = flight
        return queue.unclocked or queue.sent_at <= time <= now


class Clear:
    def __init__(self, credit):
        self.credit = credit

    def allowed(self):
        return "CLEAR, status 0, and as many as the queue has"

    def reply(self, queue, record, now):
        op, flags, status, _, _, _, cookie = record
        return op == CLEAR and not flags and not status and \
            queue.cleared(cookie, now, self.credit)


class Scan:
    """One page of a listing. @seen: ids of the pages before, which grows"""
    is_long = True

    def __init__(self, queue, seen, rows):
        self.seen = seen
        self.rows = rows
        self.credit = queue.credit_out
        self.cursor = None
        self.done = False

    def allowed(self):
        return "SCAN, rows"

    def reply(self, queue, record, now):
        """One that is refused."""
        return False

    def begin(self, record):
        self.done = False

    def feed(self, queue, record, now):
        op, flags, status, period, timer, deadline, cookie = record
        if op != SCAN or status:
            return "a record with op 66 and status 0"
        if not timer:
            self.done = True
            self.cursor = cookie
            return None
        self.rows -= 1
        if self.rows < 0:
            return "no more rows than were asked for"
        if timer in self.seen:
            return "each timer once"
        self.seen[timer] = None
        known = queue.far.get(timer)
        if known is not None:
            return None if (deadline, cookie, period) == known and not flags \
                else "far timer %s, flags 0" % (known,)
        return self.near(queue, record, now)

    def near(self, queue, record, now):
        _, flags, _, period, number, deadline, cookie = record
        timer = queue.near.get(number)
        if number in queue.just:
            return None
        if timer is None:
            return "no such timer"
        if cookie != timer.cookie or not (
                period == timer.period or timer.ended):
            return str(timer)
        if timer.again or timer.unsure or timer.doubt:
            return None
        taken = self.credit and timer.due is not None and timer.due <= now
        if flags & ~REDELIVERED or flags and not queue.acking:
            return str(timer)
        if timer.due is None:
            if queue.acking and flags and (timer.given is not None or
                                           timer.owed):
                return None
            return str(timer) + ": REDELIVERED"
        if flags and timer.given is None and not taken:
            return str(timer) + ": not delivered"
        if timer.given is None or not timer.period:
            steps = timer.steps(deadline)
            if steps is None or (steps and not taken):
                return str(timer)
        return None


def check_scanned(queue, seen, credit):
    """All pages were read: what is missing? A text or None."""
    now = queue.now()
    for timer in queue.far:
        if timer not in seen:
            return "far timer %#x %s is not listed" % (timer, queue.far[timer])
    for number, timer in queue.near.items():
        low, _ = queue.present(timer, now, credit)
        if low and number not in seen and not timer.again:
            return "near timer is not listed: %s" % timer
    return None


class Long:
    """A reply whose first record says how many units follow."""
    is_long = True

    def reply(self, queue, record, now):
        """One that is refused."""
        return False

    def __init__(self, queue=None):
        if queue:
            self.credit = queue.credit_out
            self.delivered = queue.delivered
        self.done = False
        self.head = None
        self.units = []
        self.left = 0

    def begin(self, record):
        self.head = None

    def check_stat(self, queue, body, now):
        """struct expiry_stat; a text if the model knows better."""
        (at, first, armed, unacked, limit, _, _, _, _, _, arms, refreshes,
         cancels, acks, delivered, redelivered, _, _, _, _,
         clock, mode) = QUEUE_STAT.unpack_from(body)
        armed_may, unacked_may, _ = queue.bounds(now, self.credit)
        slack = queue.delivered - self.delivered
        if not armed_may[0] <= armed <= armed_may[1] + slack:
            return "armed %s, not %d" % (armed_may, armed)
        if not unacked_may[0] - slack <= unacked <= unacked_may[1] + slack:
            return "unacked %s, not %d" % (unacked_may, unacked)
        if clock != queue.clock or mode != queue.mode():
            return "clock %d mode %d, not %d and %d" % (
                queue.clock, queue.mode(), clock, mode)
        if armed + unacked > limit:
            return "a limit of %d at least" % (armed + unacked)
        if not queue.unclocked and not queue.sent_at <= at <= now:
            return "now between %d and %d, not %d" % (queue.sent_at, now, at)
        low = self.delivered
        counts = (("arms", queue.arms, arms),
                  ("refreshes", queue.refreshes, refreshes),
                  ("acks", queue.acks, acks))
        for name, wanted, found in counts:
            if wanted != found:
                return "%s %d, not %d" % (name, wanted, found)
        if queue.counted and cancels != queue.cancels:
            return "cancels %d, not %d" % (queue.cancels, cancels)
        may = queue.credit_lost + self.credit
        if not low <= delivered <= queue.delivered + may:
            return "delivered %d to %d, not %d" % (
                low, queue.delivered + may, delivered)
        if redelivered > delivered:
            return "redelivered at most %d, not %d" % (delivered, redelivered)
        least = min((value[0] for value in queue.far.values()), default=NEVER)
        if not self.credit and queue.near:
            least = min([least] + [
                timer.due for timer in queue.near.values()
                if timer.due is not None and not timer.again and
                not timer.doubt])
        if first > least and not queue.acking:
            return "next %d at most, not %d" % (least, first)
        return None


class Stat(Long):
    """@ordered: it is asked where CREDIT is given, so none is on its way"""

    def __init__(self, queue, connections, consumer, ordered):
        super().__init__(queue)
        self.connections = connections
        self.consumer = consumer
        self.ordered = ordered

    def allowed(self):
        return "STAT, status 0, and its units"

    def feed(self, queue, record, now):
        if self.head is None:
            self.head = record
            if record[0] != STAT or record[2]:
                return self.allowed()
            self.left = record[3]
            if self.left * SIZE < QUEUE_STAT_SIZE + SERVER_STAT.size:
                return "as many units as the two structs have"
            return None
        self.units.append(RECORD.pack(*record))
        self.left -= 1
        self.done = not self.left
        return self.check(queue, now) if self.done else None

    def check(self, queue, now):
        body = b"".join(self.units)
        _, consumers, credit, producers, _, queues, connections = \
            SERVER_STAT.unpack_from(body, QUEUE_STAT_SIZE)
        if consumers != self.consumer:
            return "consumers %d, not %d" % (self.consumer, consumers)
        if producers != self.connections:
            return "producers %d, not %d" % (self.connections, producers)
        if queues < 1 or connections < producers:
            return "this queue and its connections counted"
        # Expirations may have been sent before and came before, or will come.
        low = max(0, self.credit - queue.delivered + self.delivered)
        if not self.ordered or queue.nr_due(now):
            low = 0
        if not low <= credit <= self.credit:
            return "credit %d to %d, not %d" % (low, self.credit, credit)
        return self.check_stat(queue, body, now)


class DaemonStat(Stat):
    """STAT on a connection without a queue."""

    def __init__(self):
        super().__init__(None, 0, False, False)

    def check(self, queue, now):
        body = b"".join(self.units)
        engine, consumers, credit, producers, _, _, connections = \
            SERVER_STAT.unpack_from(body, QUEUE_STAT_SIZE)
        if any(body[:QUEUE_STAT_SIZE]) or consumers or credit or producers:
            return "zeros for the queue"
        if not engine or not connections:
            return "the daemon's part, with this connection counted"
        return None


class Queues(Long):
    """One page of the list of queues. @seen: numbers of the pages before;
    @connections: of the model's queue, None = its row is not looked at"""

    def __init__(self, queue, seen, most, connections, consumer):
        super().__init__(queue)
        self.seen = seen
        self.most = most
        self.connections = connections
        self.consumer = consumer
        self.cursor = None
        self.found = 0

    def allowed(self):
        return "QUEUES, rows"

    def feed(self, queue, record, now):
        if self.left:
            self.units.append(RECORD.pack(*record))
            self.left -= 1
            return None if self.left else self.row(queue, now)
        if record[0] != QUEUES or record[2]:
            return "a record with op 69 and status 0"
        if not record[3]:
            self.done = True
            self.cursor = record[6]
            return None
        self.most -= 1
        if self.most < 0:
            return "no more queues than were asked for"
        self.head = record
        self.left = record[3]
        self.units = []
        if self.left * SIZE < QUEUE_STAT_SIZE + LISTED_STAT.size:
            return "as many units as the two structs have"
        return None

    def row(self, queue, now):
        body = b"".join(self.units)
        name = QUEUES_ROW.unpack(RECORD.pack(*self.head))[4].rstrip(b"\0")
        number, uid, connections, consumers, credit, pid = \
            LISTED_STAT.unpack_from(body, QUEUE_STAT_SIZE)
        if number in self.seen:
            return "each queue once"
        self.seen.add(number)
        if self.connections is None or name.decode() != queue.name or not name:
            return None
        self.found += 1
        wanted = (os.getuid(), self.connections, self.consumer,
                  os.getpid() if self.consumer else 0)
        if (uid, connections, consumers, pid) != wanted:
            return "uid, connections, consumers, process %s, not %s" % (
                wanted, (uid, connections, consumers, pid))
        if credit > self.credit:
            return "credit %d at most, not %d" % (self.credit, credit)
        return self.check_stat(queue, body, now)


class AnyQueues(Queues):
    """QUEUES on a connection without a queue: one page."""

    def __init__(self, most):
        super().__init__(None, set(), most, None, False)


class Drop:
    busy_is_refusal = True

    def __init__(self, status):
        self.status = status

    def allowed(self):
        return "DROP, status %d" % self.status

    def reply(self, queue, record, now):
        return record[0] == DROP and record[2] == self.status


class Nothing:
    """Any request after DROP."""

    def __init__(self, op):
        self.op = op

    def allowed(self):
        return "op %d, status %d: no queue" % (self.op, ENOENT)

    def reply(self, queue, record, now):
        return record[0] == self.op and record[2] == ENOENT
