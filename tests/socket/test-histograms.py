#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the daemon counts of itself: turns, batches, and the time requests
spend in it."""

import struct
import time

import tap
from client import (CONSUME, HOUR, MONOTONIC, REALTIME, REFRESH, SECOND, SIZE,
                    STAT, STAT_BODY, Record, arm, attach, scaled_beyond_socket)
from daemon import ENGINE, SLOW_MS, Daemon
from stalls import Stalls

BUCKETS = 40
HISTOGRAMS = struct.Struct("=%dQ" % (3 * BUCKETS))
RESERVED = 4


def histograms(connection):
    """Turns, batches and requests: what STAT has behind the counters."""
    head = connection.request(Record(STAT))
    body = connection.take(head.period * SIZE)
    counts = HISTOGRAMS.unpack_from(body, STAT_BODY.size + RESERVED)
    return [counts[i * BUCKETS:(i + 1) * BUCKETS] for i in range(3)]


def test_batches_are_counted_by_size():
    with Daemon() as daemon, attach(daemon.path) as connection:
        _, before, _ = histograms(connection)
        for size in (1, 16, 16, 500):
            connection.send(*[arm(HOUR)] * size)
            connection.replies(size)
        _, after, _ = histograms(connection)
        more = [b - a for a, b in zip(before, after)]
        assert more[1] == 1 and more[5] == 2 and more[9] == 1, more
        assert sum(more) == 4, more


def test_requests_and_turns_are_counted():
    rounds = 50
    with Daemon() as daemon, attach(daemon.path) as connection:
        turns, _, requests = histograms(connection)
        for _ in range(rounds):
            connection.request(arm(HOUR))
        turns_after, _, requests_after = histograms(connection)
        assert sum(requests_after) - sum(requests) == rounds
        assert sum(turns_after) - sum(turns) >= rounds
        # In nanoseconds, and not of the time it slept. A turn with work takes more
        # than 64; an empty one may take less.
        assert sum(turns_after[:7]) * 10 < sum(turns_after), turns_after
        assert not turns_after[-1] and not requests_after[-1]


def past_arm(path):
    """Timers for times that have long passed; how many, held or not."""
    with attach(path, flags=CONSUME, clock=REALTIME) as queue:
        queue.credit(10)
        queue.batch([arm(i, i, flags=0) for i in range(5)])
        late = queue.request(arm(HOUR)).id
        queue.request(Record(REFRESH, id=late, deadline=1))
        while len(queue.expired) < 6:
            queue.expired.append(queue.record())
        return queue.stat(), 6, 0


def past_period(path):
    """A periodic timer that catches up is one record, late for no period."""
    with attach(path, flags=CONSUME, clock=MONOTONIC) as queue:
        queue.credit(20)
        deadline = time.monotonic_ns() - 19 * SECOND // 2
        queue.request(arm(deadline, flags=0, period=1000))
        count = queue.expiration().count
        # More of them, if the machine stood still.
        most = 1 + (time.monotonic_ns() - deadline) // SECOND
        assert 10 <= count <= most, (count, most)
        return queue.stat(), 1, 0


def held_by_nobody(path):
    """What falls due while there is no consumer."""
    with attach(path, "held") as producer:
        producer.batch([arm(SECOND // 100, i) for i in range(5)])
        time.sleep(1.5)
        with attach(path, "held", CONSUME) as consumer:
            consumer.credit(10)
            for _ in range(5):
                consumer.expiration()
            return producer.stat(), 0, 5


def held_without_credit(path):
    with attach(path, flags=CONSUME) as queue:
        queue.credit(2)
        queue.batch([arm(SECOND // 100, i) for i in range(5)])
        while len(queue.expired) < 2:
            queue.expired.append(queue.record())
        time.sleep(1.5)
        queue.credit(8)
        while len(queue.expired) < 5:
            queue.expired.append(queue.record())
        return queue.stat(), 0, 3


def held_unread(path):
    """What its socket does not take; how much that is is the kernel's."""
    count = scaled_beyond_socket(30000)
    with attach(path, "unread", CONSUME) as queue, \
            attach(path, "unread") as watch:
        queue.credit(count)
        watch.batch([arm(SECOND // 100, i) for i in range(count)])
        time.sleep(1.5)
        held = watch.stat().armed
        assert held, "all of them fit into its socket"
        for _ in range(count):
            queue.expiration()
        stat = watch.stat()
        # What was on its way when it stopped to read had been collected before.
        assert held - 512 <= stat.held <= held or ENGINE == "kernel", \
            (stat, held)
        return stat, 0, stat.held


def test_lateness_is_the_daemons_own():
    """Neither a deadline that had passed when it was given nor a consumer that
    was away or did not read makes the daemon late."""
    for cause in (past_arm, past_period, held_by_nobody, held_without_credit,
                  held_unread):
        with Daemon() as daemon, Stalls() as stalls:
            stat, past, held = cause(daemon.path)
            most = SECOND + int(stalls.worst() * SECOND)
            assert stat.lateness_max_all < most, (cause, most, stat)
            assert stat.past == past, (cause, stat)
            if ENGINE == "kernel":      # whose readers are their own affair
                continue
            assert stat.held == held, (cause, stat)
            assert stat.lateness_max < most, (cause, most, stat)
            assert sum(stat.lateness) + past + held == stat.delivered, stat


def test_a_batch_takes_one_turn():
    """The module's answer, too, goes out in the turn in which it was asked."""
    rounds = 200
    with Daemon() as daemon, attach(daemon.path) as connection:
        before, _, _ = histograms(connection)
        for _ in range(rounds):
            connection.batch([arm(HOUR)] * 16)
        after, _, _ = histograms(connection)
        turns = sum(after) - sum(before)
        if SLOW_MS:
            rounds *= 2
        # Now and then work is left over for another turn.
        assert turns <= rounds + rounds // 4 + 5, turns


def test_smallest_buffers_hold_an_answer():
    with Daemon("buffer_size = 2048\n") as daemon, \
            attach(daemon.path) as connection:
        assert connection.stat().connections == 1


if __name__ == "__main__":
    tap.main()
