#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the daemon counts of itself: turns, batches, and the time requests
spend in it."""

import struct

import tap
from client import HOUR, SIZE, STAT, STAT_BODY, Record, arm, attach
from daemon import Daemon

BUCKETS = 40
HISTOGRAMS = struct.Struct("=%dQ" % (3 * BUCKETS))
RESERVED = 1 * 8


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
        # In nanoseconds, and not of the time it slept.
        assert not sum(turns_after[:7]), turns_after
        assert not turns_after[-1] and not requests_after[-1]


def test_a_batch_takes_one_turn():
    """The module's answer, too, goes out in the turn in which it was asked."""
    rounds = 200
    with Daemon() as daemon, attach(daemon.path) as connection:
        before, _, _ = histograms(connection)
        for _ in range(rounds):
            connection.batch([arm(HOUR)] * 16)
        after, _, _ = histograms(connection)
        turns = sum(after) - sum(before)
        # Now and then work is left over for another turn.
        assert turns <= rounds + rounds // 4 + 5, turns


def test_smallest_buffers_hold_an_answer():
    with Daemon("buffer_size = 2048\n") as daemon, \
            attach(daemon.path) as connection:
        assert connection.stat().connections == 1


if __name__ == "__main__":
    tap.main()
