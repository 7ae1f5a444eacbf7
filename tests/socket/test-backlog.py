#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that do not read: the limit of their memory together, the clients that are
closed above it, and the release of the memory."""

import os
import re
import select
import subprocess

import tap
from client import (CONSUME, HOUR, QUERY, Record, arm, attach, pack, scaled,
                    wait_for)
from daemon import ROOT, SHADOW, Daemon

MEBIBYTE = 1 << 20
FULL = 32 << 10         # what a client is owed then, or more
QUERIES = memoryview(pack([Record(QUERY, id=77)] * 2048))


def push(connection):
    """Sends as much as the socket takes now, even partial records. Returns whether it
    took something."""
    connection.socket.setblocking(False)
    took = False
    try:
        while connection.socket.send(QUERIES):
            took = True
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    return took


def fill(path, count, watch):
    """Returns clients with the most unread bytes that the daemon allows."""
    many = [attach(path) for _ in range(count)]
    first = last = watch.stat()

    def grown():
        """No socket takes more, in either direction: what one still takes is owed no
        longer. Or the limit has ended one."""
        nonlocal last
        took = [push(connection) for connection in many]
        before, last = last, watch.stat()
        return last.closed_backlog > first.closed_backlog or \
            not any(took) and \
            before.backlog == last.backlog > first.backlog + count * FULL
    assert wait_for(grown), watch.stat()
    return many


def ended(connection):
    poll = select.poll()
    poll.register(connection.socket, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def test_all_together_stay_within_the_limit():
    with Daemon("backlog_memory = %d\n" % MEBIBYTE) as daemon, \
            attach(daemon.path, "watch") as watch:
        many = fill(daemon.path, 40, watch)
        assert wait_for(lambda: watch.stat().closed_backlog), watch.stat()
        # As many clients ended as were counted, not all. Others are served as before.
        assert wait_for(lambda: sum(map(ended, many))
                        == watch.stat().closed_backlog), watch.stat()
        assert wait_for(lambda: watch.stat().backlog <= MEBIBYTE), watch.stat()
        assert watch.stat().closed_backlog < 40, watch.stat()
        assert watch.request(arm(HOUR)).status == 0
        line = [line for line in daemon.log().splitlines()
                if "does not read" in line][0]
        assert re.search(r"\bpid %d\b" % os.getpid(), line), line
        assert re.search(r"\buid %d\b" % os.getuid(), line), line
        for connection in many:
            connection.close()


def test_a_lower_limit_ends_those_that_are_over_it():
    with Daemon("backlog_memory = %d\n" % (64 * MEBIBYTE)) as daemon, \
            attach(daemon.path, "watch") as watch:
        many = fill(daemon.path, 40, watch)
        stat = watch.stat()
        assert stat.backlog > MEBIBYTE and not stat.closed_backlog, stat
        daemon.configure("backlog_memory = %d\n" % MEBIBYTE)
        daemon.process.send_signal(1)
        assert wait_for(lambda: watch.stat().backlog <= MEBIBYTE), watch.stat()
        assert watch.stat().closed_backlog, watch.stat()
        for connection in many:
            connection.close()


def test_memory_goes_back():
    """Other allocations meanwhile lie between its pieces."""
    if SHADOW:
        raise tap.Skip("malloc() is the sanitizer's")
    with Daemon() as daemon, attach(daemon.path, "watch") as watch:
        idle, bad = [], []
        for _ in range(scaled(100, 20)):
            bad += fill(daemon.path, 1, watch)
            idle += [attach(daemon.path) for _ in range(20)]
        full = daemon.resident()
        backlog = watch.stat().backlog
        assert backlog > scaled(5 * MEBIBYTE), backlog
        for connection in bad:
            connection.close()
        assert wait_for(lambda: watch.stat().backlog == 0), watch.stat()
        assert wait_for(lambda: watch.stat() and
                        full - daemon.resident() > backlog // 2, 5), \
            (full, daemon.resident(), backlog)
        for connection in idle:
            connection.close()


def test_what_is_counted_is_shown():
    with Daemon("backlog_memory = %d\ncredit_max = 5\n" % MEBIBYTE) as daemon, \
            attach(daemon.path, "watch", CONSUME) as watch:
        watch.credit(6)
        many = fill(daemon.path, 40, watch)
        assert wait_for(lambda: watch.stat().closed_backlog)
        ctl = [os.path.join(ROOT, "build", "expiryctl"), "--socket",
               daemon.path]

        def said(command):
            return subprocess.run(ctl + [command], stdout=subprocess.PIPE,
                                  text=True, check=True).stdout

        def agree():
            """The clients are still being seen to."""
            lines = said("metrics").splitlines()
            stat = watch.stat()
            return "expiry_closed_backlog_total %d" % stat.closed_backlog \
                in lines and "expiry_refused_credit_total 1" in lines and \
                "expiry_backlog_bytes %d" % stat.backlog in lines and \
                "%d for not reading" % stat.closed_backlog in said("status")
        assert wait_for(agree), (watch.stat(), said("metrics"))
        for connection in many:
            connection.close()


if __name__ == "__main__":
    tap.main()
