#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon is killed under load, again and again: producers and a consumer check each
answer and each expiration. Nothing is lost, early, undone, out of order, or without its
mark. On the kernel engine the module's queues are kept for the next daemon in some
lives, and gone in others, as after the machine's restart."""

import collections
import errno
import os
import random
import time

import tap
from client import (ACK, ARM, CONSUME, EXPIRED, REDELIVERED, WAIT, Record, attach, scaled,
                    wait_for)
from daemon import ENGINE
from durable import FLAGS, LATE, MILLISECOND, Disk, Producer, Stream, rows, work

KILLS = int(os.environ.get("EXPIRY_TEST_KILLS", str(scaled(50, 5))))
SEED = int(os.environ.get("EXPIRY_TEST_SEED", "1"))

# Timers with a period have these ids; the others are used once.
PERIODIC = range(1, 11)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Consumer:
    """Arms timers that are due soon, takes and acknowledges them.

    @armed: by id, the deadline and when its answer came (0: before this life)
    @doubt: ids of ARMs without an answer; @ending: likewise of ACKs
    @over: ids whose ACK was answered
    @floors: by id of a periodic timer, the least deadline that may come; @old_floors:
        as of this life's begin
    @waiting: requests without an answer, in their order
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.next = PERIODIC[-1] + 1
        self.periods = {number: self.random.randint(5, 40) for number in PERIODIC}
        self.phases = {}
        self.armed = {}
        self.doubt = {}
        self.ending = set()
        self.over = set()
        self.delivered = set()
        self.floors = {}
        self.waiting = collections.deque()
        self.is_first = True
        self.counts = collections.Counter()

    def begin(self, connection, spawned_ns):
        """A life begins; the daemon was started at @spawned_ns."""
        self.spawned_ns, self.ready_ns = spawned_ns, now_ns()
        for op, number, deadline in self.waiting:
            if op == ACK:
                self.ending.add(number)
            else:
                self.doubt[number] = deadline
        self.waiting.clear()
        self.armed = {number: (deadline, 0) for number, (deadline, _) in self.armed.items()}
        self.old_floors = dict(self.floors)
        self.last = 0
        self.taken = set()
        self.progress = 0
        self.look(rows(connection))
        connection.credit(1 << 30)
        self.stream = Stream(connection)
        # A part of what waits for its ACK is left for the next life.
        self.leaves = self.random.choice((0, 0, 0.2))
        new = [number for number in PERIODIC if number not in self.phases]
        self.request([Record(ARM, id=number, deadline=self.ready_ns + MILLISECOND,
                             cookie=number, period=self.periods[number])
                      for number in new])

    def look(self, found):
        """Compares the rows at a start."""
        for number in found:
            if number in PERIODIC:
                continue
            assert number not in self.over, "the ACK of %d is undone" % number
            deadline = self.doubt[number] if number in self.doubt else self.armed[number][0]
            assert found[number].deadline == deadline, (found[number], deadline)
        lost = [number for number in self.armed
                if number not in found and number not in self.ending]
        assert not lost, "lost: %s" % lost[:5]
        lost = [number for number in self.phases if number not in found]
        assert not lost, "lost, with a period: %s" % lost
        # What was in doubt is certain now.
        for number in [number for number in self.armed if number not in found]:
            del self.armed[number]
            self.over.add(number)
        for number, deadline in self.doubt.items():
            if number in found and number not in PERIODIC:
                self.armed[number] = deadline, 0
        self.doubt.clear()
        self.ending.clear()

    def request(self, records):
        self.waiting += [(record.op, record.id, record.deadline) for record in records]
        self.stream.send(records)

    def answer(self, reply):
        op, number, deadline = self.waiting.popleft()
        assert (reply.op, reply.id) == (op, number), reply
        # One ACK is for all deliveries of a periodic timer so far.
        if op == ACK and number in PERIODIC and reply.status == -errno.ENOENT:
            return
        assert not reply.status, reply
        if number in PERIODIC:
            if op == ARM:
                self.phases[number] = deadline
            self.floors[number] = max(self.floors.get(number, 0), reply.deadline)
        elif op == ARM:
            if number not in self.over:
                self.armed[number] = deadline, now_ns()
        else:
            self.over.add(number)
            self.armed.pop(number, None)
            self.counts["acknowledged"] += 1

    def check_marks(self, record):
        """What was due when the daemon started is LATE, and may have come before."""
        if record.deadline < self.spawned_ns:
            wanted = (LATE | REDELIVERED,)
        elif record.deadline >= self.ready_ns:
            again = REDELIVERED if record.id in self.delivered else 0
            wanted = (again,)
        else:
            wanted = 0, LATE, REDELIVERED, LATE | REDELIVERED
        # A periodic timer's next time is no redelivery.
        flags = record.flags
        assert flags in wanted or record.id in PERIODIC and \
            flags | REDELIVERED in {flag | REDELIVERED for flag in wanted}, \
            "%s, wanted %s" % (record, wanted)
        self.counts["late"] += bool(flags & LATE)
        self.counts["redelivered"] += bool(flags & REDELIVERED)

    def take(self, record):
        at = now_ns()
        assert record.deadline <= at, "%d ns early: %s" % (record.deadline - at, record)
        assert record.cookie == record.id, record
        self.check_marks(record)
        if record.id in PERIODIC:
            self.take_periodic(record)
        else:
            assert record.id not in self.over, "the ACK is undone: %s" % (record,)
            assert record.id not in self.taken, "twice: %s" % (record,)
            # Without an answer it is in doubt when it was armed.
            deadline, since = self.armed.get(record.id, (record.deadline, at))
            assert deadline == record.deadline, record
            assert record.deadline >= self.last or since >= self.last, \
                "out of order behind %d: %s" % (self.last, record)
        self.last = max(self.last, record.deadline)
        self.taken.add(record.id)
        self.delivered.add(record.id)
        self.counts["expirations"] += 1
        if self.random.random() >= self.leaves or record.id in PERIODIC:
            self.request([Record(ACK, id=record.id)])

    def take_periodic(self, record):
        number = record.id
        if number in self.phases:
            step = (record.deadline - self.phases[number]) % (
                self.periods[number] * MILLISECOND)
            assert not step, "%d ns from its phase: %s" % (step, record)
        # One that the module gave away before an ACK may come behind its reply.
        floors = self.old_floors if ENGINE == "kernel" else self.floors
        assert record.deadline >= floors.get(number, 0), \
            "it came before, and was acknowledged: %s" % (record,)

    def serve(self, sends):
        if sends and len(self.armed) + len(self.waiting) < 600:
            count = self.random.randint(1, 30)
            self.request([
                Record(ARM, id=number, cookie=number,
                       deadline=now_ns() + self.random.randint(1, 60) * MILLISECOND)
                for number in range(self.next, self.next + count)])
            self.next += count
        for record in self.stream.serve():
            if record.op == EXPIRED:
                self.take(record)
                continue
            acks = self.waiting[0][0] == ACK
            self.answer(record)
            # Both are seen: an expiration, and the commit of its ACK.
            self.progress += acks and record.id not in PERIODIC

    def drain(self):
        """Takes all that is armed."""
        self.leaves = 0
        left = {number for number in self.armed if number not in self.over}

        def done():
            self.serve(False)
            return left <= self.over
        assert wait_for(done, 2 * WAIT), "these do not come: %s" % sorted(
            left - self.over)[:5]


class Lives:
    """A disk, and the daemons that use it, each until it is killed."""

    def __init__(self, config=None, **more):
        self.disk = Disk(config)
        self.more = more
        self.random = random.Random(SEED)
        self.producers = [Producer(SEED), Producer(SEED + 1, range(1001, 1301), 200)]
        self.consumer = Consumer(SEED)
        self.kept = []
        self.count = collections.Counter()

    def daemon(self):
        stored, self.kept = self.kept, []
        self.spawned_ns = now_ns()
        daemon = self.disk.daemon(stored=stored, **self.more)
        for _, fd in stored:
            os.close(fd)
        return daemon

    def attach(self, daemon):
        """Both producers change the same queue, each timers of its own."""
        links = [attach(daemon.path, "queue", FLAGS) for _ in self.producers] + \
            [attach(daemon.path, "due", FLAGS | CONSUME)]
        for producer, link in zip(self.producers, links):
            producer.begin(link)
        self.consumer.begin(links[-1], self.spawned_ns)
        return links

    def live(self, seconds):
        with self.daemon() as daemon:
            links = self.attach(daemon)
            work(daemon, self.producers + [self.consumer], seconds)
            for link in links:
                link.close()
            # A kept queue goes on; else the module's ends with the last descriptor.
            if ENGINE == "kernel" and self.random.random() < 0.5:
                self.kept = daemon.manager.take_store()
                self.count["kept"] += 1
            self.count["kills"] += 1

    def end(self):
        with self.daemon() as daemon:
            links = self.attach(daemon)
            self.consumer.drain()
            for link in links:
                link.close()

    def run(self, count):
        try:
            for _ in range(count):
                self.live(self.random.uniform(0.01, 0.15))
            self.end()
        finally:
            for _, fd in self.kept:
                os.close(fd)
            self.disk.__exit__()
        answered = sum(producer.answered for producer in self.producers)
        print("# %d kills, in %d of them the module's queues stayed; %d requests answered, "
              "%s" % (self.count["kills"], self.count["kept"], answered,
                      ", ".join("%d %s" % (number, name) for name, number in
                                sorted(self.consumer.counts.items()))))
        for name in "expirations", "acknowledged", "late", "redelivered":
            assert self.consumer.counts[name] >= count, name


def test_kills_under_load():
    Lives().run(KILLS)


def test_kills_with_an_interval():
    Lives("commit = 100ms\n").run(max(KILLS // 5, 3))


tap.main()
