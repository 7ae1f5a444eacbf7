#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is refused is counted once, and where it belongs."""

import tap
from client import (ACKING, CONSUME, HELLO, MONOTONIC, VERSION, Connection,
                    Record, attach, wait_for)
from daemon import Daemon


def refused(path, *arguments, **more):
    """The status of a HELLO that is answered and followed by the end."""
    with Connection(path) as connection:
        reply = connection.hello(*arguments, **more)
        assert reply.status < 0, reply
        assert connection.ended() == []
        return reply.status


def test_wrong_hellos_are_errors_of_the_protocol():
    wrong = [dict(version=VERSION + 1), dict(clock=5), dict(flags=1 << 7),
             dict(name=b"a\0b")]
    with Daemon() as daemon, attach(daemon.path, "q") as watched:
        before = watched.stat()
        for count, hello in enumerate(wrong, 1):
            refused(daemon.path, **hello)
            stat = watched.stat()
            assert stat.closed_protocol == before.closed_protocol + count, hello
        assert stat.refused_connections == before.refused_connections
        assert stat.refused_queues == before.refused_queues


def test_what_breaks_the_protocol_later_is_counted_once():
    with Daemon() as daemon, attach(daemon.path, "q") as watched:
        for count in (1, 2, 3):
            with attach(daemon.path, "q") as connection:
                connection.send(bytes(Record(HELLO, id=VERSION)))
                connection.ended()
            assert wait_for(lambda: watched.stat().connections == 1)
            assert watched.stat().closed_protocol == count


def test_what_is_asked_rightly_and_refused_is_none():
    with Daemon() as daemon, \
            attach(daemon.path, "taken", CONSUME | ACKING) as watched:
        before = watched.stat()
        # Another has it; it has another mode; it has another clock.
        refused(daemon.path, "taken", CONSUME | ACKING)
        refused(daemon.path, "taken", 0, MONOTONIC)
        refused(daemon.path, "taken", ACKING, 0)
        stat = watched.stat()
        assert stat.closed_protocol == before.closed_protocol, stat
        assert wait_for(lambda: watched.stat().connections == 1)


if __name__ == "__main__":
    tap.main()
