#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times that the daemon tells, beside what this program and the kernel measured
of the same: of the same order, in the same unit."""

import os
import struct
import time

import tap
from client import (BOOTTIME, CONSUME, HOUR, MONOTONIC, REALTIME, SIZE, STAT,
                    STAT_BODY, Record, arm, attach, scaled, wait_for)
from daemon import THREADS, Daemon

HISTOGRAMS = struct.Struct("=40Q40Q40Q")


def histograms(connection):
    """Of turns and of requests."""
    head = connection.request(Record(STAT))
    counts = HISTOGRAMS.unpack_from(connection.take(head.period * SIZE),
                                    STAT_BODY.size + 4)
    return counts[:40], counts[80:]


def bounds(before, after):
    """The least and the most time that is in what was added, in ns."""
    added = [b - a for a, b in zip(before, after)]
    return (sum(n << i - 1 for i, n in enumerate(added) if i),
            sum(n << i for i, n in enumerate(added)))


def processor_time(daemon):
    """Nanoseconds that its threads had a processor."""
    base = "/proc/%d" % daemon.process.pid
    if not os.path.exists(os.path.join(base, "schedstat")):
        raise tap.Skip("this kernel has no schedstat")
    total = 0
    for task in os.listdir(os.path.join(base, "task")):
        with open(os.path.join(base, "task", task, "schedstat"),
                  encoding="utf-8") as file:
            total += int(file.read().split()[0])
    return total


def test_turns_and_requests_are_as_long_as_they_take():
    with Daemon() as daemon, attach(daemon.path) as connection:
        connection.batch([arm(HOUR)] * 500)
        turns, requests = histograms(connection)
        begun, used = time.monotonic_ns(), processor_time(daemon)
        for _ in range(scaled(400, 20)):
            connection.send(*[arm(HOUR)] * 500)
            connection.replies(500)
        used = processor_time(daemon) - used
        passed = time.monotonic_ns() - begun
        turns_after, requests_after = histograms(connection)
        for name, least, most in (("turns", *bounds(turns, turns_after)),
                                  ("requests",
                                   *bounds(requests, requests_after))):
            # What is done for the client is most of what the daemon does; its
            # threads may be kept from the processor meanwhile.
            assert most > used / 20, (name, most, used)
            assert least < passed * THREADS, (name, least, passed)


def test_the_time_of_a_request_is_what_it_waited():
    with tap.slow(50) as daemon, attach(daemon.path) as connection:
        _, before = histograms(connection)
        begun = time.monotonic_ns()
        connection.request(arm(HOUR))
        passed = time.monotonic_ns() - begun
        _, after = histograms(connection)
        # STAT comes at once.
        added = [b - a for a, b in zip(before, after)]
        longest = max(i for i, n in enumerate(added) if n)
        assert 1 << longest >= 50 * 10**6, added
        assert 1 << longest - 1 <= passed, (added, passed)


def late_by_a_halt(ahead):
    """A timer @ahead of now, in ns, comes due while the daemon stands still.

    Returns False where it was due before that: this program was kept from the
    processor for so long.
    """
    with Daemon() as daemon, \
            attach(daemon.path, flags=CONSUME) as connection:
        connection.credit(1)
        deadline = connection.request(arm(ahead)).deadline
        with daemon.halted():
            if time.monotonic_ns() >= deadline:
                return False
            # Until it is late for certain.
            time.sleep(max(0, deadline - time.monotonic_ns()) / 10**9 + 0.2)
            least = time.monotonic_ns() - deadline
        assert connection.expiration().deadline == deadline
        most = time.monotonic_ns() - deadline
        stat = connection.stat()
        assert sum(stat.lateness) == 1, stat
        bucket = stat.lateness.index(1)
        assert 1 << bucket > least * 0.9 and 1 << bucket - 1 <= most, \
            (bucket, least, most)
        for name in ("lateness_max", "lateness_max_all"):
            value = getattr(stat, name)
            assert least * 0.9 <= value <= most, (name, value, least, most)
        daemon.reload()
        told = daemon.manager.value("STATUS")
        told = int(told.split("worst lateness ")[1].split("ms")[0])
        assert least * 0.9 <= told * 10**6 <= most, (told, least, most)
    return True


def test_lateness_is_what_a_client_sees():
    assert any(late_by_a_halt(ahead * 10**6) for ahead in (50, 500, 5000))


def test_times_are_in_nanoseconds():
    before = time.monotonic_ns()
    with Daemon() as daemon, attach(daemon.path, "one") as connection:
        ready = time.monotonic_ns()
        assert wait_for(lambda: time.monotonic_ns() - ready > 10**8)
        for clock, name in ((REALTIME, "two"), (MONOTONIC, "three"),
                            (BOOTTIME, "four")):
            with attach(daemon.path, name, clock=clock) as other:
                armed = other.request(arm(HOUR))
                least = time.clock_gettime_ns(clock)
                stat = other.stat()
                most = time.clock_gettime_ns(clock)
                assert least <= stat.now <= most, (name, stat.now)
                assert stat.next == armed.deadline, (name, stat)
        uptime = connection.stat().uptime
        assert 10**8 <= uptime <= time.monotonic_ns() - before, uptime


if __name__ == "__main__":
    tap.main()
