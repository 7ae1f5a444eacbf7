#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests and their replies: every op, in order, in whatever pieces."""

import errno
import time

import tap
from client import (ACK, ACKING, ARM, CANCEL, CLEAR, CLOCK_SET, CONSUME, DROP,
                    EXPIRED, HOUR, KEYED, LATER, NEVER, NEW, QUERY, REFRESH,
                    RELATIVE, SCAN, SECOND, SIZE, STAT, Record, arm, attach,
                    pack, scaled, unpack, wait_for)


def test_arm_gives_id_and_absolute_deadline(daemon):
    with attach(daemon.path) as queue:
        before = time.monotonic_ns()
        reply = queue.request(arm(HOUR, 42, period=7))
        after = time.monotonic_ns()
        assert reply.op == ARM and reply.status == 0, reply
        assert reply.flags == 0 and reply.cookie == 42, reply
        assert reply.id & 0xffffffff and reply.id >> 32, reply
        assert before + HOUR <= reply.deadline <= after + HOUR, reply
        assert queue.request(arm(5 * HOUR, flags=0)).deadline == 5 * HOUR


def test_query_refresh_and_cancel(daemon):
    with attach(daemon.path) as queue:
        armed = queue.request(arm(HOUR, 9, period=3))
        found = queue.request(Record(QUERY, id=armed.id))
        assert found == Record(QUERY, 0, 0, 3, armed.id, armed.deadline, 9)
        moved = queue.request(Record(REFRESH, id=armed.id,
                                     deadline=armed.deadline + 5))
        assert moved == Record(REFRESH, 0, 0, 3, armed.id,
                               armed.deadline + 5, 9)
        kept = queue.request(Record(REFRESH, LATER, id=armed.id,
                                    deadline=armed.deadline))
        assert kept.status == 0 and kept.deadline == armed.deadline + 5
        gone = queue.request(Record(CANCEL, id=armed.id))
        assert gone == Record(CANCEL, 0, 0, 3, armed.id,
                              armed.deadline + 5, 9)
        for op in (QUERY, CANCEL, REFRESH):
            reply = queue.request(Record(op, id=armed.id))
            assert reply.status == -2, reply


def test_clear_counts(daemon):
    with attach(daemon.path) as queue:
        queue.batch([arm(HOUR, i) for i in range(100)])
        reply = queue.request(Record(CLEAR))
        assert reply.status == 0 and reply.cookie == 100, reply
        assert queue.stat().armed == 0
        assert queue.request(Record(CLEAR)).cookie == 0


def test_keyed_queue(daemon):
    with attach(daemon.path, flags=KEYED) as queue:
        assert queue.request(arm(NEVER, 1, id=5, flags=0)).id == 5
        again = queue.request(arm(HOUR, 2, id=5))
        assert again.status == 0 and again.id == 5, again
        assert queue.stat().armed == 1
        assert queue.request(Record(QUERY, id=5)).cookie == 2
        assert queue.request(arm(HOUR, 3, id=5, flags=NEW)).status == -17
        assert queue.request(arm(HOUR, 3, id=6, flags=NEW)).status == 0
        assert queue.request(arm(HOUR, 3)).status == -22
        assert queue.request(Record(CANCEL, id=5)).status == 0
        assert queue.request(Record(CANCEL, id=5)).status == -2


def test_replies_come_in_the_order_of_requests(daemon):
    count = scaled(20000)
    with attach(daemon.path) as queue:
        requests = [Record(99, cookie=i) if i % 7 == 0 else
                    Record(CANCEL, id=2**40 + 1, cookie=i) if i % 5 == 0 else
                    arm(HOUR, i) for i in range(count)]
        replies = queue.batch(requests)
        for i, (sent, got) in enumerate(zip(requests, replies)):
            assert got.op == sent.op and got.cookie == i, (i, sent, got)
            assert got.status == {99: -95, CANCEL: -2, ARM: 0}[sent.op], got


