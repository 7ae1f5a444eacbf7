#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first record of a connection: what it opens and what it is refused."""

import errno
import time

import tap
from client import (ACKING, ARM, BOOTTIME, CONSUME, DROP, DURABLE, HELLO, HOUR,
                    KEYED, MONOTONIC, NEVER, QUERY, REALTIME, Closed,
                    Connection, Record, arm, attach, error, hello, scaled,
                    wait_for)
from daemon import as_user

CLOCKS = {REALTIME: time.CLOCK_REALTIME, MONOTONIC: time.CLOCK_MONOTONIC,
          BOOTTIME: time.CLOCK_BOOTTIME}


def refused(daemon, number, *args, **more):
    """Sends a HELLO that must get @number and end its connection."""
    with Connection(daemon.path) as connection:
        connection.send(hello(*args, **more))
        replies = connection.ended()
        assert len(replies) == 1, replies
        assert replies[0].op == HELLO, replies
        assert replies[0].status == -number, \
            "%s, not %s" % (error(replies[0].status), error(number))


def broken(daemon, *data):
    """Breaks the protocol: the daemon ends the connection, at most with a reason."""
    with Connection(daemon.path) as connection:
        try:
            connection.send(*data)
            replies = connection.ended()
        except Closed:
            replies = []
        assert len(replies) <= 1, replies
        assert all(reply.status < 0 for reply in replies), replies


def test_reply_tells_time_timers_and_records_in_flight(daemon):
    for clock, clock_id in CLOCKS.items():
        with Connection(daemon.path) as connection:
            before = time.clock_gettime_ns(clock_id)
            reply = connection.hello(clock=clock)
            after = time.clock_gettime_ns(clock_id)
            assert reply.op == HELLO and reply.status == 0, reply
            assert before <= reply.deadline <= after, reply
            assert reply.id == 0, reply
            assert 1 <= reply.cookie <= 1 << 20, reply


def test_every_mode_is_taken(daemon):
    for flags in (0, CONSUME, ACKING, KEYED, CONSUME | ACKING,
                  CONSUME | KEYED, ACKING | KEYED, CONSUME | ACKING | KEYED):
        attach(daemon.path, "", flags).close()
        attach(daemon.path, "mode%d" % flags, flags).close()


def test_named_queue_outlives_its_connections(daemon):
    with attach(daemon.path, "lasting") as connection:
        for i in range(3):
            assert connection.request(arm(HOUR, i)).status == 0
    with Connection(daemon.path) as connection:
        reply = connection.hello("lasting")
        assert reply.status == 0 and reply.id == 3, reply


def test_timer_armed_anew_is_counted_once(daemon):
    with attach(daemon.path, "anew", KEYED) as connection:
        for i in range(3):
            assert connection.request(arm(HOUR, i, id=7)).status == 0
        with Connection(daemon.path) as other:
            reply = other.hello("anew", KEYED)
            assert reply.status == 0 and reply.id == 1, reply


def test_anonymous_queue_ends_with_its_connection(daemon):
    with attach(daemon.path, "watch") as watch:
        queues = watch.stat().queues
        with attach(daemon.path) as one, attach(daemon.path) as two:
            armed = one.request(arm(HOUR))
            assert armed.status == 0
            # Another anonymous queue is separate.
            assert two.request(Record(QUERY, id=armed.id)).status \
                == -errno.ENOENT
            assert watch.stat().queues == queues + 2
        assert wait_for(lambda: watch.stat().queues == queues)


def test_producers_share_a_named_queue(daemon):
    with attach(daemon.path, "shared") as one, \
            attach(daemon.path, "shared") as two:
        armed = one.request(arm(HOUR, 7))
        found = two.request(Record(QUERY, id=armed.id))
        assert found.status == 0 and found.cookie == 7, found
        assert one.stat().producers == 2


def test_name_may_use_all_24_bytes(daemon):
    with attach(daemon.path, "a" * 24) as connection:
        assert connection.request(arm(HOUR)).status == 0
    with attach(daemon.path, "a" * 23) as connection:
        assert connection.stat().armed == 0
    attach(daemon.path, "AZaz09._-").close()


def test_bad_names_are_refused(daemon):
    for name in (b"a/b", b"a b", b"\xff\xfe", b"a\0b", b"\0a", b"name\n",
                 b"a" * 23 + b"\x80", "ü".encode(), b"a:b", b"a%s"):
        refused(daemon, errno.EINVAL, name)


def test_unknown_flags_are_refused(daemon):
    for flag in (0x20, 0x80):
        refused(daemon, errno.EINVAL, "flags", flag)


def test_durable_needs_a_journal(daemon):
    refused(daemon, errno.EINVAL, "durable", DURABLE)


