#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Any call for memory may fail: the daemon refuses what needed it with -ENOMEM
and goes on, or, while it starts, says why and ends. It is a daemon of its own
for each of them."""

import contextlib
import errno

import tap
from client import (ACK, ACKING, CANCEL, CLEAR, CONSUME, DROP, EXPIRED, HOUR, KEYED,
                    MISSED, OBSERVE, QUERY, REFRESH, SCALE, SIZE, STAT, WAIT, Closed,
                    Connection, Record, accepted, arm, attach, wait_for)
from daemon import ENGINE, Daemon
from durable import FLAGS, Disk
from listing import listing
from memory_faults import Refuser

# The number of calls that are tried, from the first to the last.
TRIES = 60 if SCALE == 1 else 6
IN_A_ROW = 1, 5, 2


def spread(most):
    return sorted({1 + i * most // TRIES for i in range(min(most, TRIES))} |
                  {most})


class Client:
    """Sends every kind of request, and records refusals.

    @kept: names and flags of durable queues
    """

    def __init__(self, daemon, kept):
        self.daemon = daemon
        self.kept = kept
        self.refused = []

    def judge(self, records):
        for record in records:
            assert record.status in (0, -errno.ENOMEM), record
            if record.status:
                self.refused.append(record.op)
        return [record for record in records if not record.status]

    def queue(self, name, flags, use, *more):
        """Calls @use(queue) if the queue exists. It may end when memory is
        refused."""
        try:
            with Connection(self.daemon.path) as queue:
                if self.judge([queue.hello(name, flags)]):
                    use(queue, *more)
        except (Closed, ConnectionError):
            self.refused.append("connection")

    def timers(self, queue, name, keyed):
        armed = self.judge(queue.batch(
            [arm(HOUR - i, i, id=i + 1 if keyed else 0) for i in range(600)]))
        self.judge(queue.batch([Record(REFRESH, id=r.id, deadline=HOUR)
                                for r in armed[::2]]))
        self.judge(queue.batch([Record(CANCEL, id=r.id) for r in armed[::3]]))
        if len(armed) > 1:
            self.judge([queue.request(Record(QUERY, id=armed[1].id))])
        queue.scan(500)
        self.judge([queue.request(Record(DROP if name else CLEAR))])

    def expirations(self, queue):
        self.queue("due", OBSERVE | ACKING, self.watched, queue)
        self.judge([queue.request(Record(DROP))])

    def watched(self, observer, queue):
        queue.credit(600)
        armed = []
        for first in range(0, 600, 200):
            armed += self.judge(queue.batch([arm(0, first + i) for i in range(200)]))
        # Those that have waited for credit are copied by several calls in a turn.
        armed += self.judge(queue.batch([arm(0, i) for i in range(600, 2600)]))
        queue.credit(2600 - 600)
        while len(queue.expired) < len(armed):
            queue.expired.append(queue.record())
        self.judge(queue.batch([Record(ACK, id=r.id) for r in queue.expired]))
        # Each is copied to the observer, or counted where there was no memory.
        told = 0
        while told < len(armed):
            record = observer.record()
            assert record.op in (EXPIRED, MISSED), record
            told += record.cookie if record.op == MISSED else 1
            self.refused += [MISSED] * (record.op == MISSED)
        assert told == len(armed), (told, len(armed))

    def backlog(self, queue):
        """Has a backlog: a client that does not read for a while."""
        queue.socket.settimeout(0)
        sent, data = 0, bytes(Record(QUERY, id=77)) * 2048
        with contextlib.suppress(BlockingIOError):
            while sent < 1 << 20:
                sent += queue.socket.send(data)
        queue.socket.settimeout(WAIT)
        for _ in range(sent // SIZE):
            assert queue.record().op == QUERY

    def look(self, queue):
        head = queue.request(Record(STAT))
        if self.judge([head]):
            queue.take(head.period * SIZE)
        listing(queue)
        self.judge([queue.request(Record(DROP))])

    def all(self):
        """What was refused."""
        for name in ("", "one", "two"):
            self.queue(name, 0, self.timers, name, False)
        for name, flags in (("keyed", KEYED), *self.kept):
            self.queue(name, flags, self.timers, name, True)
        self.queue("due", CONSUME | ACKING, self.expirations)
        self.queue("", 0, self.backlog)
        self.queue("looks", 0, self.look)
        self.daemon.reload("timers_per_queue = 1000000\n")
        return self.refused


def healthy(daemon, watch, kept):
    """Whether everything is done again, and nothing was left."""
    # What a client left as it was when it was ended.
    for name, flags in (("one", 0), ("two", 0), ("keyed", KEYED), ("due", ACKING),
                        ("looks", 0), *kept):
        with attach(daemon.path, name, flags) as queue:
            assert wait_for(lambda: queue.stat().producers == 1), name
            assert queue.request(Record(DROP)).status == 0, name
    assert Client(daemon, kept).all() == []
    assert wait_for(lambda: watch.stat().connections == 1), watch.stat()
    assert wait_for(lambda: watch.stat().queues == 1), watch.stat()
    assert wait_for(lambda: not watch.stat().backlog), watch.stat()
    # Nothing is charged to the user but this one.
    daemon.reload("connections_per_user = 2\nqueues_per_user = 2\n"
                  "timers_per_user = 10\n")
    other = wait_for(lambda: accepted(daemon.path), 5)
    assert other, "what was given back is still charged"
    replies = other.batch([arm(HOUR)] * 11)
    assert [reply.status for reply in replies] == [0] * 10 + [-errno.EDQUOT], replies
    other.close()


def start(make, check):
    """Refuses each call of a start. @check(path) looks at a daemon that runs."""
    refuser, ended = Refuser(), 0
    with refuser.daemon(make):
        calls = refuser.calls()
    assert calls, "nothing is counted"
    for number in spread(calls):
        daemon = refuser.daemon(make, number)
        try:
            if daemon.wait_ready():
                check(daemon.path)
                status = daemon.end()
                assert status == 0, (number, status, daemon.log())
            else:
                status = daemon.process.wait(WAIT)
                assert status > 0, (number, status, daemon.log())
                assert daemon.log(), "call %d: not a word" % number
                ended += 1
        finally:
            daemon.remove()
    assert ended, "every start went well"


def requests(make, kept):
    refuser, refusals = Refuser(), 0
    with refuser.daemon(make) as daemon, attach(daemon.path):
        before = refuser.calls()
        assert Client(daemon, kept).all() == []
        calls = refuser.calls() - before
    assert calls, "nothing is counted"
    for i, number in enumerate(spread(calls)):
        # Who stays there all the time is charged for what is forgotten.
        with refuser.daemon(make) as daemon, attach(daemon.path) as watch:
            refuser.refuse(number, IN_A_ROW[i % len(IN_A_ROW)])
            try:
                refusals += len(Client(daemon, kept).all())
                refuser.refuse(0)
                healthy(daemon, watch, kept)
            except Exception as problem:
                raise AssertionError("call %d of %d: %r" % (
                    number, calls, problem)) from problem
    assert refusals, "nothing was refused"


def configured(**more):
    return Daemon("", **more)


def needs_journal():
    if ENGINE != "embedded":
        raise tap.Skip("durable queues need the daemon's own engine")


def test_start_without_memory():
    def check(path):
        with attach(path) as queue:
            assert queue.request(arm(HOUR)).status == 0
    start(configured, check)


def test_start_from_a_journal_without_memory():
    needs_journal()

    def check(path):
        with attach(path, "kept", FLAGS) as queue:
            assert len(queue.scan(100)) == 20
    with Disk("") as disk:
        with disk.daemon() as daemon, attach(daemon.path, "kept", FLAGS) as queue:
            queue.batch([arm(HOUR, i, id=i + 1) for i in range(20)])
        start(disk.daemon, check)
        with disk.daemon() as daemon:
            check(daemon.path)


def test_requests_without_memory():
    requests(configured, ())


def test_durable_requests_without_memory():
    needs_journal()
    with Disk("") as disk:
        requests(disk.daemon, (("kept", FLAGS),))


if __name__ == "__main__":
    tap.main()
