#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The counts of users add up to the totals, for any user ids, and end with the users'
connections."""

import contextlib
import os
import socket

import tap
from client import (CLEAR, HOUR, Connection, Record, arm, attach, hello,
                    wait_for)
from daemon import Daemon

# Those that differ by a power of two meet in one place of a table.
USERS = (0, 1, 2, 255, 256, 257, 511, 512, 65534, 65536, 2**31, 2**32 - 2)


def connection_of(uid, path):
    """Returns a connection made by user @uid."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        status = 1
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setuid(uid)
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.connect(path)
            socket.send_fds(theirs, [b"x"], [made.fileno()])
            status = 0
        os._exit(status)
    theirs.close()
    try:
        if os.waitpid(pid, 0)[1]:
            raise tap.Skip("may not be user %d here" % uid)
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    finally:
        ours.close()
    connection = Connection.__new__(Connection)
    connection.socket = socket.socket(fileno=fds[0])
    connection.socket.settimeout(30)
    connection.buffer, connection.expired = b"", []
    connection.send(hello())
    assert connection.reply().status == 0
    return connection


def test_timers_of_all_users_add_up():
    tap.need_root()
    with Daemon() as daemon, attach(daemon.path, "watched") as watched:
        total = 0
        users = []
        for number, uid in enumerate(USERS, 1):
            user = connection_of(uid, daemon.path)
            users.append(user)
            assert all(reply.status == 0
                       for reply in user.batch([arm(HOUR)] * number))
            total += number
            # A sum is some milliseconds old.
            assert wait_for(lambda: watched.stat().timers_all == total), uid
        assert watched.stat().connections == len(USERS) + 1
        # Two connections of one user have one sum.
        users[3].batch([arm(HOUR)] * 5)
        assert wait_for(lambda: watched.stat().timers_all == total + 5)
        users[3].close()
        assert wait_for(lambda: watched.stat().timers_all == total - 4), \
            watched.stat()
        for user in users:
            user.close()
        assert wait_for(lambda: watched.stat().timers_all == 0), watched.stat()
        assert watched.stat().queues == 1


def test_sums_are_right_for_hundreds_of_queues():
    """Above 256 a thread it is added up by user, and which timer is next is not
    looked for."""
    tap.need_root()
    with Daemon(threads=1) as daemon, attach(daemon.path, "watched") as watched:
        users = [connection_of(uid, daemon.path) for uid in USERS]
        for user in users:
            user.batch([arm(HOUR)] * 2)
        assert wait_for(lambda: watched.stat().timers_all == 2 * len(users))
        assert watched.stat().next_all
        for number in range(300):
            with attach(daemon.path, "queue-%d" % number) as queue:
                assert queue.request(arm(HOUR)).status == 0
        assert wait_for(lambda: watched.stat().timers_all ==
                        2 * len(users) + 300), watched.stat()
        assert watched.stat().next_all == 0
        for user in users:
            user.close()
        assert wait_for(lambda: watched.stat().timers_all == 300)


if __name__ == "__main__":
    tap.main()
