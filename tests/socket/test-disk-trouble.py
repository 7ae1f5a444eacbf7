#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A journal's disk that is slow or fails: who waits, who does not, what each is answered,
and that all of it goes on once the disk does."""

import contextlib
import errno
import os
import time

import tap
from client import (ACK, ACKING, CONSUME, DROP, HOUR, KEYED, SCAN, Connection,
                    Record, Refused, arm, attach, wait_for)
from daemon import ENGINE
from declared import files, rows as declared_rows
from disk_faults import (DELAY, EVER, HELD, LOOPS, MOST_STALL_S, OPEN, RENAME, SYNC, WRITE, Faults,
                         fast_disk, on_both, settled)
from durable import FLAGS, MILLISECOND, kill, rows
from stalls import Stalls


def test_a_write_that_would_have_to_wait_is_sent_again():
    if LOOPS[0] != "io_uring":
        raise tap.Skip("only the kernel's ring tries without waiting")
    with Faults() as faults, fast_disk() as disk:
        with disk.daemon(loop="io_uring", threads=1, environment=faults.environment) as \
                daemon, attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            faults.fail(0, WRITE, 1, errno.EAGAIN)
            for number in range(2, 10):
                assert queue.request(arm(HOUR, id=number)).status == 0
            assert "are refused until" not in daemon.log(), daemon.log()
            # Once it may wait, that is a failure, and not an answer for later.
            faults.fail(0, WRITE, 1, errno.EAGAIN)
            assert queue.request(arm(HOUR, id=10)).status == -errno.EIO
            assert wait_for(lambda: "are served again" in daemon.log())
            assert queue.request(arm(HOUR, id=11)).status == 0
            kill(daemon)
        with disk.daemon(loop="io_uring", threads=1) as daemon, \
                attach(daemon.path, "queue", FLAGS) as queue:
            assert rows(queue).keys() - {10} == {*range(1, 10), 11}, daemon.log()


def test_it_is_mended_soon_on_a_daemon_without_other_work():
    def check(daemon, faults):
        with attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            # The next segments cannot be made, and then a checkpoint can't, once each.
            faults.fail(0, WRITE, 1, errno.EIO)
            faults.fail(1, OPEN, 1, errno.EIO, 2)
            assert queue.request(arm(HOUR, id=2)).status == -errno.EIO
            # A request would wake it. Without a timeout of the journal it wakes within
            # ten seconds.
            assert wait_for(lambda: "are served again" in daemon.log(), 5)
            assert queue.request(arm(HOUR, id=2)).status == 0
    on_both(check)


def test_hello_is_answered_at_once_while_the_journal_fails():
    """With an error and the end, if it would make a queue; one that is durable can be
    attached to, and its timers come."""
    took = []

    def hello(daemon, name, status):
        began = time.monotonic()
        with Connection(daemon.path) as connection:
            assert connection.hello(name, FLAGS).status == status
            if status:
                assert not connection.ended()
        took.append((time.monotonic() - began, name))

    def check(daemon, faults):
        faults.fail(0, OPEN, 1, errno.EIO, 2)
        for _ in range(3):
            hello(daemon, "early", -errno.EIO)
        assert wait_for(lambda: accepted_durable(daemon, "early"))
        with attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(200 * MILLISECOND, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            faults.fail(0, WRITE, 1, errno.EIO, EVER)
            assert queue.request(arm(HOUR, id=2)).status == -errno.EIO
            for _ in range(5):
                hello(daemon, "late", -errno.EIO)
                hello(daemon, "queue", 0)
        with attach(daemon.path, "queue", FLAGS | CONSUME) as queue:
            queue.credit(1)
            assert queue.expiration().id == 1
            assert queue.request(Record(ACK, id=1)).status == -errno.EIO
        faults.end()
        assert wait_for(lambda: accepted_durable(daemon, "late"))

    with Stalls() as stalls:
        on_both(check)
        stall = stalls.worst()
    assert max(took)[0] < 1 + 3 * stall, "%s has to wait %.1f s, beside a stall of " \
        "%.1f s" % (max(took)[1], max(took)[0], stall)


def test_queues_are_made_and_dropped_while_a_block_is_full():
    """They wait for the commit before it. A delay in the ring would hold the loop."""
    with Faults() as faults, fast_disk() as disk, \
            disk.daemon(loop="epoll", threads=1, environment=faults.environment) as daemon:
        ended = attach(daemon.path, "ended", FLAGS)
        with attach(daemon.path, "queue", FLAGS) as queue, ended:
            others = [attach(daemon.path, "queue", FLAGS) for _ in range(40)]
            assert wait_for(lambda: settled(faults))
            before = faults.calls()[WRITE]
            faults.fail(0, WRITE, 1, DELAY + 5000)
            queue.send(arm(HOUR, id=1))
            assert wait_for(lambda: faults.calls()[WRITE] > before)
            # More than a block of 2 MiB has: each has so many in flight.
            for number, other in enumerate(others):
                other.send(*[arm(HOUR, id=4096 * number + i + 2) for i in range(4096)])
            ended.send(Record(DROP))
            with Connection(daemon.path) as made:
                assert made.hello("made", FLAGS).status == 0
            assert ended.reply().status == 0
            for other in others:
                other.close()


CLIENTS = 400           # more than the daemon has buffers for requests


def listings_wait(queue, _):
    """Each has a buffer for its reply."""
    queue.send(*[Record(SCAN, period=1)] * 600)


def replies_wait(_, others):
    for other in others:
        other.send(arm(HOUR, id=1))


def requests_wait(_, others):
    """Behind a full block."""
    for number, other in enumerate(others):
        other.send(*[arm(HOUR, id=1)] * (4096 if number < 40 else 1))


def test_other_queues_do_not_wait_with_those_that_await_the_disk():
    """Neither requests nor replies of theirs take the buffers that all clients share."""
    for begin in (listings_wait, replies_wait, requests_wait):
        with Faults() as faults, fast_disk() as disk, Stalls() as stalls, \
                disk.daemon(loop="epoll", threads=1, environment=faults.environment) as daemon:
            with attach(daemon.path, "queue", FLAGS) as queue, \
                    attach(daemon.path, "other", CONSUME) as other:
                others = [attach(daemon.path, "queue", FLAGS) for _ in range(CLIENTS)]
                other.credit(1)
                assert wait_for(lambda: settled(faults))
                before = faults.calls()[WRITE]
                faults.fail(0, WRITE, 1, DELAY + 5000)
                queue.send(arm(HOUR, id=2))
                assert wait_for(lambda: faults.calls()[WRITE] > before)
                begin(queue, others)
                time.sleep(0.2)
                began = time.monotonic()
                assert other.request(arm(MILLISECOND)).status == 0
                other.expiration()
                waited, stall = time.monotonic() - began, stalls.worst()
                assert queue.reply().status == 0
                for one in others:
                    one.close()
        assert waited < 1 + stall or stall > MOST_STALL_S, \
            "%s: another queue waits for %.1f s" % (begin.__name__, waited)


BLOCK = 65536 - 1 - 3 - 1   # records that fit one, beside its head, the clock and QUEUE
DECLARED = {"owner": os.getuid(), "clock": "monotonic", "keyed": "yes", "ack": "yes",
            "durable": "yes"}


def fill_block(daemon, faults, others, count):
    """Begins a write that takes a second, and sends the next block @count records."""
    assert wait_for(lambda: settled(faults))
    before = faults.calls()[WRITE]
    faults.fail(0, WRITE, 1, DELAY + 1000)
    others[0].send(arm(HOUR, id=10**6))
    assert wait_for(lambda: faults.calls()[WRITE] > before)
    for number, other in enumerate(others):
        part = range(4096 * number, min(4096 * (number + 1), count))
        other.send(*[arm(HOUR, id=i + 1) for i in part])


def test_declared_queues_are_made_while_a_block_is_full():
    """A file made them durable; the client does not ask for it."""
    with Faults() as faults, fast_disk() as disk, files() as at:
        disk.config = at.config()
        with disk.daemon(loop="epoll", threads=1, environment=faults.environment) as daemon:
            others = [attach(daemon.path, "queue", FLAGS) for _ in range(20)]
            fill_block(daemon, faults, others, 20 * 4096)
            at.write("made", **DECLARED)
            daemon.reload()
            with Connection(daemon.path) as made:
                assert made.hello("made", KEYED | ACKING).status == 0
                assert made.stat().durable
            assert "cannot be made" not in daemon.log(), daemon.log()
            for other in others:
                other.close()


def test_a_drop_in_a_block_that_is_almost_full_makes_the_declared_queue_anew():
    with Faults() as faults, fast_disk() as disk, files() as at:
        disk.config = at.config()
        at.write("ended", **DECLARED)
        with disk.daemon(loop="epoll", threads=1, environment=faults.environment) as daemon:
            others = [attach(daemon.path, "queue", FLAGS) for _ in range(16)]
            for left in range(6):
                with attach(daemon.path, "ended", FLAGS) as ended:
                    fill_block(daemon, faults, others, BLOCK - left)
                    assert ended.request(Record(DROP)).status == 0
                assert "ended" in declared_rows(daemon), (left, daemon.log())
                for other in others:
                    other.close()
                others = [attach(daemon.path, "queue", FLAGS) for _ in range(16)]
            assert "cannot be made" not in daemon.log(), daemon.log()
            for other in others:
                other.close()


def test_what_a_kept_queue_shows_is_durable():
    """The module may have more than the journal: after the failure of a commit, here."""
    if ENGINE != "kernel":
        raise tap.Skip("it is about the module's queues")
    with Faults() as faults, fast_disk() as disk:
        more = {"loop": LOOPS[0], "threads": 1, "environment": faults.environment}
        with disk.daemon(**more) as daemon, attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            faults.fail(0, WRITE, 1, errno.EIO, EVER)
            assert queue.request(arm(HOUR, id=2)).status == -errno.EIO
            kill(daemon)
            stored = daemon.manager.take_store()
        faults.end()
        # No checkpoint stands for some time.
        faults.fail(0, RENAME, 2, DELAY + 3000, EVER)
        with disk.daemon(stored=stored, **more) as daemon:
            for _, fd in stored:
                os.close(fd)
            shown = {}
            with Connection(daemon.path) as queue:
                queue.socket.settimeout(1)
                try:
                    assert queue.hello("queue", FLAGS).status == 0
                    shown = rows(queue)
                except (AssertionError, Refused):
                    pass
            kill(daemon)
        faults.end()
        with disk.daemon(**more) as daemon, attach(daemon.path, "queue", FLAGS) as queue:
            found = rows(queue)
            assert 1 in found and set(shown) <= set(found), (shown, found)
            kill(daemon)


def test_a_kept_queue_that_was_not_made_is_durable_with_the_next_daemon():
    """Its creation failed, or the daemon ended before that was on the disk."""
    if ENGINE != "kernel":
        raise tap.Skip("it is about the module's queues")
    with Faults() as faults, fast_disk() as disk:
        more = {"loop": LOOPS[0], "threads": 1, "environment": faults.environment}
        with disk.daemon(**more) as daemon:
            assert accepted_durable(daemon, "first")
            assert wait_for(lambda: settled(faults))
            faults.fail(0, WRITE, 1, errno.EIO, EVER)
            with Connection(daemon.path) as queue:
                assert queue.hello("second", FLAGS).status == -errno.EIO
            assert wait_for(lambda: len(daemon.manager.names()) == 2)
            kill(daemon)
            stored = daemon.manager.take_store()
        faults.end()
        assert len(stored) == 2, stored
        with disk.daemon(stored=stored, **more) as daemon:
            for _, fd in stored:
                os.close(fd)
            with attach(daemon.path, "second", FLAGS) as queue:
                assert queue.request(arm(HOUR, id=7)).status == 0
            kill(daemon)
        with disk.daemon(**more) as daemon, attach(daemon.path, "second", FLAGS) as queue:
            assert list(rows(queue)) == [7]
            kill(daemon)


def accepted_durable(daemon, name):
    with Connection(daemon.path) as connection:
        return connection.hello(name, FLAGS).status == 0


@contextlib.contextmanager
def flushed_by(interval, loop):
    """A daemon that flushes once in that time, its faults and a client, none of them busy."""
    with Faults() as faults, fast_disk() as disk:
        disk.config = "commit = %s\n" % interval
        with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon, \
                attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            yield daemon, faults, queue


def test_a_stop_flushes_what_was_answered():
    for loop in LOOPS:
        with flushed_by("60000ms", loop) as (daemon, faults, queue):
            assert queue.request(arm(HOUR, id=2)).status == 0
            before = faults.calls()[SYNC]
            assert daemon.end() == 0, daemon.log()
            daemon.end = lambda: 0
            assert faults.calls()[SYNC] > before, "%s: it is not flushed" % loop


def test_what_is_written_is_flushed_without_other_work():
    for loop in LOOPS:
        with flushed_by("100ms", loop) as (_, faults, queue):
            before = faults.calls()[SYNC]
            # The first is flushed at once, the second not until its time.
            assert queue.request(arm(HOUR, id=2)).status == 0
            assert wait_for(lambda: faults.calls()[SYNC] == before + 1, 2)
            assert queue.request(arm(HOUR, id=3)).status == 0
            assert wait_for(lambda: faults.calls()[SYNC] == before + 2, 2), \
                "%s: it is not flushed" % loop


def test_a_flush_waits_for_no_new_file():
    for loop in LOOPS:
        with flushed_by("100ms", loop) as (_, faults, queue):
            opens = faults.calls()[OPEN]
            faults.fail(0, OPEN, 1, HELD)
            while faults.calls()[OPEN] == opens:
                replies = queue.batch([arm(HOUR, id=1 + i) for i in range(4000)])
                assert {reply.status for reply in replies} == {0}
            before = faults.calls()[SYNC]
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: faults.calls()[SYNC] > before, 2), loop
            faults.lift(0)


tap.main()
