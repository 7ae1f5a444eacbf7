#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A batch that fails after some of its records: those that were done say so,
and only those are counted."""

import errno

import tap
from client import CANCEL, HOUR, KEYED, QUERY, Record, arm, attach
from daemon import ENGINE
from durable import FLAGS, Disk, kill, rows


def test_records_that_were_done_keep_their_statuses():
    with tap.slow(50, fail_after=3) as daemon, \
            attach(daemon.path) as queue, attach(daemon.path) as other:
        queue.send(*(arm(HOUR, i, period=7) for i in range(10)))
        replies = queue.replies(10)
        assert [r.status for r in replies] == [0] * 3 + [-errno.EIO] * 7, \
            replies
        for reply in replies[:3]:
            assert reply.id and reply.deadline > HOUR, reply
            got = queue.request(Record(QUERY, id=reply.id))
            assert got.status == 0 and got.cookie == reply.cookie, got
        # A record that was not processed returns unchanged.
        for i, reply in enumerate(replies[3:], 3):
            assert reply == arm(HOUR, i, period=7, status=-errno.EIO), reply
        assert queue.stat().armed == 3
        # The next batch is none the worse for it, nor are others.
        assert queue.request(arm(HOUR)).status == 0
        assert other.request(arm(HOUR)).status == 0


def test_refusals_among_what_was_done_stay_refusals():
    with tap.slow(50, fail_after=3) as daemon, \
            attach(daemon.path, flags=KEYED) as queue:
        queue.send(arm(HOUR, 1, id=1), Record(CANCEL, id=9),
                   arm(HOUR, 2, id=2), Record(CANCEL, id=1),
                   arm(HOUR, 3, id=3))
        assert [r.status for r in queue.replies(5)] == \
            [0, -errno.ENOENT, 0, -errno.EIO, -errno.EIO]
        assert {row.id for row in queue.scan(10)} == {1, 2}


def test_only_what_was_done_is_charged_to_the_user():
    with tap.slow(50, "timers_per_user = 5\n", fail_after=3) as daemon, \
            attach(daemon.path) as queue:
        queue.send(*(arm(HOUR, i) for i in range(5)))
        assert [r.status for r in queue.replies(5)] == \
            [0] * 3 + [-errno.EIO] * 2
        queue.send(arm(HOUR), arm(HOUR))
        assert [r.status for r in queue.replies(2)] == [0, 0]
        assert queue.request(arm(HOUR)).status == -errno.EDQUOT


def test_the_journal_has_what_was_done():
    """A durable queue's batch goes to the module by a call that blocks."""
    if ENGINE != "kernel":
        raise tap.Skip("the embedded engine carries out all of a batch")
    preload = tap.preload("fail-submit.so", "the sanitizer has ioctl() of its own")
    with Disk() as disk:
        with disk.daemon(threads=1, environment={"LD_PRELOAD": preload,
                                                 "EXPIRY_FAIL_AFTER": "3"}) as daemon, \
                attach(daemon.path, "queue", FLAGS) as queue:
            queue.send(*(arm(HOUR, i, id=i) for i in range(1, 6)))
            assert [r.status for r in queue.replies(5)] == [0] * 3 + [-errno.EIO] * 2
            queue.send(Record(CANCEL, id=1), Record(CANCEL, id=9), Record(CANCEL, id=2),
                       Record(CANCEL, id=3))
            assert [r.status for r in queue.replies(4)] == \
                [0, -errno.ENOENT, 0, -errno.EIO]
            assert list(rows(queue)) == [3]
            kill(daemon)
        # The module's queue is gone: this is what the journal has.
        with disk.daemon(threads=1) as daemon, attach(daemon.path, "queue", FLAGS) as queue:
            assert list(rows(queue)) == [3]


if __name__ == "__main__":
    tap.main()