def test_expirations_stand_between_replies_and_lose_none(daemon):
    count = scaled(5000)
    with attach(daemon.path, flags=CONSUME) as queue:
        queue.credit(count)
        replies = queue.batch([arm(i % 50 * 1000000, i)
                               for i in range(count)])
        assert all(reply.status == 0 for reply in replies)
        deadlines = {reply.cookie: reply.deadline for reply in replies}
        while len(queue.expired) < count:
            record = queue.record()
            now = time.monotonic_ns()
            assert record.op == EXPIRED, record
            assert record.deadline <= now, "early"
            queue.expired.append(record)
        assert {r.cookie: r.deadline for r in queue.expired} == deadlines
        ids = {reply.id for reply in replies}
        assert {r.id for r in queue.expired} == ids
        assert queue.stat().armed == 0


def test_expirations_come_in_order_of_deadline_and_never_early(daemon):
    count = scaled(3000)
    with attach(daemon.path, flags=CONSUME) as queue:
        base = time.monotonic_ns() + SECOND // 5
        # All are armed before the first is due, or due ones are taken late.
        queue.batch([arm(base + i * 7919 % count * 20000, i, flags=0)
                     for i in range(count)])
        queue.credit(count)
        last = 0
        for _ in range(count):
            record = queue.expiration()
            assert record.deadline <= time.monotonic_ns(), "early"
            assert record.deadline >= last, "out of order"
            last = record.deadline
        assert queue.quiet()


def test_record_sent_byte_by_byte(daemon):
    with attach(daemon.path) as queue:
        data = pack([arm(HOUR, 1), arm(HOUR, 2), Record(99)])
        for i in range(len(data)):
            queue.send(data[i:i + 1])
        replies = queue.replies(3)
        assert [r.status for r in replies] == [0, 0, -95], replies
        assert [r.cookie for r in replies] == [1, 2, 0], replies


def test_records_cut_at_every_offset(daemon):
    with attach(daemon.path) as queue:
        for cut in range(1, 2 * SIZE):
            data = pack([arm(HOUR, cut), arm(HOUR, cut + 1000)])
            queue.send(data[:cut])
            time.sleep(0.0002)
            queue.send(data[cut:])
            replies = queue.replies(2)
            assert [r.cookie for r in replies] == [cut, cut + 1000], replies
            assert [r.status for r in replies] == [0, 0], replies


def test_odd_pieces_of_a_long_stream(daemon):
    count = scaled(4000)
    with attach(daemon.path) as queue:
        data = pack([arm(HOUR, i) for i in range(count)])
        got, pos, step = b"", 0, 1
        while pos < len(data):
            queue.send(data[pos:pos + step])
            pos += step
            step = step * 5 % 4099 + 1
            whole = min(pos, len(data)) // SIZE * SIZE
            got += queue.take(whole - len(got))
        replies = unpack(got)
        assert [r.cookie for r in replies] == list(range(count))
        assert all(r.status == 0 for r in replies)


def test_unknown_ops_leave_the_connection_alive(daemon):
    known = {ARM, REFRESH, CANCEL, ACK, QUERY, CLEAR} | set(range(64, 70))
    with attach(daemon.path) as queue:
        for op in set(range(256)) - known:
            sent = Record(op, id=1, deadline=2, cookie=op)
            queue.send(sent)
            reply = queue.record()  # whatever its op looks like
            assert reply == sent._replace(status=-95), reply
        assert queue.request(arm(HOUR)).status == 0


