#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""No client waits without an answer: requests behind a hanging engine get -EBUSY and
are not carried out."""

import errno
import os
import time

import tap
from client import (ARM, CONSUME, HOUR, QUERY, REFRESH, SCAN, SIZE, STAT, Record, arm,
                    attach, pack)
from daemon import Daemon
from stalls import Stalls

BUSY = -errno.EBUSY


def behind(connection, *records):
    """Returns the replies to requests that arrive with a slow batch (STAT ends the
    batch)."""
    connection.send(arm(HOUR), Record(STAT), *records)
    first, stat = connection.replies(2)
    assert first.status == 0 and stat.op == STAT, (first, stat)
    connection.take(stat.period * SIZE)
    return connection.replies(len(records))


def test_what_waited_too_long_is_refused_and_not_done():
    with tap.slow(500, "busy_after = 50\n") as daemon, \
            attach(daemon.path) as queue:
        first = queue.request(arm(HOUR, 1))
        replies = behind(queue, arm(HOUR, 7), arm(2 * HOUR, 8),
                         Record(REFRESH, id=first.id, deadline=5),
                         Record(QUERY, id=first.id, cookie=9),
                         Record(SCAN, period=10))
        assert [r.status for r in replies] == [BUSY] * 5, replies
        assert [r.op for r in replies] == [ARM, ARM, REFRESH, QUERY, SCAN]
        # The records are unchanged, so the client can send them again.
        assert replies[0].cookie == 7 and replies[0].id == 0, replies[0]
        assert replies[3].cookie == 9, replies[3]
        stat = queue.stat()
        assert stat.armed == 2, stat
        assert stat.refused_busy == 5, stat
        assert queue.request(Record(QUERY, id=first.id)).cookie == 1
        said = [line for line in daemon.log().splitlines() if "50 ms" in line]
        assert len(said) == 1 and "pid %d, uid %d" % (
            os.getpid(), os.getuid()) in said[0], daemon.log()


def test_by_default_it_takes_four_seconds_and_0_is_never():
    for config, milliseconds, status in (
            ("", 1000, 0), ("busy_after = 0\n", 300, 0), ("", 4500, BUSY)):
        with tap.slow(milliseconds, config) as daemon, \
                attach(daemon.path) as queue:
            replies = behind(queue, arm(HOUR))
            assert replies[0].status == status, (config, replies)
            assert queue.stat().refused_busy == (status != 0)


def test_no_room_for_an_answer_is_said():
    """Each buffer that a long answer could be written to is with the engine."""
    config = "busy_after = 100\nbuffers = 4\n"
    with tap.slow(1500, config) as daemon, attach(daemon.path) as watch:
        consumers = [attach(daemon.path, "q%d" % i, CONSUME) for i in range(3)]
        for consumer in consumers:
            consumer.credit(10)
            consumer.send(arm(0))
        for consumer in consumers:
            assert consumer.reply().status == 0
        with Stalls() as stalls:
            began = time.monotonic()
            assert watch.request(Record(SCAN, period=10)).status == BUSY
            assert watch.request(Record(STAT)).status == BUSY
            took = time.monotonic() - began
            stall = stalls.worst()
        assert took < 1 + 3 * stall, "not before there was room"
        for consumer in consumers:
            assert consumer.expiration().op == 16
            consumer.close()
        assert watch.stat().refused_busy == 2


def test_an_engine_that_hangs_does_not_take_every_buffer():
    with tap.slow(3000, "buffers = 4\n") as daemon:
        stuck = [attach(daemon.path) for _ in range(12)]
        for number, queue in enumerate(stuck):
            queue.send(*[arm(HOUR, number)] * 600)
        time.sleep(0.2)
        with Stalls() as stalls:
            began = time.monotonic()
            with attach(daemon.path) as other:
                assert other.stat().connections == len(stuck) + 1
            took = time.monotonic() - began
            stall = stalls.worst()
        assert took < 2 + 3 * stall, "unheard while the engine hung"
        for number, queue in enumerate(stuck):
            assert all(r.status == 0 and r.cookie == number
                       for r in queue.replies(600))
            queue.close()


def test_who_does_not_read_is_not_refused():
    with Daemon("busy_after = 1000\nrecords_in_flight = 64\n") as daemon, \
            attach(daemon.path) as lazy, attach(daemon.path) as other:
        # Long replies, so that it is full with a buffer done by half.
        sent = flood(lazy, pack(([arm(HOUR)] * 15 +
                                 [Record(SCAN, period=400)]) * 32), 1.5)
        assert other.stat().records < sent // SIZE
        lazy.socket.settimeout(30)
        answered = 0
        while answered < sent // SIZE:
            reply = lazy.record()
            assert reply.status == 0, reply
            answered += reply.op == ARM or reply.id == 0
        assert other.stat().refused_busy == 0


def flood(connection, data, seconds):
    """Sends until the socket takes nothing for this time. Returns the bytes sent."""
    connection.socket.settimeout(0)
    view, sent, held_since = memoryview(data), 0, time.monotonic()
    while time.monotonic() - held_since < seconds:
        try:
            sent += connection.socket.send(view[sent % len(data):])
            held_since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.005)
    return sent


if __name__ == "__main__":
    tap.main()
