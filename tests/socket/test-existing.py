#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""HELLO with EXISTING: it attaches to a queue that exists and makes none. With an
empty name the connection has no queue and looks at the daemon only."""

import errno
import time

import tap
from client import (ACK, ACKING, ARM, BOOTTIME, CANCEL, CLEAR, CONSUME, CREDIT,
                    DROP, EXISTING, EXPIRED, HELLO, HOUR, KEYED, MONOTONIC, NEVER,
                    QUERY, QUEUES, REALTIME, REFRESH, SCAN, SIZE, STAT, Closed,
                    Connection, Record, arm, attach, hello, scaled, unpack_stat,
                    wait_for)
from daemon import THREADS, Daemon, as_user
from listing import listing, take_page
from threads import served_by

CLOCKS = {REALTIME: time.CLOCK_REALTIME, MONOTONIC: time.CLOCK_MONOTONIC,
          BOOTTIME: time.CLOCK_BOOTTIME}
MODES = (0, ACKING, KEYED, ACKING | KEYED)
QUEUE_STAT_SIZE = 512


def status(path, *args, **more):
    """What a HELLO is answered; where that is an error the connection ends."""
    with Connection(path) as connection:
        connection.send(hello(*args, **more))
        reply = connection.reply()
        assert reply.op == HELLO, reply
        if reply.status:
            assert reply[4:] == (0, 0, 0), reply
            assert connection.ended() == []
        return reply.status


def looker(path, clock=MONOTONIC):
    """A connection without a queue."""
    return attach(path, flags=EXISTING, clock=clock)


# ------------------------------------------------------------------------
# With a name


def test_a_queue_that_exists_is_attached_to(daemon):
    for clock in CLOCKS:
        for mode in MODES:
            name = "there%d-%d" % (clock, mode)
            with attach(daemon.path, name, mode, clock) as one:
                armed = one.request(arm(HOUR, 9, id=7 * bool(mode & KEYED)))
                assert armed.status == 0, armed
            for consume in (0, CONSUME):
                with Connection(daemon.path) as other:
                    before = time.clock_gettime_ns(CLOCKS[clock])
                    flags = EXISTING | mode | consume
                    reply = other.hello(name, flags, clock)
                    after = time.clock_gettime_ns(CLOCKS[clock])
                    assert (reply.status, reply.flags, reply.id) == \
                        (0, flags, 1), reply
                    assert before <= reply.deadline <= after, reply
                    found = other.request(Record(QUERY, id=armed.id))
                    assert found.status == 0 and found.cookie == 9, found
                    assert wait_for(lambda: other.stat().producers == 1)
                    assert other.stat().consumers == bool(consume)


def test_its_consumer_gets_what_expires(daemon):
    with attach(daemon.path, "to-consume", ACKING) as producer, \
            attach(daemon.path, "to-consume",
                   EXISTING | CONSUME | ACKING) as consumer:
        consumer.credit(1)
        assert producer.request(arm(0, 5)).status == 0
        expired = consumer.expiration()
        assert (expired.op, expired.cookie) == (EXPIRED, 5), expired
        assert consumer.request(Record(ACK, id=expired.id)).status == 0


def test_a_queue_that_does_not_exist_is_not_made(daemon):
    with attach(daemon.path, "watch") as watch:
        before = watch.stat()
        for clock in CLOCKS:
            for mode in MODES:
                for consume in (0, CONSUME):
                    assert status(daemon.path, "nowhere",
                                  EXISTING | mode | consume, clock) == \
                        -errno.ENOENT
        # A longer name that begins like one that exists.
        assert status(daemon.path, "watch2", EXISTING) == -errno.ENOENT
        assert status(daemon.path, "watc", EXISTING) == -errno.ENOENT
        after = watch.stat()
        assert after.queues == before.queues, after
        assert after.refused_queues == before.refused_queues, after
        assert after.closed_protocol == before.closed_protocol, after
        assert "nowhere" not in {row.name for row in listing(watch)}
    assert "ended" not in daemon.log(), daemon.log()


def test_no_queue_is_numbered_or_spread_for_it():
    """Neither the count of queues nor the place of a thread is used up."""
    with Daemon() as daemon:
        for i in range(50):
            assert status(daemon.path, "ghost%d" % i, EXISTING) == -errno.ENOENT
            looker(daemon.path).close()
        with attach(daemon.path, "first") as first:
            row, = listing(first)
            assert row.number == 1, row


def test_clock_mode_owner_and_consumer_are_held_to(daemon):
    with attach(daemon.path, "strict", KEYED | CONSUME):
        for clock in (REALTIME, BOOTTIME):
            assert status(daemon.path, "strict", EXISTING | KEYED, clock) == \
                -errno.EINVAL
        for mode in (0, ACKING, ACKING | KEYED):
            assert status(daemon.path, "strict", EXISTING | mode) == \
                -errno.EINVAL
        assert status(daemon.path, "strict", EXISTING | KEYED | CONSUME) == \
            -errno.EBUSY
        assert status(daemon.path, "strict", EXISTING | KEYED) == 0
        if tap.have_root():
            assert as_user("nobody", status, daemon.path, "strict",
                           EXISTING | KEYED) == -errno.EACCES


def test_after_drop_it_does_not_exist(daemon):
    attach(daemon.path, "dropped").close()
    with attach(daemon.path, "dropped", EXISTING) as connection:
        assert wait_for(lambda: connection.stat().producers == 1)
        assert connection.request(Record(DROP)).status == 0
        # Nothing at all is answered after DROP, unlike without a queue.
        for op in (STAT, QUEUES, SCAN, QUERY, DROP, ARM):
            assert connection.request(Record(op, period=1)).status == \
                -errno.ENOENT, op
        assert status(daemon.path, "dropped", EXISTING) == -errno.ENOENT
        attach(daemon.path, "dropped").close()
        assert status(daemon.path, "dropped", EXISTING) == 0


def test_it_works_at_the_limit_of_queues():
    with Daemon("queues = 1\nqueues_per_user = 1\n") as daemon, \
            attach(daemon.path, "only") as only:
        assert status(daemon.path, "more") == -errno.EDQUOT
        refused = only.stat().refused_queues
        assert status(daemon.path, "more", EXISTING) == -errno.ENOENT
        assert status(daemon.path, "only", EXISTING) == 0
        lookers = [looker(daemon.path) for _ in range(30)]
        stat = lookers[0].stat()
        assert stat.queues == 1 and stat.connections >= 31, stat
        assert stat.refused_queues == refused, stat
        for one in lookers:
            one.close()


# ------------------------------------------------------------------------
# Without a name


def test_hello_without_a_queue_tells_the_time(daemon):
    for clock, clock_id in CLOCKS.items():
        with Connection(daemon.path) as connection:
            before = time.clock_gettime_ns(clock_id)
            reply = connection.hello(b"", EXISTING, clock)
            after = time.clock_gettime_ns(clock_id)
            assert (reply.status, reply.id) == (0, 0), reply
            assert before <= reply.deadline <= after, reply
            assert reply.cookie >= 1, reply


def test_flags_of_a_queue_are_refused_without_one(daemon):
    for flags in (CONSUME, ACKING, KEYED, CONSUME | ACKING | KEYED):
        assert status(daemon.path, b"", EXISTING | flags) == -errno.EINVAL
    assert status(daemon.path, b"", EXISTING, 5) == -errno.EINVAL


def test_stat_without_a_queue_has_the_daemons_part(daemon):
    with attach(daemon.path, "counted", CONSUME) as queue, \
            looker(daemon.path) as one:
        queue.credit(5)
        assert queue.request(arm(HOUR)).status == 0
        wanted = queue.stat()
        head = one.request(Record(STAT, id=3, cookie=4))
        assert (head.op, head.status, head.id, head.cookie) == (STAT, 0, 3, 4)
        body = one.take(head.period * SIZE)
        assert body[:QUEUE_STAT_SIZE] == bytes(QUEUE_STAT_SIZE), body
        stat = unpack_stat(body)
        assert (stat.consumers, stat.credit, stat.producers) == (0, 0, 0), stat
        for field in ("engine", "queues", "connections", "expirations",
                      "refused_queues"):
            assert getattr(stat, field) == getattr(wanted, field), field
        assert stat.records > wanted.records
        assert stat.timers_all >= 1 and stat.uptime >= wanted.uptime


def test_it_is_no_queue_in_any_count():
    with Daemon() as daemon, looker(daemon.path) as one:
        stat = one.stat()
        assert (stat.queues, stat.connections, stat.timers_all,
                stat.next_all) == (0, 1, 0, NEVER), stat
        files = daemon.open_files()
        more = [looker(daemon.path) for _ in range(20)]
        assert one.stat().queues == 0 and one.stat().connections == 21
        assert listing(one) == []
        # A queue of the kernel's has a descriptor of its own.
        assert daemon.open_files() == files + 20
        for other in more:
            other.close()
        assert wait_for(lambda: one.stat().connections == 1)


def test_queues_are_listed_to_one_without(daemon):
    names = {"listed%d" % i for i in range(3 * THREADS)}
    for name in names:
        attach(daemon.path, name).close()
    with looker(daemon.path) as one:
        for most in (1, 1000):
            rows = listing(one, most)
            assert names <= {row.name for row in rows}, rows
            assert len({row.number for row in rows}) == len(rows)
        # Listed, and not attached to.
        assert wait_for(lambda: not any(row.connections
                                        for row in listing(one)
                                        if row.name in names))


def test_everything_else_is_answered_enoent(daemon):
    with looker(daemon.path) as one:
        wanted = [arm(HOUR, 1, id=2), Record(REFRESH, id=3, deadline=4),
                  Record(CANCEL, id=5), Record(ACK, id=6), Record(QUERY, id=7),
                  Record(CLEAR), Record(SCAN, period=8), Record(DROP),
                  Record(EXPIRED), Record(99, cookie=9)]
        for record in wanted:
            reply = one.request(record)
            assert reply == record._replace(status=-errno.ENOENT), reply
        replies = one.batch(wanted * 50)
        assert replies == [record._replace(status=-errno.ENOENT)
                           for record in wanted] * 50
        for op in (STAT, QUEUES):
            assert one.request(Record(op, 1, period=1)).status == -errno.EINVAL
        assert one.request(Record(QUEUES)).status == -errno.EINVAL
        assert one.stat().connections >= 1


def test_requests_may_come_with_the_hello(daemon):
    attach(daemon.path, "with-hello").close()
    with Connection(daemon.path) as one:
        one.send(hello(b"", EXISTING), Record(STAT), arm(HOUR),
                 Record(QUEUES, period=100), Record(QUERY, id=1))
        assert one.reply().status == 0
        head = one.reply()
        assert (head.op, head.status) == (STAT, 0), head
        one.take(head.period * SIZE)
        assert one.reply().status == -errno.ENOENT
        take_page(one)
        assert one.reply().status == -errno.ENOENT


def ends(connection, record, number):
    connection.send(record)
    replies = connection.ended()
    assert [reply.status for reply in replies] == [-number], replies


def test_credit_and_a_second_hello_end_it(daemon):
    with looker(daemon.path) as one:
        ends(one, Record(CREDIT, period=1), errno.EINVAL)
    with looker(daemon.path) as one:
        ends(one, hello(b"", EXISTING), errno.EPROTO)


def test_any_user_may_look_and_sees_the_own_queues(daemon):
    tap.need_root()

    def names(path):
        with looker(path) as one:
            return [row.name for row in listing(one)]
    attach(daemon.path, "of-root").close()
    assert "of-root" in names(daemon.path)
    assert as_user("nobody", names, daemon.path) == []


# ------------------------------------------------------------------------
# Several threads


def test_a_queue_of_any_thread_is_found():
    for threads in 1, 4:
        with Daemon(threads=threads) as daemon:
            for i in range(8):
                attach(daemon.path, "q%d" % i).close()
            for i in range(8):
                with attach(daemon.path, "q%d" % i, EXISTING) as one:
                    assert one.stat().queues == 8
                assert status(daemon.path, "r%d" % i, EXISTING) == \
                    -errno.ENOENT
            with looker(daemon.path) as one:
                assert len(listing(one)) == 8


def test_no_place_stays_behind():
    """A place that stayed would count against its thread: the first queue goes to
    the first thread only while no thread has one."""
    with Daemon(threads=2) as daemon, looker(daemon.path):
        for _ in range(3):
            assert status(daemon.path, "ghost", EXISTING) == -errno.ENOENT
        with attach(daemon.path, "real") as one:
            assert served_by(daemon, one) == daemon.process.pid


def test_queues_may_come_and_go_meanwhile():
    with Daemon(threads=4) as daemon:
        for _ in range(scaled(20, 3)):
            first = attach(daemon.path, "contended")
            others = [Connection(daemon.path) for _ in range(20)]
            with daemon.halted():
                first.send(Record(DROP))
                for i, other in enumerate(others):
                    other.send(hello("contended", EXISTING if i % 5 else 0))
            seen = [other.reply().status for other in others]
            assert set(seen) <= {0, -errno.ENOENT}, seen
            assert not any(seen[::5]), seen
            for one in (first, *others):
                one.close()
            # Whoever came too early for it has left nothing of its own.
            with attach(daemon.path, "contended", EXISTING) as last:
                assert wait_for(lambda: last.stat().producers == 1)
                assert last.stat().queues == 1
                assert last.request(Record(DROP)).status == 0
        with attach(daemon.path, "end") as one:
            assert served_by(daemon, one) == daemon.process.pid
            assert one.stat().queues == 1


def test_lookers_that_go_at_any_time_leave_nothing(daemon):
    attach(daemon.path, "stays").close()
    with attach(daemon.path, "stays") as watch:
        queues = watch.stat().queues
        connections = watch.stat().connections
        for i in range(scaled(200, 20)):
            with Connection(daemon.path) as one:
                one.send(hello(b"" if i % 2 else "absent", EXISTING),
                         Record(STAT), Record(QUEUES, period=9))
                if i % 3:
                    try:
                        one.reply()
                    except Closed:
                        pass
        assert wait_for(lambda: watch.stat().connections == connections)
        assert watch.stat().queues == queues


if __name__ == "__main__":
    tap.main()