def test_unknown_clocks_are_refused(daemon):
    for clock in (2, 3, 4, 5, 6, 8, 9, 11, 2**32 - 1):
        refused(daemon, errno.EINVAL, "clock", clock=clock)


def test_wrong_versions_are_refused(daemon):
    for version in (0, 2, -1, 32767, -32768):
        refused(daemon, errno.EPROTONOSUPPORT, "version", version=version)


def test_other_clock_or_mode_is_refused(daemon):
    with attach(daemon.path, "plain-mono"):
        refused(daemon, errno.EINVAL, "plain-mono", clock=BOOTTIME)
        refused(daemon, errno.EINVAL, "plain-mono", clock=REALTIME)
        refused(daemon, errno.EINVAL, "plain-mono", ACKING)
        refused(daemon, errno.EINVAL, "plain-mono", KEYED)
        attach(daemon.path, "plain-mono").close()


def test_second_consumer_is_busy_until_the_first_leaves(daemon):
    with attach(daemon.path, "consumed", CONSUME) as first:
        refused(daemon, errno.EBUSY, "consumed", CONSUME)
        attach(daemon.path, "consumed").close()
        assert first.stat().consumers == 1

    def again():
        try:
            return attach(daemon.path, "consumed", CONSUME)
        except AssertionError:
            return None
    second = wait_for(again)
    assert second
    second.close()


def test_refused_hello_makes_no_queue(daemon):
    with attach(daemon.path, "watch") as watch:
        queues = watch.stat().queues
        refused(daemon, errno.EINVAL, "unmade", 0x80)
        refused(daemon, errno.EINVAL, "unmade", clock=99)
        assert watch.stat().queues == queues


def test_missing_hello_ends_the_connection(daemon):
    broken(daemon, arm(HOUR))
    broken(daemon, Record(DROP))
    broken(daemon, Record(0))
    broken(daemon, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b" " * 27)


def test_records_behind_a_refused_hello_are_not_done(daemon):
    with attach(daemon.path, "behind") as watch:
        broken(daemon, hello("behind", 0x80), arm(HOUR), arm(HOUR))
        assert watch.stat().armed == 0


def test_second_hello_ends_the_connection(daemon):
    broken_by = attach(daemon.path, "twice")
    with broken_by, attach(daemon.path, "other") as other:
        broken_by.send(hello("twice"))
        replies = broken_by.ended()
        assert len(replies) <= 1 and all(r.status < 0 for r in replies)
        assert other.request(arm(HOUR)).status == 0


def test_hello_cut_short_ends_only_that_connection(daemon):
    with attach(daemon.path, "uncut") as other:
        # Often: the end may come together with the last bytes, or after.
        for size in (1, 8, 31) * scaled(50):
            with Connection(daemon.path) as connection:
                connection.send(hello("cut")[:size])
                connection.socket.shutdown(1)
                assert connection.ended() == []
        assert other.request(arm(HOUR)).status == 0


def test_connection_without_a_word_is_borne(daemon):
    with Connection(daemon.path) as silent:
        with attach(daemon.path) as connection:
            assert connection.request(arm(HOUR)).status == 0
        assert silent.hello().status == 0


def test_hello_and_requests_may_come_together(daemon):
    with Connection(daemon.path) as connection:
        connection.send(hello("together"), arm(HOUR, 1), arm(NEVER, 2, flags=0))
        replies = connection.replies(3)
        assert [r.op for r in replies] == [HELLO, ARM, ARM]
        assert [r.status for r in replies] == [0, 0, 0], replies


def hello_status(path, name, flags=0):
    with Connection(path) as connection:
        return connection.hello(name, flags).status


def arm_and_stay(path, name):
    with attach(path, name) as connection:
        return connection.request(arm(HOUR)).status


def test_queue_belongs_to_the_user_who_made_it(daemon):
    tap.need_root()
    assert as_user("nobody", arm_and_stay, daemon.path, "nobodys") == 0
    assert as_user("daemon", hello_status, daemon.path, "nobodys") \
        == -errno.EACCES
    assert as_user("daemon", hello_status, daemon.path, "nobodys", CONSUME) \
        == -errno.EACCES
    assert as_user("nobody", hello_status, daemon.path, "nobodys") == 0
    # root may attach to any.
    with Connection(daemon.path) as connection:
        reply = connection.hello("nobodys")
        assert reply.status == 0 and reply.id == 1, reply
    # The reverse is not so.
    attach(daemon.path, "roots").close()
    assert as_user("nobody", hello_status, daemon.path, "roots") \
        == -errno.EACCES


if __name__ == "__main__":
    tap.main()
