#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Durable queues: what was answered is there after the daemon was killed."""

import errno
import os
import re
import resource
import select
import subprocess
import tempfile
import time

import tap
from client import (ACK, ACKING, ARM, CANCEL, CLEAR, CONSUME, DROP, DURABLE, EXISTING,
                    HOUR, KEYED, QUERY, QUEUES, REDELIVERED, REFRESH, RELATIVE,
                    SCAN, SIZE, STAT, WAIT, Connection, Record, arm, attach, error,
                    pack, wait_for)
from daemon import ENGINE, PROGRAM, Daemon
from durable import (FLAGS, MILLISECOND, Disk, kill, limit_writes, named_by, query, refused,
                     rows, without_signal)
from listing import listing

QUEUE_DURABLE = 0x4000


def test_hello_without_a_journal():
    with Daemon() as daemon:
        for flags, status in ((FLAGS, -errno.EOPNOTSUPP),
                              (DURABLE | KEYED, -errno.EINVAL),
                              (DURABLE | ACKING, -errno.EINVAL)):
            with Connection(daemon.path) as connection:
                reply = connection.hello("queue", flags)
                assert reply.status == status, (flags, error(reply.status))


def test_hello():
    with Disk() as disk, disk.daemon() as daemon:
        for name, flags in (("", FLAGS), ("queue", DURABLE | KEYED),
                            ("queue", DURABLE | ACKING)):
            with Connection(daemon.path) as connection:
                assert connection.hello(name, flags).status == -errno.EINVAL
        with Connection(daemon.path) as connection:
            reply = connection.hello("queue", FLAGS)
            assert reply.status == 0 and reply.flags & DURABLE, reply
            assert reply.cookie >> 32 == 0 and reply.cookie, reply
        # Who does not ask for it gets it, too, and is told.
        with Connection(daemon.path) as connection:
            reply = connection.hello("queue", KEYED | ACKING)
            assert reply.status == 0 and reply.flags & DURABLE, reply
        attach(daemon.path, "plain", KEYED | ACKING).close()
        with Connection(daemon.path) as connection:
            assert connection.hello("plain", FLAGS).status == -errno.EINVAL


def test_requests_survive_a_kill():
    with Disk() as disk:
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS) as connection:
                for number in range(1, 6):
                    assert connection.request(
                        arm(HOUR, number, id=number)).status == 0
                moved = connection.request(
                    Record(REFRESH, RELATIVE, id=2, deadline=2 * HOUR))
                assert connection.request(Record(CANCEL, id=3)).status == 0
                before = rows(connection)
            kill(daemon)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | EXISTING) as connection:
                assert rows(connection) == before
                assert query(connection, 2).deadline == moved.deadline
                assert query(connection, 3).status == -errno.ENOENT
                assert connection.request(Record(CLEAR)).cookie == 4
            kill(daemon)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | EXISTING) as connection:
                assert not rows(connection)
                assert connection.request(Record(DROP)).status == 0
            kill(daemon)
        with disk.daemon() as daemon, Connection(daemon.path) as connection:
            assert connection.hello("queue", FLAGS | EXISTING).status == -errno.ENOENT


def test_a_number_is_no_other_queues():
    """Not even that of one that the journal has forgotten."""
    numbers = []
    with Disk() as disk:
        for forget in (False, True, False):
            with disk.daemon() as daemon:
                with attach(daemon.path, "queue", FLAGS) as connection:
                    number = connection.stat().durable
                    assert number and number not in numbers, numbers
                    numbers.append(number)
                with attach(daemon.path, "plain", KEYED | ACKING) as connection:
                    assert connection.stat().durable == 0
                    listed = {row.name: row.access for row in listing(connection)}
                    assert listed["queue"] & QUEUE_DURABLE, listed
                    assert not listed["plain"] & QUEUE_DURABLE, listed
                kill(daemon)
            with disk.daemon() as daemon:
                with attach(daemon.path, "queue", FLAGS | EXISTING) as connection:
                    assert connection.stat().durable == number
                    assert connection.request(Record(DROP)).status == 0
                kill(daemon)
            if forget:
                for path in disk.files() + disk.files("checkpoint"):
                    os.unlink(path)


def test_records_of_the_journal_are_not_a_client_s():
    """A client sends each op that the journal has for itself."""
    with Disk() as disk:
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            assert connection.request(arm(HOUR, 1, id=1)).status == 0
            for op in range(128, 256):
                assert connection.request(Record(op, id=1)).status == -errno.EOPNOTSUPP, op
            assert connection.request(arm(HOUR, 2, id=2)).status == 0
            kill(daemon)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | EXISTING) as connection:
                assert sorted(rows(connection)) == [1, 2]


