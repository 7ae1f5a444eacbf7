#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A journal's disk that is full or takes no new files: what ends timers goes on in what is
left, to its end, and all goes on once there is space."""

import contextlib
import errno
import os
import select
import time

import tap
from client import CANCEL, HOUR, Record, arm, attach, wait_for
from disk_faults import EVER, HELD, LOOPS, OPEN, RENAME, Faults, fast_disk, on_both, settled
from durable import FLAGS, kill, rows

BLOCK = 4096            # bytes of a commit of one record


@contextlib.contextmanager
def held_file(loop, number):
    """A daemon with a durable queue of 4000 timers, the making of whose file @number takes
    until rule 0 is lifted. There is no space for it then."""
    with Faults() as faults, fast_disk() as disk:
        faults.fail(0, OPEN, number, HELD)
        faults.fail(1, RENAME, number, errno.ENOSPC, EVER)
        with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon, \
                attach(daemon.path, "queue", FLAGS) as queue:
            replies = queue.batch([arm(HOUR, id=1 + i) for i in range(4000)])
            assert {reply.status for reply in replies} == {0}, replies[0]
            yield disk, daemon, faults, queue


def waits(other, queue, ends):
    """Returns whether @other gets no answers, while a CANCEL of @queue does: it is not the
    machine that stands still."""
    if select.select([other.socket], [], [], 1)[0]:
        return False
    assert queue.request(Record(CANCEL, id=next(ends))).status == 0
    return not select.select([other.socket], [], [], 0)[0]


def test_arms_leave_the_reserve_before_the_disk_is_known_to_be_full():
    """A file takes long to make, so that nobody knows whether there is space for it."""
    for loop in LOOPS:
        with held_file(loop, 3) as (_, daemon, faults, queue):
            with attach(daemon.path, "queue", FLAGS) as other:
                arms = [arm(HOUR, id=1001 + i) for i in range(500)]
                ends = iter(range(1, 1001))
                other.send(*arms)
                while not waits(other, queue, ends):
                    assert {reply.status for reply in other.replies(len(arms))} == {0}
                    other.send(*arms)
                renames = faults.calls()[RENAME]
                faults.lift(0)
                assert wait_for(lambda: faults.calls()[RENAME] > renames)
                assert {reply.status for reply in other.replies(len(arms))} == {-errno.ENOSPC}
            for number in range(2001, 2101):
                assert queue.request(Record(CANCEL, id=number)).status == 0, number


def fill_by_cancels(queue):
    """Returns how many timers ended until there was no space at all."""
    for number in range(1, 4001):
        status = queue.request(Record(CANCEL, id=number)).status
        if status:
            assert status == -errno.ENOSPC, status
            return number - 1
    raise AssertionError("4000 timers have ended")


def test_the_reserve_is_used_to_its_end():
    with held_file(LOOPS[0], 3) as (disk, daemon, faults, queue):
        faults.lift(0)
        files = [os.stat(path).st_size for path in disk.files()]
        ended = fill_by_cancels(queue)
        # The 4000 arms took two blocks or more, and each file has a header.
        assert ended * BLOCK > sum(files) - (1 << 20), (ended, files)
        # A stop does not wait for space, either.
        assert daemon.end() == 0, daemon.log()
        daemon.end = lambda: 0
        # Nothing can be logged in a start that has no file of its own.
        with disk.daemon(loop=LOOPS[0], threads=1, environment=faults.environment) as again, \
                attach(again.path, "queue", FLAGS) as queue:
            assert set(rows(queue)) == set(range(ended + 1, 4001))
            assert queue.request(Record(CANCEL, id=ended + 1)).status == -errno.ENOSPC
            faults.end()
            assert wait_for(lambda: queue.request(arm(HOUR, id=1)).status == 0)
            kill(again)


def test_a_journal_that_has_just_begun_goes_on_when_there_is_space():
    """Of a start with a queue the first file is ready, and the second is not. Nothing has
    been written to them."""
    for loop in LOOPS:
        with Faults() as faults, fast_disk() as disk:
            more = {"loop": loop, "threads": 1, "environment": faults.environment}
            with disk.daemon(**more) as daemon, attach(daemon.path, "queue", FLAGS) as queue:
                assert queue.request(arm(HOUR, id=1)).status == 0
                kill(daemon)
            with disk.daemon(**more) as daemon, attach(daemon.path, "queue", FLAGS) as queue:
                assert wait_for(lambda: settled(faults))
                faults.fail(0, OPEN, 2, errno.ENOSPC, EVER)
                assert queue.request(arm(HOUR, id=1)).status == -errno.ENOSPC
                faults.end()
                assert wait_for(lambda: not queue.request(arm(HOUR, id=1)).status), \
                    daemon.log()


def test_a_full_disk_is_not_written_to_over_and_over():
    def check(daemon, faults):
        with attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            faults.fail(0, OPEN, 1, errno.ENOSPC, EVER)
            first, status = 2, 0
            while not status:
                replies = queue.batch([arm(HOUR, id=first + i) for i in range(20000)])
                status = min(reply.status for reply in replies)
                first += 20000
            assert status == -errno.ENOSPC, status
            before = faults.calls()
            for number in range(2, 40):
                assert queue.request(Record(CANCEL, id=number)).status == 0
                time.sleep(0.05)
            opens = faults.calls()[OPEN] - before[OPEN]
            assert opens < 12, "%d files in 2 s" % opens
            assert daemon.log().count("a checkpoint failed") <= 1, daemon.log()
            faults.end()
            assert wait_for(lambda: queue.request(arm(HOUR, id=2)).status == 0)
    on_both(check)


def write_over(queue, batches):
    """Arms the same timers over and over. Returns the statuses."""
    return {reply.status for _ in range(batches)
            for reply in queue.batch([arm(HOUR, id=1 + i) for i in range(4000)])}


def arm_until_refused(queue):
    """Arms the same timers, so that a checkpoint stays small. Returns the status."""
    while True:
        status = min(write_over(queue, 1))
        if status:
            return status


def test_a_disk_that_takes_no_new_file_is_told():
    """A file system that is read-only now, say: what is written still goes into the files
    that are there."""
    def check(daemon, faults):
        with attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            faults.fail(0, OPEN, 1, errno.EROFS, EVER)
            assert arm_until_refused(queue) == -errno.EROFS
            assert queue.request(Record(CANCEL, id=1)).status == -errno.EROFS
            assert "are refused until" in daemon.log(), daemon.log()
            faults.end()
            assert wait_for(lambda: queue.request(arm(HOUR, id=2)).status == 0)
    on_both(check)


def sizes(disk):
    return sum(os.stat(path).st_size for kind in ("journal", "checkpoint")
               for path in disk.files(kind))


def test_a_segment_that_fails_to_be_used_again_is_not_counted():
    with Faults() as faults, fast_disk() as disk:
        disk.config = "journal_size = %d\n" % (30 << 20)
        with disk.daemon(threads=1, environment=faults.environment) as daemon, \
                attach(daemon.path, "queue", FLAGS) as queue:
            for _ in range(4):
                before = faults.calls()[RENAME]
                # That of the checkpoint, and that of a segment which it has freed.
                faults.fail(0, RENAME, 2, errno.EIO)
                assert wait_for(lambda: write_over(queue, 5) == {0} and
                                faults.calls()[RENAME] > before + 2), daemon.log()
            assert wait_for(lambda: settled(faults) and
                            queue.stat().journal_size == sizes(disk)), \
                (queue.stat().journal_size, sizes(disk), disk.files())
            kill(daemon)


tap.main()