def test_ops_of_expirations_are_refused_among_expirations(daemon):
    """They come back with a status, by which they are no expirations."""
    count = scaled(1000)
    with attach(daemon.path, flags=CONSUME) as queue:
        # As much credit as there are timers: what is refused takes none.
        queue.credit(count)
        requests = [arm(0, i) if i % 2 else
                    Record((EXPIRED, CLOCK_SET)[i % 4 // 2], id=i + 1,
                           deadline=i, cookie=i, period=3)
                    for i in range(2 * count)]
        replies = queue.batch(requests)
        for sent, got in zip(requests, replies):
            assert got.op == sent.op and got.cookie == sent.cookie, got
            if sent.op == ARM:
                assert got.status == 0, got
            else:
                assert got == sent._replace(status=-95), (sent, got)
        while len(queue.expired) < count:
            record = queue.record()
            assert record.op == EXPIRED and record.status == 0, record
            queue.expired.append(record)
        assert {r.cookie for r in queue.expired} == \
            {r.cookie for r in requests if r.op == ARM}
        queue.expired.clear()
        # Whatever else is wrong with them.
        for wrong in (Record(EXPIRED, flags=0xff), Record(CLOCK_SET, status=3),
                      Record(EXPIRED, status=-1)):
            got = queue.request(wrong)
            assert got.op == wrong.op and got.status < 0, got
            assert got == wrong._replace(status=got.status), got
        assert queue.stat().credit == 0


def test_bad_flags_are_refused_with_the_record_as_sent(daemon):
    allowed = {ARM: RELATIVE | LATER, REFRESH: RELATIVE | LATER}
    for mode in (0, ACKING, KEYED, ACKING | KEYED):
        with attach(daemon.path, flags=mode) as queue:
            key = 5 if mode & KEYED else 0
            timer = queue.request(arm(HOUR, id=key)).id
            for op in (ARM, REFRESH, CANCEL, ACK, QUERY, CLEAR):
                ok = allowed.get(op, 0)
                if op == ARM and mode & KEYED:
                    ok |= NEW
                ident = key if op == ARM else timer
                for bit in range(8):
                    if ok & 1 << bit:
                        continue
                    sent = Record(op, 1 << bit, 0, 0, ident, NEVER, 7)
                    reply = queue.request(sent)
                    assert reply == sent._replace(status=-22), reply
            assert queue.stat().armed == 1


def test_status_must_be_0(daemon):
    with attach(daemon.path, flags=ACKING) as queue:
        timer = queue.request(arm(HOUR)).id
        for op in (ARM, REFRESH, CANCEL, ACK, QUERY, CLEAR):
            for status in (1, -1, -32768, 32767):
                ident = 0 if op == ARM else timer
                sent = Record(op, 0, status, 0, ident, NEVER, 7)
                assert queue.request(sent) == sent._replace(status=-22), op
        assert queue.stat().armed == 1


def test_ids_that_name_no_timer(daemon):
    with attach(daemon.path, flags=ACKING) as queue:
        stale = queue.request(arm(HOUR)).id
        queue.request(Record(CANCEL, id=stale))
        timer = queue.request(arm(HOUR)).id
        slot, generation = timer & 0xffffffff, timer >> 32
        strange = (stale, timer + 2**32, timer ^ 2**63, NEVER,
                   generation << 32 | slot + 1, generation << 32,
                   generation << 32 | 0xffffffff, generation << 32 | 10**6)
        for op in (REFRESH, CANCEL, QUERY, ACK):
            for ident in strange:
                reply = queue.request(Record(op, id=ident, deadline=NEVER))
                assert reply.status == -2, reply
            assert queue.request(Record(op)).status == -22, op
        assert queue.request(Record(ACK, id=timer)).status == -2
        assert queue.request(arm(HOUR, id=timer)).status == -22
        assert queue.stat().armed == 1
    with attach(daemon.path) as queue:
        timer = queue.request(arm(HOUR)).id
        assert queue.request(Record(ACK, id=timer)).status == -22


def test_deadlines_at_both_ends(daemon):
    with attach(daemon.path, flags=CONSUME) as queue:
        queue.credit(10)
        for far in (NEVER, NEVER - 1, 2**63, 2**63 - 1):
            assert queue.request(arm(far, 1, flags=0)).deadline == far
            assert queue.request(arm(far, 1)).deadline >= far
        assert queue.quiet()
        assert queue.request(arm(0, 99, flags=0)).deadline == 0
        record = queue.expiration()
        assert record.cookie == 99 and record.deadline == 0, record
        assert queue.stat().armed == 8


def test_scan_pages_through_all_timers(daemon):
    count = scaled(5000)
    with attach(daemon.path, flags=KEYED) as queue:
        queue.batch([arm(NEVER - i, i * 3, id=i + 1, period=i % 4, flags=0)
                     for i in range(count)])
        for page in (100, 1000, 4096):
            rows = queue.scan(page)
            assert len(rows) == count, len(rows)
            want = {Record(SCAN, 0, 0, i % 4, i + 1, NEVER - i, i * 3)
                    for i in range(count)}
            assert set(rows) == want
        queue.request(Record(CLEAR))
        assert queue.scan(100) == []


def scan_from(queue, cursor, most):
    """All rows from @cursor on, by as many requests as it takes."""
    rows = []
    for _ in range(100):
        queue.send(Record(SCAN, id=cursor, period=most))
        row, count = queue.reply(), 0
        while row.id and not row.status:
            rows.append(row.id)
            row, count = queue.reply(), count + 1
        assert row.op == SCAN and row.status == 0, row
        assert count <= most, (count, most)
        cursor = row.cookie
        if not cursor:
            assert len(set(rows)) == len(rows), "seen twice"
            return set(rows)
    raise AssertionError("there is no end to it")


def test_scan_of_strange_cursors_and_sizes(daemon):
    with attach(daemon.path) as queue:
        ids = {r.id for r in queue.batch([arm(HOUR, i) for i in range(10)])}
        assert scan_from(queue, NEVER, 5) == set()
        # As of a scan that was given up, or of another life of the queue.
        for cursor in (1, 5, 2**32, 2**63):
            queue.send(Record(SCAN, id=cursor, period=5))
            assert queue.reply().status == -errno.ECANCELED
        # More than any answer may hold.
        assert scan_from(queue, 0, 2**32 - 1) == ids
        assert queue.request(Record(SCAN)).status == -22
        assert queue.request(arm(HOUR)).status == 0


def test_stat_counts_this_queue(daemon):
    with attach(daemon.path, flags=CONSUME) as queue:
        queue.batch([arm(HOUR, i) for i in range(50)])
        queue.request(Record(99))
        queue.credit(3)
        queue.request(arm(0, 1))
        queue.expiration()
        before = time.monotonic_ns()
        stat = queue.stat()
        assert before <= stat.now <= time.monotonic_ns()
        assert stat.armed == 50 and stat.arms == 51, stat
        assert stat.delivered == 1 and stat.unacked == 0, stat
        assert sum(stat.lateness) == 1, stat
        assert stat.clock == 1 and stat.mode == 0, stat
        assert stat.consumers == 1 and stat.producers == 1, stat
        assert stat.credit == 2, stat
        assert stat.engine in (1, 2) and stat.uptime > 0, stat
        assert stat.queues >= 1 and stat.connections >= 1, stat
        assert stat.records >= 52 and stat.expirations >= 1, stat


def test_drop_removes_the_queue_and_its_timers(daemon):
    with attach(daemon.path, "dropped", CONSUME) as queue:
        queue.batch([arm(HOUR, i) for i in range(10)])
        queues = queue.stat().queues
        reply = queue.request(Record(68))
        assert reply.op == 68 and reply.status == 0, reply
    with attach(daemon.path, "dropped") as queue:
        assert queue.stat().armed == 0
        assert queue.stat().queues <= queues
        queue.request(Record(68))


def test_drop_with_another_producer_attached_is_refused(daemon):
    with attach(daemon.path, "dropped2") as one, \
            attach(daemon.path, "bystander") as other:
        with attach(daemon.path, "dropped2") as two:
            timer = one.request(arm(HOUR))
            for _ in range(2):
                assert one.request(Record(DROP)).status == -16
            assert two.request(Record(QUERY, id=timer.id)).status == 0
            assert two.request(arm(HOUR)).status == 0
        assert wait_for(lambda: one.stat().producers == 1)
        assert one.request(Record(DROP)).status == 0
        # It has no queue from then on, and is still connected.
        for record in (arm(HOUR), Record(DROP), Record(STAT)):
            assert one.request(record).status == -2, record
        assert other.request(arm(HOUR)).status == 0
        assert other.request(Record(DROP)).status == 0


def test_drop_of_an_anonymous_queue_is_refused(daemon):
    with attach(daemon.path) as queue:
        assert queue.request(Record(68)).status == -22


if __name__ == "__main__":
    tap.main()
