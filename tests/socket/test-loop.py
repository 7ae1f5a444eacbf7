#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon waits by io_uring, and by epoll where the kernel refuses io_uring."""

import errno
import os

import tap
from client import CONSUME, HOUR, arm, attach, wait_for
from daemon import Daemon, uring_refused

IO_URING, EPOLL = 1, 2


def refused(error, loop, threads=1):
    """A daemon to which io_uring is refused with @error."""
    refuse = tap.preload("refuse-uring.so")
    with open("/proc/self/status", encoding="ascii") as status:
        if "Seccomp_filters:" not in status.read():
            raise tap.Skip("the kernel has no seccomp filters")
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return Daemon(loop=loop, threads=threads, environment={
        "LD_PRELOAD": refuse, "ASAN_OPTIONS": options,
        "EXPIRY_REFUSE_URING": str(error)})


def serves(daemon):
    """Have a timer armed and delivered; the loop as STAT has it."""
    with attach(daemon.path, "loop", CONSUME) as queue:
        queue.credit(1)
        assert queue.request(arm(0, flags=0)).status == 0
        assert queue.record()
        return queue.stat().loop


def test_epoll_where_io_uring_is_refused():
    for error in (errno.EPERM, errno.ENOSYS, errno.EACCES):
        with refused(error, "auto") as daemon:
            assert serves(daemon) == EPOLL
            line = "loop epoll: io_uring: %s" % os.strerror(error)
            assert wait_for(lambda: line in daemon.log()), daemon.log()


def test_epoll_in_each_thread():
    with refused(errno.EPERM, "auto", threads=3) as daemon:
        # Anonymous queues are spread over the threads.
        connections = [attach(daemon.path) for _ in range(6)]
        for connection in connections:
            assert connection.request(arm(HOUR)).status == 0
            assert connection.stat().loop == EPOLL
            connection.close()


def test_no_other_loop_than_is_configured():
    daemon = refused(errno.EPERM, "io_uring")
    try:
        assert not daemon.wait_ready()
        assert daemon.process.wait() == 1
        assert "io_uring: Operation not permitted (see the sysctl" in \
            daemon.log(), daemon.log()
    finally:
        daemon.remove()


def test_as_configured():
    with Daemon(loop="epoll") as daemon:
        assert serves(daemon) == EPOLL
        assert "loop" not in daemon.log(), daemon.log()
    if uring_refused():
        raise tap.Skip("io_uring is refused here")
    with Daemon(loop="io_uring") as daemon:
        assert serves(daemon) == IO_URING


def test_refused_for_another_reason_is_not_auto():
    """Where memory is short, less of io_uring is not what helps."""
    daemon = refused(errno.ENOMEM, "auto")
    try:
        assert not daemon.wait_ready()
        assert "io_uring: Cannot allocate memory (is the limit" in \
            daemon.log(), daemon.log()
    finally:
        daemon.remove()


def test_clients_beyond_the_events_of_a_turn():
    """More clients are ready than one call returns events for."""
    with Daemon("connections = 2000\nqueues = 2000\n", loop="epoll",
                threads=1) as daemon:
        connections = [attach(daemon.path, "shared") for _ in range(1300)]
        with daemon.halted():
            for connection in connections:
                connection.send(arm(HOUR))
        for connection in connections:
            assert connection.reply().status == 0
            connection.close()


if __name__ == "__main__":
    tap.main()
