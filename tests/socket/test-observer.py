#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""HELLO with OBSERVE: copies of what a queue's consumer is sent, MISSED where
copies were dropped, and nobody else who notices."""

import errno
import random
import socket

import tap
from client import (ACK, ACKING, CANCEL, CLEAR, CLOCK_SET, CONSUME, CREDIT,
                    DROP, EXISTING, EXPIRED, HOUR, KEYED, MISSED, MONOTONIC,
                    OBSERVE, QUERY, QUEUES, REALTIME, REDELIVERED, REFRESH,
                    SCAN, SIZE, STAT, WAIT, Closed, Connection, Record, arm, attach,
                    hello, pack, scaled, unpack, wait_for)
from daemon import Daemon, as_user
from listing import listing, take_page

MS = 10**6
MEMORY = 1 << 20        # observer_memory unless configured otherwise


def observe(path, name, flags=0, clock=MONOTONIC):
    return attach(path, name, OBSERVE | flags, clock)


def status(path, *args, **more):
    with Connection(path) as connection:
        return connection.hello(*args, **more).status


def take(connection, count):
    """The next @count expirations, nothing else between them."""
    return [connection.expiration() for _ in range(count)]


def take_all(connection, total):
    """What an observer is sent until @total are told, copied or missed."""
    records, told = [], 0
    while told < total:
        record = connection.record()
        assert record.op in (EXPIRED, MISSED), record
        records.append(record)
        told += record.cookie if record.op == MISSED else 1
    assert told == total, (told, total)
    return records


def missed_of(records):
    return sum(record.cookie for record in records if record.op == MISSED)


def check_copies(copies, originals):
    """Each copy is what the consumer got there, and MISSED says where there is
    none."""
    at = 0
    for record in copies:
        if record.op == MISSED:
            assert record.cookie and record == Record(
                MISSED, cookie=record.cookie), record
            at += record.cookie
        else:
            assert record == originals[at], (at, record, originals[at])
            at += 1
    assert at == len(originals), (at, len(originals))


def drain(connection, count):
    """@count expirations as fast as they come: as many reads as it takes."""
    data = b"".join(bytes(record) for record in connection.expired) + \
        connection.buffer
    connection.expired, connection.buffer = [], b""
    while len(data) < count * SIZE:
        more = connection.socket.recv(1 << 20)
        assert more
        data += more
    connection.buffer = data[count * SIZE:]
    records = unpack(data[:count * SIZE])
    assert all(record.op == EXPIRED and not record.status
               for record in records)
    return records


def storm(producer, count, first=0):
    """@count timers that are due at once."""
    replies = producer.batch([arm(0, first + i, flags=0)
                              for i in range(count)])
    assert all(reply.status == 0 for reply in replies)


# ------------------------------------------------------------------------
# HELLO


def test_a_queue_must_exist_and_match(daemon):
    assert status(daemon.path, "observed", OBSERVE) == -errno.ENOENT
    assert status(daemon.path, "observed", OBSERVE | EXISTING) == -errno.ENOENT
    with attach(daemon.path, "observed", KEYED) as queue:
        # None was made by these.
        assert queue.stat().queues == 1
        assert status(daemon.path, "observed", OBSERVE) == -errno.EINVAL
        assert status(daemon.path, "observed", OBSERVE | KEYED, REALTIME) == \
            -errno.EINVAL
        for flags in (KEYED, KEYED | EXISTING):
            assert status(daemon.path, "observed", OBSERVE | flags) == 0
        assert queue.request(arm(HOUR, id=1)).status == 0
        with Connection(daemon.path) as connection:
            reply = connection.hello("observed", OBSERVE | KEYED)
            assert (reply.status, reply.id) == (0, 1), reply


def test_an_observer_is_no_consumer_and_has_a_queue(daemon):
    attach(daemon.path, "named").close()
    for flags in (0, EXISTING, ACKING, KEYED):
        assert status(daemon.path, "named", OBSERVE | CONSUME | flags) == \
            -errno.EINVAL
        assert status(daemon.path, b"", OBSERVE | flags) == -errno.EINVAL


def test_others_queues_are_not_observed(daemon):
    tap.need_root()
    with attach(daemon.path, "of-root"):
        assert as_user("nobody", status, daemon.path, "of-root", OBSERVE) == \
            -errno.EACCES


def test_no_more_than_the_limit():
    with Daemon("observers_per_queue = 2\n") as daemon, \
            attach(daemon.path, "q") as queue, \
            attach(daemon.path, "other") as other:
        first = observe(daemon.path, "q")
        second = observe(daemon.path, "q")
        assert status(daemon.path, "q", OBSERVE) == -errno.EBUSY
        assert queue.stat().refused_observers == 1
        # A limit of each queue, and of observers alone.
        observe(daemon.path, "other").close()
        attach(daemon.path, "q", CONSUME).close()
        first.close()
        third = wait_for(lambda: status(daemon.path, "q", OBSERVE) == 0)
        assert third
        second.close()
        daemon.reload("observers_per_queue = 0\n")
        assert status(daemon.path, "q", OBSERVE) == -errno.EBUSY
        assert other.stat().refused_observers >= 2


# ------------------------------------------------------------------------
# Copies


def test_copies_are_what_the_consumer_gets_in_its_order(daemon):
    rng = random.Random(5)
    for mode in (0, ACKING, KEYED, ACKING | KEYED):
        name = "order%d" % mode
        with attach(daemon.path, name, CONSUME | mode) as consumer, \
                observe(daemon.path, name, mode) as observer:
            consumer.credit(500)
            consumer.send(*[arm(rng.randrange(50 * MS), i, period=i % 2 * 7,
                                id=i + 1 if mode & KEYED else 0)
                            for i in range(100)])
            assert all(r.status == 0 for r in consumer.replies(100))
            got = take(consumer, 500)
            assert take(observer, 500) == got
            assert observer.quiet()


def test_there_are_no_copies_without_a_consumer(daemon):
    with attach(daemon.path, "empty") as queue, \
            observe(daemon.path, "empty") as observer:
        storm(queue, 50)
        with attach(daemon.path, "empty", CONSUME) as consumer:
            # Credit is the consumer's; copies are of what it is sent.
            consumer.credit(20)
            got = take(consumer, 20)
            assert take(observer, 20) == got
            assert observer.quiet()
            consumer.credit(30)
            assert take(consumer, 30) == take(observer, 30)
        assert queue.stat().credit == 0


def test_redelivered_is_kept_when_another_consumer_comes(daemon):
    with attach(daemon.path, "again", ACKING) as queue, \
            observe(daemon.path, "again", ACKING) as observer:
        storm(queue, 10)
        for flags in (0, REDELIVERED, REDELIVERED):
            with attach(daemon.path, "again", CONSUME | ACKING) as consumer:
                consumer.credit(10)
                got = take(consumer, 10)
                assert all(record.flags == flags for record in got), got
                assert take(observer, 10) == got
            assert wait_for(lambda: not queue.stat().consumers)
        assert observer.quiet()


def test_an_observer_that_comes_later_gets_what_comes_later(daemon):
    with attach(daemon.path, "later", CONSUME) as consumer:
        consumer.credit(1000)
        storm(consumer, 20)
        drain(consumer, 20)
        with observe(daemon.path, "later") as observer:
            storm(consumer, 20, 100)
            got = drain(consumer, 20)
            assert take(observer, 20) == got
        storm(consumer, 20, 200)
        drain(consumer, 20)


def test_several_observers_get_the_same(daemon):
    with attach(daemon.path, "several", CONSUME) as consumer:
        many = [observe(daemon.path, "several") for _ in range(5)]
        consumer.credit(5000)
        storm(consumer, 3000)
        got = drain(consumer, 3000)
        for observer in many:
            records = take_all(observer, 3000)
            check_copies(records, got)
        for observer in many:
            observer.close()


# ------------------------------------------------------------------------
# Requests


def test_an_observer_looks_and_does_nothing_else(daemon):
    with attach(daemon.path, "look", KEYED | CONSUME) as queue, \
            observe(daemon.path, "look", KEYED) as observer:
        assert queue.request(arm(HOUR, 9, id=5)).status == 0
        found = observer.request(Record(QUERY, id=5))
        assert (found.status, found.cookie) == (0, 9), found
        assert observer.request(Record(QUERY, id=6)).status == -errno.ENOENT
        assert [row.id for row in observer.scan(10)] == [5]
        assert "look" in {row.name for row in listing(observer)}
        refused = [arm(HOUR, 1, id=7), arm(0, 1, id=5),
                   Record(REFRESH, id=5, deadline=1), Record(CANCEL, id=5),
                   Record(ACK, id=5), Record(CLEAR), Record(DROP)]
        for record in refused:
            reply = observer.request(record)
            assert reply == record._replace(status=-errno.EACCES), reply
        # In a batch, in order, with what is done between them.
        mixed = [Record(QUERY, id=5), refused[0], Record(QUERY, id=6),
                 refused[3], refused[4], Record(QUERY, id=5)]
        wanted = [0, -errno.EACCES, -errno.ENOENT, -errno.EACCES,
                  -errno.EACCES, 0]
        replies = observer.batch(mixed * 100)
        assert [reply.status for reply in replies] == wanted * 100
        for op in (0, 7, EXPIRED, CLOCK_SET, MISSED, 71, 255):
            reply = observer.request(Record(op, id=1))
            assert reply.status == -errno.EOPNOTSUPP, (op, reply)
        assert queue.request(Record(QUERY, id=5)).cookie == 9
        assert queue.stat().armed == 1


def test_missed_is_no_request_of_anybody(daemon):
    with attach(daemon.path, "q", CONSUME) as queue:
        reply = queue.request(Record(MISSED, cookie=3))
        assert reply == Record(MISSED, status=-errno.EOPNOTSUPP, cookie=3)


def test_credit_and_a_second_hello_end_it(daemon):
    with attach(daemon.path, "ends"):
        for record, number in ((Record(CREDIT, period=1), errno.EINVAL),
                               (hello("ends", OBSERVE), errno.EPROTO)):
            with observe(daemon.path, "ends") as observer:
                observer.send(record)
                assert [r.status for r in observer.ended()] == [-number]


def test_it_is_counted_by_itself(daemon):
    with attach(daemon.path, "counted", CONSUME) as queue, \
            observe(daemon.path, "counted") as one, \
            observe(daemon.path, "counted") as two:
        queue.credit(7)
        for connection in (queue, one, two):
            stat = connection.stat()
            assert (stat.consumers, stat.producers, stat.credit) == (1, 1, 7), \
                stat
            row, = [row for row in listing(connection)
                    if row.name == "counted"]
            assert (row.connections, row.consumers, row.observers) == \
                (1, 1, 2), row
        one.close()
        assert wait_for(lambda: [row.observers for row in listing(two)
                                 if row.name == "counted"] == [1])


def test_replies_are_whole_between_copies(daemon):
    count = scaled(20000, 500)
    with attach(daemon.path, "whole", CONSUME) as consumer, \
            attach(daemon.path, "whole") as producer, \
            observe(daemon.path, "whole") as observer:
        assert all(reply.status == 0 for reply in producer.batch(
            [arm(HOUR, i) for i in range(300)]))
        consumer.credit(2 * count)
        producer.socket.settimeout(WAIT)
        for i in range(5):
            producer.socket.sendall(pack([arm(0, i, flags=0)] * (count // 5)))
            rows = observer.scan(100)
            assert len({row.id for row in rows
                        if row.deadline > HOUR // 2}) >= 300
            assert observer.stat().producers == 2
            observer.send(Record(QUEUES, period=100), Record(QUERY, id=1))
            # What comes before the list is not part of it.
            while True:
                head = observer.record()
                if head.op == QUEUES:
                    break
                assert head.op in (EXPIRED, MISSED), head
                observer.expired.append(head)
            observer.buffer = bytes(head) + observer.buffer
            take_page(observer)
            assert observer.reply().op == QUERY
            producer.replies(count // 5)
        got = drain(consumer, count)
        records = observer.expired
        told = len(records) + missed_of(records) - \
            sum(record.op == MISSED for record in records)
        records += take_all(observer, count - told)
        check_copies(records, got)


# ------------------------------------------------------------------------
# An observer that does not read


def test_one_that_does_not_read_holds_up_nobody():
    """The consumer gets all of it while the observer reads nothing; then the
    observer is told what it has missed, and where."""
    count = scaled(200000, 5000)
    with Daemon() as daemon, attach(daemon.path, "storm", CONSUME) as consumer, \
            attach(daemon.path, "storm") as producer, \
            attach(daemon.path, "calm", CONSUME) as other, \
            observe(daemon.path, "storm") as observer:
        consumer.credit(count)
        storm(producer, count)
        got = drain(consumer, count)
        assert {record.cookie for record in got} == set(range(count))
        stat = producer.stat()
        assert stat.backlog <= 2 * MEMORY and stat.closed_backlog == 0, stat
        other.credit(1)
        assert other.request(arm(0, 3)).status == 0
        assert other.expiration().cookie == 3
        # Now it reads, and nothing more expires.
        copies = take_all(observer, count)
        check_copies(copies, got)
        missed = missed_of(copies)
        assert producer.stat().copies_missed == missed
        if count > 50000:
            assert 0 < missed < count, missed
            # What waited for it, and what was in its socket.
            assert count - missed >= MEMORY // SIZE, missed
        # From now on it has all again.
        consumer.credit(100)
        storm(producer, 100)
        assert take(observer, 100) == drain(consumer, 100)
        assert wait_for(lambda: producer.stat().backlog == 0)


def test_one_that_reads_slowly_has_all_or_is_told():
    count = scaled(200000, 5000)
    with Daemon("observer_memory = 8192\n") as daemon, \
            attach(daemon.path, "slow", CONSUME) as consumer, \
            attach(daemon.path, "slow") as producer, \
            observe(daemon.path, "slow") as observer:
        observer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        consumer.credit(count)
        got, copies = [], b""
        for i in range(20):
            storm(producer, count // 20, i * (count // 20))
            got += drain(consumer, count // 20)
            copies += observer.socket.recv(10 * SIZE + i)
        observer.buffer = copies
        records = take_all(observer, count)
        check_copies(records, got)
        assert producer.stat().copies_missed == missed_of(records)
        if count > 50000:
            assert sum(record.op == MISSED for record in records) > 1


def test_fast_and_slow_observers_are_apart():
    count = scaled(100000, 3000)
    with Daemon() as daemon, attach(daemon.path, "mixed", CONSUME) as consumer, \
            attach(daemon.path, "mixed") as producer:
        slow = [observe(daemon.path, "mixed") for _ in range(3)]
        fast = observe(daemon.path, "mixed")
        consumer.credit(count)
        got, copies = [], []
        for i in range(0, count, 1000):
            storm(producer, 1000, i)
            got += drain(consumer, 1000)
            copies += take_all(fast, 1000)
        check_copies(copies, got)
        assert not missed_of(copies)
        for observer in slow:
            check_copies(take_all(observer, count), got)
            observer.close()
        fast.close()


def test_observers_are_not_the_end_of_others():
    """Together they could have twice the memory for all that do not read: they
    miss more then, and no connection ends."""
    count = scaled(50000, 5000)
    with Daemon("backlog_memory = 1048576\n") as daemon, \
            attach(daemon.path, "pressed", CONSUME) as consumer, \
            attach(daemon.path, "pressed") as producer:
        many = [observe(daemon.path, "pressed") for _ in range(16)]
        consumer.credit(count)
        storm(producer, count)
        got = drain(consumer, count)
        stat = producer.stat()
        assert stat.closed_backlog == 0, stat
        assert stat.backlog < 900000, stat
        for observer in many:
            check_copies(take_all(observer, count), got)
            observer.close()


def test_one_that_is_killed_leaves_nothing():
    count = scaled(50000, 5000)
    with Daemon() as daemon, attach(daemon.path, "killed", CONSUME) as consumer, \
            attach(daemon.path, "killed") as producer:
        consumer.credit(10 * count)
        files = daemon.open_files()
        for i in range(10):
            many = [observe(daemon.path, "killed") for _ in range(4)]
            many[0].send(bytes(Record(QUERY, id=1))[:i + 1])
            many[1].send(*[Record(QUERY, id=1)] * 100)
            producer.socket.sendall(pack([arm(0, i, flags=0)
                                          for i in range(count // 100)]))
            many[2].close()
            producer.socket.sendall(pack([arm(0, i, flags=0)
                                          for i in range(count // 100)]))
            for observer in many:
                observer.close()
            replies = producer.replies(2 * (count // 100))
            assert all(reply.status == 0 for reply in replies)
            drain(consumer, 2 * (count // 100))
        assert wait_for(lambda: daemon.open_files() == files)
        assert wait_for(lambda: producer.stat().backlog == 0)
        row, = [row for row in listing(producer) if row.name == "killed"]
        assert (row.connections, row.observers) == (2, 0), row


def test_one_that_ends_its_direction_gets_no_more():
    """In a storm, and full as it is: else it would never end."""
    count = scaled(20000, 15000)
    with Daemon("observer_memory = 4096\n") as daemon, \
            attach(daemon.path, "half", CONSUME) as consumer, \
            attach(daemon.path, "half") as producer, \
            observe(daemon.path, "half") as observer:
        def copies_missed():
            consumer.credit(1000)
            storm(producer, 1000)
            drain(consumer, 1000)
            return producer.stat().copies_missed
        for _ in range(count // 1000):
            copies_missed()
        assert copies_missed()
        observer.socket.shutdown(socket.SHUT_WR)
        assert wait_for(lambda: copies_missed() == copies_missed())
        assert len(observer.ended()) <= count


def test_copies_take_no_buffers_of_others():
    with Daemon("buffers = 4\nbuffer_size = 2048\n") as daemon, \
            attach(daemon.path, "few", CONSUME) as consumer, \
            attach(daemon.path, "few") as producer:
        many = [observe(daemon.path, "few") for _ in range(16)]
        consumer.credit(500)
        storm(producer, 500)
        got = drain(consumer, 500)
        for observer in many:
            assert take(observer, 500) == got
            observer.close()


# ------------------------------------------------------------------------
# Others


def test_drop_does_not_wait_for_observers(daemon):
    with attach(daemon.path, "gone", CONSUME) as queue:
        reading, stuck = (observe(daemon.path, "gone") for _ in range(2))
        count = scaled(30000, 1000)
        queue.credit(count)
        storm(queue, count)
        drain(queue, count)
        take_all(reading, count)
        assert queue.request(Record(DROP)).status == 0
        assert reading.ended() == []
        # The daemon does not wait for it either.
        try:
            while stuck.record():
                pass
        except Closed:
            pass
        for observer in (reading, stuck):
            observer.close()
    assert status(daemon.path, "gone", OBSERVE) == -errno.ENOENT


def test_drop_among_observers_that_ask():
    """Whatever an observer asks meanwhile, DROP is done or answered -EBUSY."""
    for threads in (1, 4):
        with Daemon(threads=threads) as daemon:
            for i in range(scaled(30, 3)):
                queue = attach(daemon.path, "q")
                many = [observe(daemon.path, "q") for _ in range(8)]
                with daemon.halted():
                    for j, observer in enumerate(many):
                        observer.send(*[Record((QUERY, SCAN, STAT, QUEUES)[j % 4],
                                               id=0, period=5)] * 20)
                    queue.send(Record(DROP))
                while queue.reply().status == -errno.EBUSY:
                    queue.send(Record(DROP))
                for observer in many:
                    try:
                        observer.ended()
                    except AssertionError:
                        # Cut inside a reply: the daemon did not wait.
                        pass
                    observer.close()
                queue.close()
                with attach(daemon.path, "q") as queue:
                    assert queue.request(Record(DROP)).status == 0


def test_drop_waits_for_an_observers_request():
    """The engine has the observer's memory until then."""
    with tap.slow(1000) as daemon, attach(daemon.path, "q") as queue, \
            observe(daemon.path, "q") as observer:
        observer.send(Record(QUERY, id=5))
        # After the reply the engine has the earlier request.
        queue.stat()
        assert queue.request(Record(DROP)).status == -errno.EBUSY
        assert observer.reply().status == -errno.ENOENT
        assert queue.request(Record(DROP)).status == 0
        assert observer.ended() == []


def test_queues_of_all_threads_are_observed():
    with Daemon(threads=4) as daemon:
        consumers = [attach(daemon.path, "q%d" % i, CONSUME) for i in range(8)]
        observers = [observe(daemon.path, "q%d" % i) for i in range(8)]
        for consumer in consumers:
            consumer.credit(1000)
            consumer.send(*[arm(0, j, flags=0) for j in range(1000)])
        for consumer, observer in zip(consumers, observers):
            assert all(r.status == 0 for r in consumer.replies(1000))
            check_copies(take_all(observer, 1000), drain(consumer, 1000))
        stat = consumers[0].stat()
        assert stat.copies_missed == 0, stat
        for connection in consumers + observers:
            connection.close()


if __name__ == "__main__":
    tap.main()
