#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Expirations are on time: as late as a timerfd for the same deadline that this
program waits for itself, and a bound; on every clock, with one queue and with
several, in whatever order deadlines come and go."""

import contextlib
import ctypes
import errno
import os
import random
import select
import struct
import time

import tap
from client import (BOOTTIME, CANCEL, CONSUME, HOUR, MONOTONIC, REALTIME,
                    REFRESH, SIZE, SLOWER, WAIT, Record, arm, attach, unpack)
from daemon import Daemon

# The slow engine holds up what it is asked and what it gives, each so long.
SLOW_MS = 4

MILLISECOND = 10**6
CLOCKS = {"REALTIME": REALTIME, "MONOTONIC": MONOTONIC, "BOOTTIME": BOOTTIME}
# Beyond the timerfd. A busy machine makes some tries late; a daemon that is late
# makes all of them so.
BOUND = 60 * MILLISECOND * SLOWER
GOOD, BAD = 3, 5

# What has not come so long after the last timerfd is given up, and not tried
# more often than that.
PATIENCE = WAIT / 30
LOST = 2

TIMER_ABSTIME = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class TooSlow(Exception):
    """This program itself was too slow for the try."""


class Lost(Exception):
    """Some did not come while they were waited for."""


class Timer:
    """A timerfd for one absolute deadline."""

    def __init__(self, clock, deadline):
        self.fd = LIBC.timerfd_create(clock, os.O_CLOEXEC | os.O_NONBLOCK)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        spec = struct.pack("@4l", 0, 0, deadline // 10**9, deadline % 10**9)
        r = LIBC.timerfd_settime(self.fd, TIMER_ABSTIME, spec, None)
        assert r == 0, os.strerror(ctypes.get_errno())

    def fileno(self):
        return self.fd

    def close(self):
        os.close(self.fd)


def lateness(expected, goes_on=False):
    """Wait for what is due and for a timerfd each, with one poll(), so that
    both wait for this program alike. By how much expirations were later than
    their timerfds, in nanoseconds.

    @expected: a list of (clock, connection, deadline)
    @goes_on: later expirations may come before this program has all of these
    """
    keys = {(clock, deadline) for clock, _, deadline in expected}
    last = max(deadline for _, _, deadline in expected)
    poll, timers, connections = select.poll(), {}, {}
    theirs, ours, limit = {}, {}, None
    for clock, connection, deadline in expected:
        if time.clock_gettime_ns(clock) >= deadline:
            raise TooSlow
        timer = Timer(clock, deadline)
        timers[timer.fd] = (timer, clock, deadline)
        connections[connection.socket.fileno()] = (connection, clock)
        poll.register(timer, select.POLLIN)
        poll.register(connection.socket, select.POLLIN)
    while len(theirs) < len(expected) or len(ours) < len(expected):
        if limit and time.monotonic() > limit:
            break
        ready = [fd for fd, _ in poll.poll(1000 * PATIENCE)]
        now = {clock: time.clock_gettime_ns(clock)
               for clock in CLOCKS.values()}
        for fd in ready:
            if fd in timers:
                _, clock, deadline = timers[fd]
                theirs[clock, deadline] = now[clock]
                poll.unregister(fd)
                continue
            connection, clock = connections[fd]
            data = connection.socket.recv(1 << 16)
            taken = time.clock_gettime_ns(clock)
            assert data and len(data) % SIZE == 0, len(data)
            for record in unpack(data):
                assert record.deadline <= taken, "early"
                if record.count > 1:
                    raise TooSlow
                if goes_on and record.deadline > last:
                    continue
                assert (clock, record.deadline) not in ours, "twice"
                ours[clock, record.deadline] = now[clock]
        if len(theirs) == len(expected) and not limit:
            limit = time.monotonic() + PATIENCE
    for timer, _, _ in timers.values():
        timer.close()
    assert set(ours) <= keys, "others than were expected"
    if len(ours) < len(keys):
        raise Lost("%d of %d came" % (len(ours), len(keys)))
    return [ours[key] - theirs[key] for key in keys]


class Queues:
    """Queues of one clock, which this program consumes.

    @room: nanoseconds that it has before the first deadline
    """

    def __init__(self, path, clock, count, room=40 * MILLISECOND):
        self.clock, self.room = clock, room
        self.all = [attach(path, flags=CONSUME, clock=clock)
                    for _ in range(count)]
        for queue in self.all:
            queue.credit(10**6)

    def close(self):
        for queue in self.all:
            queue.close()

    def soon(self, after=0):
        """A deadline for each queue, in the order of queues."""
        now = time.clock_gettime_ns(self.clock)
        return [now + self.room + after + i * 20 * MILLISECOND
                for i in range(len(self.all))]

    @staticmethod
    def must(queue, record):
        reply = queue.request(record)
        if reply.status == -errno.ENOENT:
            raise TooSlow
        assert reply.status == 0, reply
        return reply

    def far(self):
        """Arm a timer in each queue that is not due for long."""
        return [self.must(queue, arm(HOUR)) for queue in self.all]

    def drop(self, timers):
        for queue, timer in zip(self.all, timers):
            self.must(queue, Record(CANCEL, id=timer.id))

    def arm_each(self, deadlines, reverse=False):
        """One timer in each queue, and which is due when."""
        pairs = list(zip(self.all, deadlines))
        timers = {queue: self.must(queue, arm(deadline, flags=0))
                  for queue, deadline in
                  (reversed(pairs) if reverse else pairs)}
        return ([timers[queue] for queue in self.all],
                [(self.clock, queue, deadline) for queue, deadline in pairs])


# ------------------------------------------------------------------------
# Orders


def far_then_near(queues):
    """Each is due before all that were armed before it."""
    queues.far()
    return lateness(queues.arm_each(queues.soon(), reverse=True)[1])


def near_then_far(queues):
    expected = queues.arm_each(queues.soon())[1]
    queues.far()
    return lateness(expected)


def cancelled(queues):
    """What would have been first is no more, nor what would have been last."""
    last = queues.far()
    near, _ = queues.arm_each(queues.soon())
    _, expected = queues.arm_each(queues.soon(20 * MILLISECOND))
    queues.drop(near)
    queues.drop(last)
    return lateness(expected)


def refresh(queues, timers, deadlines, reverse):
    expected = list(zip(queues.all, timers, deadlines))
    for queue, timer, deadline in reversed(expected) if reverse else expected:
        queues.must(queue, Record(REFRESH, id=timer.id, deadline=deadline))
    return lateness([(queues.clock, queue, deadline)
                     for queue, _, deadline in expected])


def refreshed_earlier(queues):
    return refresh(queues, queues.far(), queues.soon(), True)


def refreshed_later(queues):
    timers, _ = queues.arm_each(queues.soon())
    return refresh(queues, timers, queues.soon(30 * MILLISECOND), False)


ORDERS = (far_then_near, near_then_far, cancelled, refreshed_earlier,
          refreshed_later)


# ------------------------------------------------------------------------
# Tests


def judge(what, attempt, slack=0):
    """Repeats tries until enough are good, or too many are bad."""
    tap.need_undisturbed()
    good, bad, lost = [], [], []
    for _ in range(50):
        try:
            worst = max(attempt())
            (good if worst <= BOUND + slack else bad).append(worst // 1000)
        except Lost as problem:
            lost.append(str(problem))
        except TooSlow:
            continue
        if len(good) == GOOD:
            return
        assert len(bad) < BAD, "%s: later than a timerfd by %s us" % (what, bad)
        assert len(lost) < LOST, "%s: %s" % (what, lost)
    raise tap.Skip("%s: this machine is too slow" % what)


def judge_all(counts=(1, 3), room=40 * MILLISECOND, slack=0, **how):
    """Each order with a daemon of its own, whose alarms were never set."""
    wrong, slow = [], []
    for name, clock in CLOCKS.items():
        for count in counts:
            for order in ORDERS:
                what = "%s, %d queues, %s" % (
                    name, count, order.__name__.replace("_", " "))
                with Daemon(**how) as daemon:
                    def attempt():
                        with contextlib.closing(Queues(
                                daemon.path, clock, count, room)) as queues:
                            return order(queues)
                    try:
                        judge(what, attempt, slack)
                    except AssertionError as problem:
                        wrong.append(str(problem))
                    except tap.Skip as reason:
                        slow.append(str(reason))
    assert not wrong, "\n".join(wrong)
    if slow:
        raise tap.Skip("; ".join(slow))


def test_on_time_on_every_clock_in_every_order():
    judge_all()


def test_on_time_where_the_engine_takes_its_time():
    tap.need_slow()
    judge_all((3,), 150 * MILLISECOND, 2 * SLOW_MS * MILLISECOND,
              program=tap.SLOW, environment={"EXPIRY_SLOW_MS": str(SLOW_MS)})


def by_chance(source, groups):
    """Timers in any of the queues, some of them moved or cancelled: those that
    are due."""
    expected, spare = [], []
    for number in source.sample(range(300), 60):
        group = source.choice(groups)
        queue = source.choice(group.all)
        at = (100 + number) * MILLISECOND
        deadline = time.clock_gettime_ns(group.clock) + at
        first = source.choice((HOUR, at - 20 * MILLISECOND, None, None))
        if first:
            timer = group.must(queue, arm(first))
            group.must(queue, Record(REFRESH, id=timer.id, deadline=deadline))
        else:
            timer = group.must(queue, arm(deadline, flags=0))
        if source.randrange(4):
            expected.append((group.clock, queue, deadline))
        else:
            spare.append((queue, timer))
    for queue, timer in spare:
        Queues.must(queue, Record(CANCEL, id=timer.id))
    return expected


def test_on_time_with_all_clocks_at_once(daemon):
    source = random.Random(12)

    def attempt():
        with contextlib.ExitStack() as stack:
            return lateness(by_chance(source, [
                stack.enter_context(contextlib.closing(
                    Queues(daemon.path, clock, 3)))
                for clock in CLOCKS.values()]))
    judge("all clocks", attempt)


def test_periodic_ones_are_on_time_each_time(daemon):
    def attempt():
        with contextlib.closing(Queues(daemon.path, clock, 1)) as queues:
            queues.far()
            first = queues.soon()[0]
            queues.must(queues.all[0], arm(first, flags=0, period=100))
            return lateness([(clock, queues.all[0],
                              first + i * 100 * MILLISECOND)
                             for i in range(4)], goes_on=True)
    for name, clock in CLOCKS.items():
        judge("%s, periodic" % name, attempt)


if __name__ == "__main__":
    tap.main()