def test_other_queues_end_with_the_daemon():
    with Disk() as disk:
        with disk.daemon() as daemon:
            attach(daemon.path, "durable", FLAGS).close()
            attach(daemon.path, "other", KEYED | ACKING).close()
            kill(daemon)
        with disk.daemon() as daemon, Connection(daemon.path) as connection:
            assert connection.hello("other", KEYED | ACKING | EXISTING).status == \
                -errno.ENOENT


def test_a_periodic_timers_delivery_that_waits_for_its_ack():
    """It stays after REFRESH and after CANCEL."""
    with Disk() as disk:
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                connection.batch([arm(1, number, id=number, period=3600000)
                                  for number in (1, 2, 3)])
                connection.credit(3)
                assert {connection.expiration().id for _ in range(3)} == {1, 2, 3}
                moved = connection.request(
                    Record(REFRESH, RELATIVE, id=1, deadline=9 * HOUR))
                assert moved.flags == REDELIVERED, moved
                canceled = connection.request(Record(CANCEL, id=2))
                assert canceled.flags == REDELIVERED, canceled
                assert rows(connection)[1].flags == REDELIVERED
            kill(daemon)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                connection.credit(9)
                assert {connection.expiration().id for _ in range(3)} == {1, 2, 3}
                assert connection.quiet()
                assert query(connection, 1).deadline == moved.deadline
                assert query(connection, 2).status == -errno.ENOENT
                for number in (1, 2, 3):
                    assert connection.request(Record(ACK, id=number)).status == 0
                assert sorted(rows(connection)) == [1, 3]


def test_an_arm_says_that_a_delivery_waits_for_its_ack():
    with Disk() as disk:
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS) as connection:
                armed = connection.request(arm(2 * HOUR, 1, id=1, period=3600000,
                                               flags=REDELIVERED | RELATIVE))
                assert armed.status == 0 and armed.flags == REDELIVERED, armed
                before = rows(connection)
            kill(daemon)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                assert rows(connection) == before
                connection.credit(2)
                assert connection.expiration().flags & REDELIVERED
                assert connection.quiet()


def test_the_interval_is_told():
    with Disk("commit = 250ms\n") as disk, disk.daemon() as daemon, \
            Connection(daemon.path) as connection:
        assert connection.hello("queue", FLAGS).cookie >> 32 == 250


def test_one_daemon_at_a_time():
    with Disk() as disk, disk.daemon() as daemon:
        attach(daemon.path, "queue", FLAGS).close()
        run = subprocess.run([PROGRAM, "--engine", "embedded", "--socket",
                              daemon.path + "2", "--journal", disk.folder],
                             stderr=subprocess.PIPE, text=True, check=False, timeout=30)
        assert run.returncode == 1 and "another process uses it" in run.stderr, run


def fill(disk, commits=3):
    """Leaves a journal of some blocks."""
    with disk.daemon() as daemon:
        with attach(daemon.path, "queue", FLAGS) as connection:
            for number in range(1, commits + 1):
                connection.request(arm(HOUR, number, id=number))
        kill(daemon)


def test_threads():
    """Queues stay in the thread of their journal, and a start with fewer is refused."""
    with Disk() as disk:
        with disk.daemon(threads=3) as daemon:
            for name in ("a", "b", "c", "d", "e"):
                with attach(daemon.path, name, FLAGS) as connection:
                    assert connection.request(arm(HOUR, 1, id=ord(name))).status == 0
            kill(daemon)
        assert len({os.path.basename(path)[8:10] for path in disk.files()}) == 3
        refused(disk, "start with --threads 3 or more")
        with disk.daemon(threads=3) as daemon:
            for name in ("a", "b", "c", "d", "e"):
                with attach(daemon.path, name, FLAGS | EXISTING) as connection:
                    assert sorted(rows(connection)) == [ord(name)]
        # The fault of a further thread's journal ends the daemon as any other.
        overwrite(next(path for path in disk.files() if "journal-02" in path), 40, b"damage")
        refused(disk, "a bad block", threads=3)


def test_files_that_are_not_the_daemons_own():
    with Disk() as disk:
        fill(disk)
        path = disk.files()[0]
        assert os.stat(path).st_mode & 0o777 == 0o600
        os.chmod(path, 0o640)
        refused(disk, "Operation not permitted")
        os.chmod(path, 0o600)
        os.rename(path, path + ".moved")
        os.symlink(path + ".moved", path)
        refused(disk, "symbolic links")
        os.unlink(path)
        os.rename(path + ".moved", path)
        os.chmod(disk.folder, 0o777)
        refused(disk, "others may write to it")
        os.chmod(disk.folder, 0o700)
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            assert sorted(rows(connection)) == [1, 2, 3]


