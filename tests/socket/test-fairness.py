#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests are charged their cost: a client that repeats expensive requests does not
delay the clients beside it."""

import contextlib
import itertools
import os
import signal
import struct
import time

import tap
from client import (ACK, ACKING, CANCEL, CONSUME, HOUR, QUERY, QUEUES, SCAN, SIZE, SLOWER,
                    STAT, STAT_BODY, Connection, Record, arm, attach, scaled, wait_for)
from daemon import Daemon
from listing import take_page

BUCKETS = struct.Struct("=40Q")
SECOND = 10**9
SLOTS = scaled(200000, 2000)


def emptied(path, name):
    """A queue that had many timers and has one: few rows, many slots."""
    queue = attach(path, name)
    replies = queue.batch([arm(HOUR, i) for i in range(SLOTS)])
    replies = queue.batch([Record(CANCEL, id=r.id) for r in replies[:-1]])
    assert all(r.status == 0 for r in replies)
    return queue


# ------------------------------------------------------------------------
# The budget of a turn, in turns: those of a daemon that finds all at once.


def turns(connection):
    """How many there were so far."""
    head = connection.request(Record(STAT))
    return sum(BUCKETS.unpack_from(connection.take(head.period * SIZE),
                                   STAT_BODY.size + 4))


def read_replies(connection, request, count):
    for _ in range(count):
        if request.op == STAT:
            head = connection.reply()
            connection.take(head.period * SIZE)
        elif request.op == QUEUES:
            take_page(connection)
        else:
            row = connection.reply()
            while request.op == SCAN and row.id:
                row = connection.reply()
            assert row.op == request.op, row


def turns_for(daemon, request, clients, each):
    """Returns the turns needed to answer the clients' requests."""
    with contextlib.ExitStack() as stack:
        watch = stack.enter_context(attach(daemon.path, "emptied"))
        many = [stack.enter_context(attach(daemon.path, "emptied"))
                for _ in range(clients)]
        before = turns(watch)
        with daemon.halted():
            for one in many:
                one.send(*[request] * each)
        for one in many:
            read_replies(one, request, each)
        return turns(watch) - before


def test_a_long_answer_takes_as_much_of_a_turn_as_many_short_ones(daemon):
    with emptied(daemon.path, "emptied"):
        # What is asked by one client, and by each of many.
        plain = turns_for(daemon, Record(QUERY, id=77), 1, 64)
        plain_each = turns_for(daemon, Record(QUERY, id=77), 32, 1)
        assert plain <= 8 and plain_each <= 10, (plain, plain_each)
        for request in (Record(SCAN, period=500), Record(QUEUES, period=500)):
            took = turns_for(daemon, request, 1, 64)
            assert took >= 64, (request, took)
            took = turns_for(daemon, request, 32, 1)
            assert took >= 16, (request, took)
        # A buffer of them, which without would be done in a turn or two.
        took = turns_for(daemon, Record(STAT), 1, 500)
        assert took >= 500 * 8 // 512, took
        took = turns_for(daemon, Record(STAT), 32, 32)
        assert took >= 32 * 32 * 8 // 1024, took


def test_few_requests_do_not_wait_behind_many():
    """What was answered in all before one who comes last: not all that the
    others had sent."""
    clients, each = 32, 512
    with Daemon(threads=1) as daemon, contextlib.ExitStack() as stack:
        good = stack.enter_context(attach(daemon.path))
        many = [stack.enter_context(attach(daemon.path))
                for _ in range(clients)]
        before = good.stat().records
        with daemon.halted():
            for one in many:
                one.send(*[arm(HOUR)] * each)
            good.send(Record(STAT))
        stat = good.stat_reply()
        answered = stat.records - before
        assert answered < clients * each // 4, answered
        for one in many:
            one.replies(each)


