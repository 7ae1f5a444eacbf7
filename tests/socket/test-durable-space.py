#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Durable queues where space ends: that of the disk, and that of `journal_size`. What ends
timers goes on in a reserve."""

import contextlib
import errno
import os
import subprocess
import tempfile

import tap
from client import (ACK, CANCEL, CONSUME, HOUR, REFRESH, RELATIVE, Record, arm, attach, error,
                    wait_for)
from disk_faults import HELD, OPEN, Faults
from durable import FLAGS, Disk, kill, rows


@contextlib.contextmanager
def small_disk():
    """A disk with space for the first two segments."""
    tap.need_root()
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=14m,mode=700", "none", folder]
        if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
            raise tap.Skip("cannot mount a tmpfs")
        try:
            yield Disk(folder=folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


@contextlib.contextmanager
def beginning(disk):
    """The first daemon on a small disk, which does not find it full until rule 0 of its
    faults is lifted."""
    with Faults() as faults:
        faults.fail(0, OPEN, 3, HELD)
        with disk.daemon(threads=1, environment=faults.environment) as daemon:
            yield daemon, faults
            faults.lift(0)


def arm_fifty(connection):
    """Arms timers that stay. Returns their ids."""
    ids = range(1 << 20, (1 << 20) + 50)
    replies = connection.batch([arm(HOUR, id=number) for number in ids])
    assert {reply.status for reply in replies} == {0}, replies
    return set(ids)


def full(connection):
    """Arms timers until there is no space. Returns the ids of those that are armed."""
    armed = set()
    for start in range(1, 1_000_000, 4000):
        replies = connection.batch([
            arm(HOUR, 1, id=number) for number in range(start, start + 4000)])
        armed.update(r.id for r in replies if not r.status)
        bad = {r.status for r in replies if r.status}
        if bad:
            assert bad == {-errno.ENOSPC}, bad
            return armed
    raise AssertionError("there is space for a million timers")


def test_no_space():
    """CANCEL and ACK go on for a while; after that nothing is lost, either."""
    with small_disk() as disk:
        with beginning(disk) as (daemon, faults):
            with attach(daemon.path, "queue", FLAGS) as connection, \
                    attach(daemon.path, "other") as other:
                armed = arm_fifty(connection)
                faults.lift(0)
                armed |= full(connection)
                ends = [connection.request(Record(CANCEL, id=number))
                        for number in list(armed)[:5]]
                assert [reply.status for reply in ends] == [0] * 5, ends
                armed -= {reply.id for reply in ends}
                assert other.request(arm(HOUR)).status == 0
            kill(daemon)
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            assert set(rows(connection)) == armed


def is_full(connection, armed):
    """Returns whether an ARM is refused. Else its timer is one more of those armed."""
    reply = connection.request(arm(HOUR, id=1 << 41))
    assert reply.status in (0, -errno.ENOSPC), reply
    if not reply.status:
        armed.add(reply.id)
    return reply.status


def test_the_reserve_holds_over_starts_without_space():
    """Each start goes on with what the life before had made ahead, or with its last
    segment. Nothing is made, so a file that another program has may grow."""
    with small_disk() as disk:
        with beginning(disk) as (daemon, faults):
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                armed = arm_fifty(connection)
                assert connection.request(arm(1, id=1 << 40)).status == 0
                faults.lift(0)
                connection.credit(1)
                assert connection.expiration().id == 1 << 40
                # Few ARMs until the disk is known to be full: the next segment is empty.
                assert wait_for(lambda: is_full(connection, armed))
            kill(daemon)
        with open(os.path.join(disk.folder, "other"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as reason:
                assert reason.errno == errno.ENOSPC, reason
        used = set()
        for life in range(12):
            before = disk.files()
            with disk.daemon(threads=1) as daemon:
                with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                    for number in list(armed)[:3]:
                        reply = connection.request(Record(CANCEL, id=number))
                        assert reply.status == 0, (life, error(reply.status))
                        armed.discard(number)
                    if not life:
                        connection.credit(1)
                        assert connection.expiration().id == 1 << 40
                        assert connection.request(Record(ACK, id=1 << 40)).status == 0
                    # It is full, as the first try to make a segment has shown.
                    assert wait_for(lambda: is_full(connection, armed))
                if life % 2:
                    kill(daemon)
            assert len(disk.files()) == len(before), (before, disk.files())
            used.add(before == disk.files())
        assert used == {False, True}, "one way to go on was not taken"
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            assert set(rows(connection)) == armed
            os.unlink(os.path.join(disk.folder, "other"))


def test_the_limit_of_the_journal_s_size():
    """What grows is refused at the limit; what ends timers goes on, and makes room."""
    nr = 140000
    with Disk("journal_size = %d\n" % (30 << 20)) as disk:
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            # Segments are made anew beside the checkpoint that frees others.
            for first in range(1, nr, 4000):
                replies = connection.batch([arm(HOUR, id=first + i) for i in range(4000)])
                assert {reply.status for reply in replies} <= {0, -errno.ENOSPC}
            assert wait_for(lambda: connection.request(
                arm(HOUR, id=1)).status == -errno.ENOSPC), connection.stat()
            assert wait_for(lambda: connection.stat().journal_checkpoints)
            stat = connection.stat()
            assert stat.journal_size > 30 << 20, stat
            assert stat.refused_journal and stat.journal_queues == 1, stat
            there = {row.id for row in connection.scan(4000)}
            assert stat.journal_timers == len(there) > 100000, (stat, len(there))
            moved = connection.request(Record(REFRESH, RELATIVE, id=1, deadline=HOUR))
            assert moved.status == -errno.ENOSPC, moved
            there = sorted(there)
            for first in range(0, len(there), 4000):
                replies = connection.batch([Record(CANCEL, id=number)
                                            for number in there[first:first + 4000]])
                assert {reply.status for reply in replies} == {0}
            assert wait_for(lambda: connection.request(
                arm(HOUR, id=7)).status == 0), connection.stat()
            assert connection.stat().journal_size < 30 << 20, connection.stat()
            kill(daemon)
        with disk.daemon(threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as connection:
            assert list(rows(connection)) == [7]
            assert connection.stat().journal_timers == 1, connection.stat()


tap.main()
