#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Any call for memory may fail: the daemon refuses what needed it with -ENOMEM
and goes on, or, while it starts, says why and ends. It is a daemon of its own
for each of them."""

import contextlib
import errno
import mmap
import os
import struct
import tempfile

import tap
from client import (ACK, ACKING, CANCEL, CLEAR, CONSUME, DROP, HOUR, KEYED,
                    QUERY, REFRESH, SCALE, SCAN, SIZE, STAT, WAIT, Closed,
                    Connection, Record, accepted, arm, attach, wait_for)
from daemon import ROOT, SHADOW, Daemon
from listing import listing

REFUSER = os.path.join(ROOT, "build", "tests", "socket", "fail-calls.so")
# The number of calls that are tried, from the first to the last.
TRIES = 60 if SCALE == 1 else 6


class Refuser:
    """What a daemon's calls for memory are counted and refused by."""

    def __init__(self):
        if not os.path.exists(REFUSER):
            raise tap.Skip("no %s: make check-socket builds it"
                           % os.path.basename(REFUSER))
        if SHADOW:
            raise tap.Skip("malloc() is the sanitizer's")
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(16)
        self.map = mmap.mmap(self.file.fileno(), 16)

    def daemon(self, refused=0):
        """A daemon whose call of that number is refused."""
        struct.pack_into("2Q", self.map, 0, 0, refused)
        return Daemon(environment={"LD_PRELOAD": REFUSER,
                                   "EXPIRY_FAIL_CALLS": self.file.name})

    def calls(self):
        return struct.unpack_from("Q", self.map)[0]

    def refuse(self, number):
        """Let the call of that number from now on fail, 0 = none."""
        struct.pack_into("Q", self.map, 8, number and self.calls() + number)


def spread(most):
    return sorted({1 + i * most // TRIES for i in range(min(most, TRIES))} |
                  {most})


class Client:
    """Sends every kind of request, and records refusals."""

    def __init__(self, daemon):
        self.daemon = daemon
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
        queue.credit(1000)
        armed = self.judge(queue.batch([arm(0, i) for i in range(600)]))
        while len(queue.expired) < len(armed):
            queue.expired.append(queue.record())
        self.judge(queue.batch([Record(ACK, id=r.id) for r in queue.expired]))
        self.judge([queue.request(Record(DROP))])

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
        self.queue("keyed", KEYED, self.timers, "keyed", True)
        self.queue("due", CONSUME | ACKING, self.expirations)
        self.queue("", 0, self.backlog)
        self.queue("looks", 0, self.look)
        self.daemon.reload("timers_per_queue = 1000000\n")
        return self.refused


def healthy(daemon, watch):
    """Whether everything is done again, and nothing was left."""
    # What a client left as it was when it was ended.
    for name, flags in (("one", 0), ("two", 0), ("keyed", KEYED), ("due", ACKING),
                        ("looks", 0), ("lists", 0)):
        with attach(daemon.path, name, flags) as queue:
            assert wait_for(lambda: queue.stat().producers == 1), name
            assert queue.request(Record(DROP)).status == 0, name
    assert Client(daemon).all() == []
    assert wait_for(lambda: watch.stat().connections == 1), watch.stat()
    assert wait_for(lambda: watch.stat().queues == 1), watch.stat()
    assert wait_for(lambda: not watch.stat().backlog), watch.stat()
    # Nothing is charged to the user but this one.
    daemon.reload("connections_per_user = 2\nqueues_per_user = 2\n"
                  "timers_per_user = 10\n")
    other = wait_for(lambda: accepted(daemon.path), 5)
    assert other, "what was given back is still charged"
    replies = other.batch([arm(HOUR)] * 10)
    assert all(reply.status == 0 for reply in replies), replies
    other.close()


def test_start_without_memory():
    refuser, ended = Refuser(), 0
    with refuser.daemon():
        calls = refuser.calls()
    assert calls, "nothing is counted"
    for number in spread(calls):
        daemon = refuser.daemon(number)
        try:
            if daemon.wait_ready():
                with attach(daemon.path) as queue:
                    assert queue.request(arm(HOUR)).status == 0
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


def test_requests_without_memory():
    refuser, refusals = Refuser(), 0
    with refuser.daemon() as daemon, attach(daemon.path):
        before = refuser.calls()
        assert Client(daemon).all() == []
        calls = refuser.calls() - before
    assert calls, "nothing is counted"
    for number in spread(calls):
        # Who stays there all the time is charged for what is forgotten.
        with refuser.daemon() as daemon, attach(daemon.path) as watch:
            refuser.refuse(number)
            try:
                refusals += len(Client(daemon).all())
                refuser.refuse(0)
                healthy(daemon, watch)
            except Exception as problem:
                raise AssertionError("call %d of %d: %r" % (
                    number, calls, problem)) from problem
    assert refusals, "nothing was refused"


if __name__ == "__main__":
    tap.main()
