#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Expirations: sent against credit only, kept for whoever comes next."""

import fcntl
import struct
import termios
import time

import tap
from client import (ACK, ACKING, CANCEL, CONSUME, CREDIT, HOUR, NEVER, OBSERVE, QUERY,
                    REALTIME, REDELIVERED, REFRESH, RELATIVE, SECOND, SIZE,
                    Connection, Record, arm, attach, hello, scaled,
                    scaled_beyond_socket, wait_for)

MS = SECOND // 1000


def consume_anew(path, name, flags):
    def again():
        connection = Connection(path)
        if connection.hello(name, flags).status == 0:
            return connection
        connection.close()
        return None
    return wait_for(again)


def test_one_buffer_is_collected_before_the_socket_has_taken_the_last(daemon):
    """What a plain queue's consumer loses when it dies is that, and what it has
    not read."""
    count = scaled_beyond_socket(50000)
    with attach(daemon.path, "dies", CONSUME) as queue, \
            attach(daemon.path, "dies") as watch:
        queue.batch([arm(0, i) for i in range(count)])
        queue.credit(count)
        left = []

        def steady():
            left.append(watch.stat().armed)
            return left[-1] < count and left[-2:-1] == left[-1:]
        assert wait_for(steady)
        unread = struct.unpack("i", fcntl.ioctl(queue.socket, termios.FIONREAD,
                                                bytes(4)))[0]
        taken = count - left[-1] - unread // SIZE
        assert 0 <= taken <= 512, (count, left[-1], unread)
        assert left[-1] > 0, "all of them fit into its socket"


def test_unacknowledged_come_again_marked(daemon):
    flags = CONSUME | ACKING
    with attach(daemon.path, "acked", flags) as consumer:
        consumer.batch([arm(i + 1, i, flags=0) for i in range(20)])
        consumer.credit(10)
        first = [consumer.expiration() for _ in range(10)]
        assert all(r.flags == 0 for r in first)
        for record in first[:4]:
            assert consumer.request(Record(ACK, id=record.id)).status == 0
        assert consumer.request(Record(ACK, id=first[0].id)).status == -2
        assert consumer.stat().unacked == 6
    with consume_anew(daemon.path, "acked", flags) as consumer:
        consumer.credit(100)
        again = [consumer.expiration() for _ in range(16)]
        assert [r.cookie for r in again] == list(range(4, 20)), again
        assert [r.flags for r in again] == [REDELIVERED] * 6 + [0] * 10
        assert [r.id for r in again[:6]] == [r.id for r in first[4:]]
        assert [r.deadline for r in again[:6]] == \
            [r.deadline for r in first[4:]]
        for record in again:
            assert consumer.request(Record(ACK, id=record.id)).status == 0
        stat = consumer.stat()
        assert stat.unacked == 0 and stat.armed == 0, stat
        assert stat.redelivered == 6, stat
    with consume_anew(daemon.path, "acked", flags) as consumer:
        consumer.credit(100)
        assert consumer.quiet()


def test_refresh_does_not_touch_what_a_periodic_timer_has_yet_to_repeat(daemon):
    """Not acknowledged when its consumer went: it comes again at once, and the
    timer's next time is what it was refreshed to."""
    for deadline in NEVER, HOUR, SECOND // 4:
        name = "again%d" % deadline
        with attach(daemon.path, name, ACKING | CONSUME) as first:
            timer = first.request(arm(0, 7, period=3600000)).id
            first.credit(1)
            assert first.expiration().flags == 0
            moved = first.request(Record(
                REFRESH, id=timer, deadline=deadline,
                flags=0 if deadline == NEVER else RELATIVE)).deadline
        with attach(daemon.path, name, ACKING | CONSUME) as second:
            assert second.request(Record(QUERY, id=timer)).deadline == moved
            second.credit(2)
            again = second.expiration()
            assert again.id == timer and again.flags == REDELIVERED, again
            assert second.request(Record(ACK, id=timer)).status == 0
            if deadline < HOUR:
                record = second.expiration()
                assert record.deadline == moved and not record.flags, record
            else:
                assert second.quiet()
                assert second.stat().armed == 1


def test_killed_consumer_and_acks_from_a_producer(daemon):
    flags = CONSUME | ACKING
    with attach(daemon.path, "workers", ACKING) as worker:
        with attach(daemon.path, "workers", flags) as consumer:
            consumer.request(arm(0, 1))
            consumer.credit(1)
            record = consumer.expiration()
            assert worker.request(Record(ACK, id=record.id)).status == 0
        assert worker.stat().unacked == 0


def test_periodic_timer_comes_every_period(daemon):
    with attach(daemon.path, flags=CONSUME) as queue:
        queue.credit(100)
        armed = queue.request(arm(0, 5, period=10))
        want = armed.deadline
        for _ in range(10):
            record = queue.expiration()
            # Each once: one record counts the times that the server was late for.
            assert record.deadline == want and record.count >= 1, record
            want += record.count * 10 * MS
            assert want - 10 * MS <= time.monotonic_ns()
        queue.send(Record(CANCEL, id=armed.id))
        assert queue.reply().status == 0


def test_missed_times_are_one_expiration_that_counts_them(daemon):
    """A timer of 1 ms that was due ten hours ago: without a consumer, without
    credit, and to an observer the same. The machine may run for less than that."""
    hours = 10 * 3600 * SECOND
    with attach(daemon.path, "missed", ACKING, clock=REALTIME) as producer:
        first = time.time_ns() - hours
        armed = producer.request(arm(first, 5, period=1, flags=0))
        assert armed.status == 0 and armed.period == 1, armed
        with attach(daemon.path, "missed", ACKING | CONSUME,
                    clock=REALTIME) as consumer, \
                attach(daemon.path, "missed", ACKING | OBSERVE,
                       clock=REALTIME) as observer:
            consumer.credit(1)
            record = consumer.expiration()
            now = time.time_ns()
            assert record.deadline == first, record
            assert hours // MS < record.count <= (now - first) // MS + 1, \
                record
            assert observer.record() == record
            # The next one begins where this one ends.
            consumer.credit(1)
            after = consumer.expiration()
            assert after.deadline == first + record.count * MS, after
            assert not after.flags and after.count >= 1, after
            last = after.deadline + (after.count - 1) * MS
            assert producer.request(
                Record(CANCEL, id=armed.id)).status == 0
        # Of several that are not acknowledged the last is repeated.
        with attach(daemon.path, "missed", ACKING | CONSUME,
                    clock=REALTIME) as consumer:
            consumer.credit(9)
            again = consumer.expiration()
            assert again.deadline == last and again.count == 0, again
            assert again.flags == REDELIVERED
            assert consumer.quiet()


def test_reply_to_arm_comes_before_its_expiration(daemon):
    with attach(daemon.path, flags=CONSUME) as queue:
        queue.credit(1000)
        for i in range(scaled(200)):
            queue.send(arm(0, i))
            reply = queue.record()
            assert reply.op == 1 and reply.cookie == i, reply
            assert queue.expiration().cookie == i


def test_credit_in_the_same_send_as_hello_and_arms(daemon):
    with Connection(daemon.path) as queue:
        queue.send(hello("", CONSUME), Record(CREDIT, period=2),
                   arm(0, 1), arm(0, 2), arm(0, 3))
        assert queue.reply().status == 0
        assert [r.status for r in queue.replies(3)] == [0, 0, 0]
        cookies = sorted(queue.expiration().cookie for _ in range(2))
        assert len(set(cookies)) == 2
        assert queue.quiet()


if __name__ == "__main__":
    tap.main()