def blocks(path):
    """Yields the offset of each block."""
    with open(path, "rb") as file:
        data = file.read()
    offset = 0
    while data[offset:offset + 3] == b"EXJ":
        yield offset
        offset += int.from_bytes(data[offset + 8:offset + 12], "little")


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        before = file.read(len(data))
        file.seek(offset)
        file.write(data)
    return before


def test_a_torn_tail_is_cut_and_damage_is_refused():
    with Disk() as disk:
        fill(disk, 5)
        path = disk.files()[0]
        found = list(blocks(path))
        assert len(found) > 4, found
        before = overwrite(path, found[2] + 40, b"damage")
        refused(disk, "%s at byte %d: a bad block" % (os.path.basename(path), found[2]))
        overwrite(path, found[2] + 40, before)
        before = overwrite(path, 3, b"\xff")
        refused(disk, "another version's file")
        overwrite(path, 3, before)
        # Nothing shows that the last block was ever answered.
        overwrite(path, found[-1] + 40, b"damage")
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            assert sorted(rows(connection)) == [1, 2, 3, 4]


def test_only_complete_queues_are_kept():
    """What the service manager keeps counts as complete at the next start."""
    if ENGINE != "kernel":
        raise tap.Skip("the kernel engine's")
    with Disk() as disk:
        with disk.daemon(threads=1) as daemon:
            with attach(daemon.path, "one", FLAGS) as one, \
                    attach(daemon.path, "two", FLAGS) as two:
                for number in (1, 2):
                    for connection in (one, two):
                        assert connection.request(arm(HOUR, id=number)).status == 0
            kill(daemon)
        disk.config = "queues = 1\n"
        daemon = disk.daemon(threads=1)
        assert daemon.process.wait(WAIT) == 1, daemon.log()
        kept = daemon.manager.take_store()
        daemon.remove()
        disk.config = None
        with disk.daemon(threads=1, stored=kept) as daemon:
            for name in ("one", "two"):
                with attach(daemon.path, name, FLAGS) as connection:
                    assert sorted(rows(connection)) == [1, 2], (name, kept)
            assert len(daemon.manager.names()) == 2, daemon.manager.names()
        assert not kept, kept


def stream(connection, data):
    """Sends the requests of @data, and drops as many replies."""
    left, view = len(data), memoryview(data)
    while left:
        _, room, _ = select.select([], [connection.socket] if view else [], [], 0)
        if room:
            view = view[connection.socket.send(view[:1 << 16]):]
        ready, _, _ = select.select([connection.socket], [], [], 0 if view else 30)
        if ready:
            left -= len(connection.socket.recv(1 << 16))
        else:
            assert view, "no reply"


def test_a_full_queue_changes_while_a_checkpoint_is_taken():
    """The checkpoint has timers that were armed while it was taken, and the journal the
    ARMs before them: together that is more than the queue may have."""
    cold, hot = 19500, 500
    sets = [range(cold + 1 + i * hot, cold + 1 + (i + 1) * hot) for i in range(3)]
    swaps = [pack([Record(CANCEL, id=number) for number in sets[i - 1]] +
                  [arm(HOUR, i, id=number) for number in sets[i]]) for i in range(3)]
    with Disk("timers_per_queue = %d\n" % (cold + hot)) as disk:
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            connection.batch([arm(HOUR, 2, id=number)
                              for number in [*range(1, cold + 1), *sets[2]]])
            while not connection.stat().journal_checkpoints:
                stream(connection, b"".join(swaps * 20))
            before = rows(connection)
            assert len(before) == cold + hot
            kill(daemon)
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            assert rows(connection) == before


def full_queue(connection, has_checkpoint):
    """Makes a thousand timers, of which five are delivered. Returns them."""
    connection.batch([arm(1, number, id=number, period=number % 2 * 3600000)
                      for number in range(1, 6)])
    connection.credit(5)
    assert {connection.expiration().id for _ in range(5)} == set(range(1, 6))
    absolute = time.time_ns() + HOUR
    others = [Record(ARM, id=number, deadline=absolute + number, cookie=number,
                     period=number % 3 * 1000) for number in range(6, 1001)]
    while True:
        stream(connection, pack(others))
        if connection.stat().journal_checkpoints >= has_checkpoint:
            return rows(connection)