def test_equal_clients_have_equal_shares(daemon):
    """When the first of them has all its answers, the others have half of
    theirs: the deadline in a reply tells when the request was done."""
    clients, each = 8, 4096
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(attach(daemon.path, "shared"))
                for _ in range(clients)]
        with daemon.halted():
            for one in many:
                one.send(*[arm(HOUR)] * each)
        done = [[reply.deadline for reply in one.replies(each)]
                for one in many]
        first = min(max(times) for times in done)
        shares = [sum(at <= first for at in times) for times in done]
        assert 2 * min(shares) >= each, shares


# ------------------------------------------------------------------------


def done_before_expirations(daemon, clients, scans, mode, own):
    """Returns, for each timer that is due among the requests of @clients full of scans,
    how many of these are done between its deadline and its expiration. The daemon's own
    order tells, so that a slow machine finds the same.

    @mode: a flag of HELLO, or 0
    @own: the consumer sends scans, too
    """
    scan, query = Record(SCAN, period=2**32 - 1), Record(QUERY, id=77)
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(attach(daemon.path, "emptied"))
                for _ in range(clients)]
        consumer = stack.enter_context(attach(daemon.path, "due-%d" % mode,
                                              CONSUME | mode))
        watch = consumer if own else \
            stack.enter_context(attach(daemon.path, "due-%d" % mode, mode))
        consumer.credit(1000)
        before = consumer.stat()
        assert before.credit == 1000 and not before.armed, before
        # From 10 us to 125 ms later, for a machine of any speed.
        armed = consumer.batch([arm(SECOND // 10 * SLOWER + int(10000 * 1.1**i))
                                for i in range(100)])
        with daemon.halted():
            for one in many:
                one.send(*[scan] * scans)
            # A scan before each STAT: there is about one of them in a turn, which ends
            # behind a reply in place. With the rest it never counts as one of the
            # clients with few requests.
            watch.send(*[scan, query, Record(STAT)] * scans, *[query] * 64)
            time.sleep(max(0, armed[0].deadline / SECOND - time.monotonic()))
        stats = []
        for _ in range(scans):
            read_replies(watch, scan, 1)
            read_replies(watch, query, 1)
            stats.append(watch.stat_reply())
        read_replies(watch, query, 64)
        told = [consumer.expiration() for _ in armed]
        if mode == ACKING:
            acked = consumer.batch([Record(ACK, id=one.id) for one in told])
            assert not any(reply.status for reply in acked), acked
    counts = []
    for number, one in enumerate(armed, before.delivered + 1):
        due = [stat for stat in stats if stat.now >= one.deadline]
        sent = [stat for stat in due if stat.delivered >= number] + stats[-1:]
        if due and due[0] != stats[0]:
            counts.append(sent[0].records - due[0].records)
    return counts


def test_expirations_come_beside_scans_that_find_little():
    """An expiration waits for one scan of each client at most, for those of the turn before,
    and for one more turn where the module reads it, also where the consumer sends scans
    itself. A timer interrupt may come late, so the latest quarter does not count."""
    # A socket takes the replies to so many: the reader's speed does not count.
    clients, scans = 8, 30
    with Daemon(threads=1) as daemon, emptied(daemon.path, "emptied"):
        for mode, own in itertools.product((0, ACKING), (False, True)):
            counts = []
            for _ in range(20):
                counts += done_before_expirations(daemon, clients, scans, mode, own)
                if len(counts) >= 20:
                    break
            counts.sort()
            assert len(counts) >= 5, (mode, own, counts)
            most = counts[3 * len(counts) // 4]
            print("# mode %d, own %d: %d requests before three quarters of %d expirations"
                  % (mode, own, most, len(counts)))
            assert most <= 3 * (clients + 3), (mode, own, counts)


def test_a_request_does_not_wait_for_all_that_connect(daemon):
    with attach(daemon.path) as good:
        # Those of the test before are gone.
        assert wait_for(lambda: good.stat().connections == 1)
        # Everything is there when the daemon looks.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            many = [Connection(daemon.path) for _ in range(1000)]
            good.send(Record(STAT))
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        stat = good.stat_reply()
        assert stat.connections < 500, stat
        # They are served all the same.
        assert wait_for(lambda: good.stat().connections == 1001)
        for connection in many:
            connection.close()


if __name__ == "__main__":
    tap.main()
