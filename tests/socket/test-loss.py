#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What ends with the daemon is in its log, by queue; what is kept is not."""

import contextlib
import re
import signal

import tap
from client import ACK, ACKING, CONSUME, DROP, HOUR, KEYED, Record, arm, attach
from daemon import ENGINE, Daemon

LINE = re.compile(r"(1 timer ends|(?!1 )\d+ timers end) with the daemon: (.*)")


def end(daemon, signal_nr=signal.SIGTERM):
    """End it; what it says is lost: the sum, and a dict of names."""
    assert daemon.end(signal_nr) == 0
    with open(daemon.log_path, encoding="utf-8") as file:
        found = LINE.findall(file.read())
    assert len(found) <= 1, found
    if not found:
        return 0, {}
    rows = [row.rsplit(" ", 1) for row in found[0][1].split(", ")]
    return int(found[0][0].split()[0]), {name: int(nr) for name, nr in rows}


def fill(daemon, counts):
    for name, count in counts.items():
        with attach(daemon.path, name) as queue:
            assert {r.status for r in queue.batch([arm(HOUR)] * count)} <= {0}


@contextlib.contextmanager
def started(kept=0):
    """A daemon that the test ends. @kept: how many of the module's queues it keeps."""
    daemon = Daemon("kept_queues = %d\n" % kept if ENGINE == "kernel" else None)
    try:
        assert daemon.wait_ready(), daemon.log()
        yield daemon
    finally:
        daemon.remove()


def test_nothing_to_lose_is_no_line():
    with started() as daemon:
        with attach(daemon.path, "empty"), attach(daemon.path, "dropped") as q:
            assert q.request(arm(HOUR)).status == 0
            assert q.request(Record(DROP)).status == 0
        assert end(daemon) == (0, {})


def test_each_queue_with_its_number():
    for signal_nr in (signal.SIGTERM, signal.SIGINT):
        with started() as daemon:
            fill(daemon, {"leases": 3, "empty": 0, "sessions": 500})
            assert end(daemon, signal_nr) == (
                503, {"leases": 3, "sessions": 500})


def test_queues_without_a_name_are_a_sum():
    with started() as daemon:
        fill(daemon, {"leases": 1})
        with attach(daemon.path) as one, attach(daemon.path) as other:
            one.batch([arm(HOUR)] * 2)
            other.batch([arm(HOUR)] * 3)
            assert end(daemon) == (6, {"leases": 1,
                                       "queues without a name": 5})


def test_the_fullest_are_named_and_the_rest_is_a_sum():
    """However many there are, and whichever thread has them."""
    with started() as daemon:
        counts = {"a-queue-with-a-name-o-%02d" % i: i for i in range(1, 31)}
        fill(daemon, counts)
        total, rows = end(daemon)
        assert total == sum(counts.values())
        fullest = {name: nr for name, nr in counts.items() if nr > 22}
        assert rows == {**fullest,
                        "22 other queues": total - sum(fullest.values())}


def test_what_was_delivered_and_not_acknowledged_counts():
    with started() as daemon:
        with attach(daemon.path, "acked", CONSUME | ACKING | KEYED) as queue:
            queue.credit(2)
            for number in (1, 2):
                assert queue.request(arm(0, number, id=number)).status == 0
            for _ in range(2):
                queue.expiration()
            assert queue.request(Record(ACK, id=1)).status == 0
        assert end(daemon) == (1, {"acked": 1})


def test_what_the_store_has_is_not_lost():
    if ENGINE != "kernel":
        raise tap.Skip("the kernel engine's")
    with started(kept=1) as daemon:
        fill(daemon, {"kept": 4})
        fill(daemon, {"too-many": 2})
        assert end(daemon) == (2, {"too-many": 2})


if __name__ == "__main__":
    tap.main()
