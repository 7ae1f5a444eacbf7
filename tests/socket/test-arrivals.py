#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Silent connections, and users with as many connections as possible: limits of time
and number leave room for other users."""

import contextlib
import errno
import os
import time

import tap
from client import (HELLO, HOUR, Connection, accepted, arm, attach,
                    hello, scaled, wait_for)
from daemon import Daemon

LIMIT = 0.4             # seconds for HELLO
TRIES = 20              # of a machine that may be busy with other things


def limited():
    return Daemon("hello_timeout = %d\n" % (LIMIT * 1000))


def timed_out(connection):
    """Waits until the daemon ends a connection without HELLO."""
    said = connection.ended()
    assert [(r.op, r.status) for r in said] == [(HELLO, -errno.ETIMEDOUT)], \
        said


def test_silent_connection_is_ended():
    with limited() as daemon, attach(daemon.path, "watch") as watch:
        begin = time.monotonic()
        with Connection(daemon.path) as silent:
            timed_out(silent)
        assert time.monotonic() - begin >= LIMIT * 0.9
        assert watch.stat().closed_hello == 1, watch.stat()
        assert "HELLO did not come in time" in daemon.log(), daemon.log()
        # After HELLO a connection may be silent.
        assert watch.request(arm(HOUR)).status == 0


def test_part_of_hello_is_not_enough():
    with limited() as daemon:
        with Connection(daemon.path) as slow:
            # Single bytes do not restart the time limit.
            sent = 0
            for byte in hello("slow")[:-1]:
                try:
                    slow.socket.sendall(bytes([byte]))
                except OSError:
                    break
                if not slow.quiet(LIMIT / 10):
                    break
                sent += 1
            timed_out(slow)
            assert sent < 31, "it was listened to for as long as it sent"
        with attach(daemon.path, "watch") as watch:
            stat = watch.stat()
            assert stat.closed_hello == 1 and not stat.closed_protocol, stat


def test_hello_in_parts_within_the_time_is_taken():
    for _ in range(TRIES):
        with limited() as daemon, Connection(daemon.path) as queue:
            begin = time.monotonic()
            with contextlib.suppress(OSError):
                for byte in hello("parts"):
                    queue.socket.sendall(bytes([byte]))
            if time.monotonic() - begin > LIMIT / 4:
                continue            # the machine stood still
            assert queue.reply().status == 0
            # The limit of its HELLO is over, and nothing happens.
            assert queue.quiet(LIMIT * 2)
            assert queue.request(arm(HOUR)).status == 0
            assert queue.stat().closed_hello == 0
            return
    raise tap.Skip("this machine is too slow")


def test_no_limit_where_none_is_set():
    with Daemon("hello_timeout = 0\n") as daemon:
        with Connection(daemon.path) as silent:
            assert silent.quiet(LIMIT)
            assert silent.hello().status == 0


def test_many_silent_ones_go_and_leave_nothing():
    with limited() as daemon, attach(daemon.path, "watch") as watch:
        before = daemon.open_files()
        many = [Connection(daemon.path) for _ in range(scaled(500, 20))]
        for silent in many:
            timed_out(silent)
        assert wait_for(lambda: daemon.open_files() == before)
        stat = watch.stat()
        assert stat.closed_hello == len(many), stat
        assert stat.connections == 1, stat
        for silent in many:
            silent.close()


def switches(pid):
    """Returns how often the daemon went to sleep."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return int([line.split()[1] for line in file
                    if line.startswith("voluntary_ctxt_switches")][0])


def test_nothing_wakes_up_for_a_hello_that_came():
    tap.need_undisturbed()
    with limited() as daemon, contextlib.ExitStack() as stack:
        queues = [stack.enter_context(attach(daemon.path, "one"))
                  for _ in range(20)]
        gone = [attach(daemon.path, "one") for _ in range(20)]
        for queue in gone:
            queue.close()
        assert wait_for(lambda: queues[0].stat().connections == len(queues))
        # All notifications have been handled, so it sleeps.
        with attach(daemon.path, "one") as last:
            assert last.quiet(LIMIT / 4)
            before = switches(daemon.process.pid)
            assert last.quiet(LIMIT * 2)
            woken = switches(daemon.process.pid) - before
        assert woken <= 1, "%d times" % woken


@contextlib.contextmanager
def acting_as(uid):
    """Acts as this user: a socket's peer credentials are set at connect()."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def take_all(path, uid, most):
    """Returns connections of one user, until one is refused."""
    held = []
    while len(held) < most:
        with acting_as(uid):
            one = accepted(path)
        if not one:
            break
        held.append(one)
    return held


def test_one_user_cannot_keep_others_out():
    tap.need_root()
    # 32 are kept for users with none, and 1 of these for root.
    with Daemon("connections = 256\nconnections_per_user = 256\n") as daemon:
        first, uid = take_all(daemon.path, 70000, 256), 70001
        assert len(first) == 224, len(first)
        others = []
        while len(others) < 31:
            held = take_all(daemon.path, uid, 256)
            assert len(held) == 1, (len(others), len(held))
            others += held
            uid += 1
        # All other users together leave room for root.
        assert not take_all(daemon.path, uid, 1)
        root = take_all(daemon.path, 0, 256)
        assert len(root) == 1, len(root)
        stat = root[0].stat()
        assert stat.connections == 256, stat
        # Other users get the first one's released connections.
        for connection in first[:100]:
            connection.close()
        assert wait_for(lambda: root[0].stat().connections == 156)
        again = take_all(daemon.path, uid, 256)
        assert len(again) == 224 - 156, len(again)
        for connection in first + others + root + again:
            connection.close()


if __name__ == "__main__":
    tap.main()