def test_a_lower_limit_refuses_no_start():
    """All timers are there, and as many are the limit until the start after that."""
    for has_checkpoint in (False, True):
        with Disk("timers_per_queue = 2000\n") as disk:
            with disk.daemon(threads=1) as daemon:
                with attach(daemon.path, "other", FLAGS) as other, \
                        attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                    other.batch([arm(HOUR, id=number) for number in range(1, 51)])
                    before = full_queue(connection, has_checkpoint)
                    assert len(before) == 1000, len(before)
                kill(daemon)
            disk.config = "timers_per_queue = 100\n"
            with disk.daemon(threads=1) as daemon:
                # The module counts a periodic timer and its delivery for two.
                assert re.search("queue queue has 100[0-3] timers, and the limit that is set is 100:",
                                 daemon.log()), daemon.log()
                assert "queue other has" not in daemon.log()
                with attach(daemon.path, "other", FLAGS) as other:
                    assert len(rows(other)) == 50 and other.stat().limit == 100
                with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                    after = rows(connection)
                    assert set(after) == set(before), (len(before), len(after))
                    for number in range(6, 1001):
                        assert after[number] == before[number], number
                    assert connection.stat().limit in range(1000, 1004), connection.stat()
                    statuses = [reply.status for reply in connection.batch(
                        [arm(HOUR, id=number) for number in range(1001, 1005)])]
                    assert statuses[3] == -errno.ENOSPC, statuses
                    connection.credit(9)
                    again = [connection.expiration() for _ in range(5)]
                    assert {record.id for record in again} == set(range(1, 6)), again
                    assert all(record.flags & REDELIVERED for record in again), again
                    connection.batch([Record(ACK, id=number) for number in range(1, 6)])
                    connection.batch([Record(CANCEL, id=number) for number in range(101, 1005)])
                    assert connection.request(arm(HOUR, id=1001)).status == 0
                    connection.request(Record(CANCEL, id=1001))
                    left = set(rows(connection))
                kill(daemon)
            with disk.daemon(threads=1) as daemon, \
                    attach(daemon.path, "queue", FLAGS) as connection:
                assert set(rows(connection)) == left
                assert connection.stat().limit == 100, connection.stat()


def test_a_limit_is_lowered_where_there_is_memory_for_it():
    """It takes moving all timers. Where both do not fit, the start goes on without."""
    if ENGINE != "embedded":
        raise tap.Skip("the embedded engine's")
    timers, left, limit = 100000, 50000, 60000
    with Disk() as disk:
        with disk.daemon(threads=1) as daemon:
            with attach(daemon.path, "queue", FLAGS) as connection:
                absolute = time.time_ns() + HOUR
                arms = pack([Record(ARM, id=number, deadline=absolute)
                             for number in range(1, timers + 1)])
                while not connection.stat().journal_checkpoints:
                    stream(connection, arms)
                stream(connection, pack([Record(CANCEL, id=number)
                                         for number in range(left + 1, timers + 1)]))
            kill(daemon)
        limits = []
        for mebibytes in (*range(4, 14), 1000):
            disk.config = "timers_per_queue = %d\nmemory = %d\n" % (limit, mebibytes << 20)
            daemon = disk.daemon(threads=1)
            try:
                if not daemon.wait_ready():
                    assert "Cannot allocate memory" in daemon.log(), daemon.log()
                    continue
                with attach(daemon.path, "queue", FLAGS) as connection:
                    assert connection.stat().armed == left
                    limits.append(connection.stat().limit)
                kill(daemon)
            finally:
                daemon.remove()
        assert limits[0] == timers and limits[-1] == limit, limits


def test_expirations_come_while_the_journal_fails():
    """A SCAN is refused: its rows would wait for a commit, and all behind them. STAT
    and QUEUES promise nothing, and are answered."""
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon(program=without_signal(folder)) as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                soon = connection.request(arm(500 * MILLISECOND, id=1))
                assert connection.request(arm(HOUR, id=2)).status == 0
                limit_writes(daemon, 0)
                # The replies wait when the journal fails, some of them among others.
                connection.send(arm(HOUR, id=3), Record(SCAN, period=100), arm(HOUR, id=4),
                                Record(STAT), arm(HOUR, id=5), Record(QUEUES, period=9),
                                Record(QUERY, id=2), Record(SCAN, period=100))
                refused_by = []
                for op in (ARM, SCAN, ARM, STAT, ARM):
                    reply = connection.reply()
                    assert reply.op == op, (reply, op)
                    if op == STAT:
                        assert reply.status == 0, reply
                        connection.take(reply.period * SIZE)
                    else:
                        refused_by.append((op, reply.status))
                reply = connection.reply()
                while reply.period:
                    assert (reply.op, reply.status) == (QUEUES, 0), reply
                    connection.take(reply.period * SIZE)
                    reply = connection.reply()
                refused_by += [(QUERY, connection.reply().status),
                               (SCAN, connection.reply().status)]
                assert {status for _, status in refused_by} == {-errno.EFBIG}, refused_by
                # And those that come while it fails.
                for request in (Record(SCAN, period=100), Record(QUERY, id=2)):
                    reply = connection.request(request)
                    assert (reply.op, reply.status) == (request.op, -errno.EFBIG), reply
                connection.stat()
                connection.credit(1)
                came = connection.expiration()
                assert (came.id, came.deadline) == (1, soon.deadline), came
                assert connection.stat().journal_failed == 1
                limit_writes(daemon, resource.RLIM_INFINITY)
                assert wait_for(lambda: query(connection, 2).status == 0)
                assert {1, 2} <= set(rows(connection)) <= {1, 2, 3, 4, 5}
            kill(daemon)


def test_a_failed_write():
    """Requests that wait get its error, and so do new ones until a checkpoint stands."""
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon(program=without_signal(folder)) as daemon:
            with attach(daemon.path, "queue", FLAGS) as connection, \
                    attach(daemon.path, "other") as other:
                assert connection.request(arm(HOUR, 1, id=1)).status == 0
                limit_writes(daemon, 0)
                replies = connection.batch([arm(HOUR, number, id=number)
                                            for number in range(2, 10)])
                assert {reply.status for reply in replies} == {-errno.EFBIG}, replies
                assert connection.request(arm(HOUR, 1, id=10)).status == -errno.EFBIG
                assert connection.request(Record(CANCEL, id=1)).status == -errno.EFBIG
                assert other.request(arm(HOUR)).status == 0
                limit_writes(daemon, resource.RLIM_INFINITY)
                end = time.monotonic() + 30
                while connection.request(arm(HOUR, 11, id=11)).status:
                    assert time.monotonic() < end, "it is not mended"
                    time.sleep(0.05)
                checkpoints = disk.files("checkpoint")
                assert checkpoints
                for named in map(named_by, checkpoints):
                    assert len(named[0]) == 1, ("before its rows, once", named)
                before = rows(connection)
                assert {1, 11} <= set(before) <= set(range(1, 10)) | {11}, before
            kill(daemon)
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            assert rows(connection) == before


def test_a_long_start_asks_for_time():
    with Disk() as disk:
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            assert not any("EXTEND_TIMEOUT_USEC" in text for text in daemon.manager.messages)
            for first in range(1, 70000, 4000):
                replies = connection.batch([arm(HOUR, id=first + i) for i in range(4000)])
                assert {reply.status for reply in replies} == {0}
            kill(daemon)
        with disk.daemon(threads=1) as daemon:
            asked = [text for text in daemon.manager.messages if "EXTEND_TIMEOUT_USEC=" in text]
            assert len(asked) == 1 and "STATUS=Reading the journal: 65536 records" in asked[0], \
                daemon.manager.messages


def test_counters():
    with Disk() as disk:
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "plain") as plain, \
                attach(daemon.path, "queue", FLAGS) as connection:
            assert plain.request(arm(HOUR)).status == 0
            before = connection.stat()
            assert (before.journal_queues, before.journal_timers) == (1, 0), before
            for number in range(1, 21):
                assert connection.request(arm(HOUR, id=number)).status == 0
            stat = connection.stat()
            assert stat.journal_timers == 20, stat
            assert stat.journal_records >= before.journal_records + 20, stat
            assert stat.journal_commits >= before.journal_commits + 20, stat
            assert stat.journal_bytes >= before.journal_bytes + 20 * 512, stat
            assert not stat.journal_failed and not stat.journal_failures, stat
            assert not stat.refused_journal and not stat.journal_overdue, stat
            assert connection.request(arm(1, id=21)).status == 0
            assert wait_for(lambda: connection.stat().journal_size == sum(
                os.stat(path).st_size for path in disk.files())), disk.files()
            with attach(daemon.path, "second", FLAGS) as second:
                assert second.request(arm(HOUR, id=1)).status == 0
                assert second.stat().journal_timers == 22
                assert second.request(Record(DROP)).status == 0
            stat = connection.stat()
            assert (stat.journal_queues, stat.journal_timers) == (1, 21), stat
            kill(daemon)
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            stat = connection.stat()
            assert (stat.journal_queues, stat.journal_timers) == (1, 21), stat
            assert stat.journal_overdue == 1, stat


tap.main()
