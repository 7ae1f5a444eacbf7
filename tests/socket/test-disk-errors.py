#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each call about the journal's files fails in turn, on both loops: nothing that was
answered is lost or undone, requests that wait get the error, other queues do not
notice, and the journal goes on in a new file."""

import concurrent.futures
import errno
import os
import resource
import tempfile
import time

import tap
from client import (ACK, CONSUME, HOUR, SCALE, WAIT, Closed, Connection, Record,
                    Refused, arm, attach, error, wait_for)
from daemon import ENGINE
from disk_faults import (LIST, LOOPS, MOST_STALL_S, NAMES, OPEN, READ, RENAME, SHORT, SYNC,
                         SYNC_NAMES, UNLINK, WRITE, Faults, fast_disk, settled)
from durable import (DOUBTFUL, FLAGS, MILLISECOND, Disk, Model, kill, limit_writes, rows,
                     without_signal)
from stalls import Stalls

# With the module each error comes from the journal as it does without: calls of one
# kind fail on both loops, the others on one.
SOME_LOOPS = LOOPS[:1] if ENGINE == "kernel" else LOOPS

# How many calls of a kind are tried, from the first to the last; and at once.
TRIES = int(os.environ.get("EXPIRY_TEST_TRIES", "3" if SCALE == 1 else "1"))
JOBS = min(8, 4 * os.cpu_count())
ROUNDS = 9


class Work:
    """A client's work with two durable queues and another one, until the kill."""

    def __init__(self, daemon, faults, seed):
        self.daemon = daemon
        self.faults = faults
        self.model = Model(seed, range(1, 61))
        self.errors = set()
        self.longest = 0        # seconds that a request to the other queue took
        self.armed = {}         # timers of the queue "due": by id, the deadline
        self.over = set()       # of these, those whose ACK was answered
        self.doubt = set()      # of these, those whose ACK may have been carried out

    def attach(self, name, flags):
        """Returns a connection once HELLO is accepted."""
        end = time.monotonic() + WAIT
        while True:
            connection = Connection(self.daemon.path)
            reply = connection.hello(name, flags)
            if not reply.status:
                return connection
            connection.close()
            assert reply.status in DOUBTFUL, error(reply.status)
            self.errors.add(reply.status)
            assert time.monotonic() < end, "it is not mended"
            time.sleep(0.05)

    def exchange(self, connection):
        """A round of requests, until one is served as a whole."""
        limit = time.monotonic() + WAIT
        while True:
            errors = self.model.exchange(connection, 40)
            if not errors:
                return
            self.errors |= errors
            assert time.monotonic() < limit, "it is not mended"
            time.sleep(0.02)

    def until(self, connection, request):
        """Sends a request until it is accepted. Returns its reply."""
        end = time.monotonic() + WAIT
        while True:
            reply = connection.request(request)
            if not reply.status:
                return reply
            assert reply.status in DOUBTFUL, reply
            self.errors.add(reply.status)
            assert time.monotonic() < end, "it is not mended"
            time.sleep(0.02)

    def shown(self, connection):
        """Returns the rows of a SCAN once it is accepted."""
        end = time.monotonic() + WAIT
        while True:
            try:
                return rows(connection)
            except Refused as refused:
                assert refused.status in DOUBTFUL, refused
                self.errors.add(refused.status)
            assert time.monotonic() < end, "it is not mended"
            time.sleep(0.02)

    def deliveries(self, connection, number):
        """Arms a timer, takes its expiration and acknowledges it, perhaps."""
        armed = self.until(connection, arm(MILLISECOND, number, id=number))
        due = connection.expiration()
        # An ARM that was refused may have been carried out.
        while due.deadline < armed.deadline:
            due = connection.expiration()
        assert due.id == number and due.deadline == armed.deadline, (due, armed)
        self.armed[number] = armed.deadline
        acked = connection.request(Record(ACK, id=number))
        if not acked.status:
            self.over.add(number)
        else:
            assert acked.status in DOUBTFUL, acked
            self.errors.add(acked.status)
            self.doubt.add(number)

    def run(self):
        with attach(self.daemon.path, "other") as other, \
                self.attach("queue", FLAGS) as queue, \
                self.attach("due", FLAGS | CONSUME) as due:
            due.credit(1000)
            for number in range(1, ROUNDS + 1):
                began = time.monotonic()
                assert other.request(arm(HOUR)).status == 0
                self.longest = max(self.longest, time.monotonic() - began)
                # There is a checkpoint after a failure only.
                if number % 3 == 0:
                    self.faults.fail(0, WRITE, 1, errno.EIO)
                # What rows show does not vanish, nor what it shows of those refused.
                if number % 3 == 0:
                    self.errors |= self.model.exchange(queue, 40)
                    self.model.check(self.shown(queue))
                self.exchange(queue)
                self.deliveries(due, number)
            self.exchange(queue)
            self.model.check(self.shown(queue))
            # Requests whose answer is not awaited.
            records = self.model.requests(200)
            self.model.send(records)
            queue.send(*records)

    def look(self, path):
        """Compares what a later daemon has."""
        with attach(path, "queue", FLAGS) as queue:
            self.model.check(rows(queue))
        with attach(path, "due", FLAGS | CONSUME) as due:
            due.credit(1000)
            found = rows(due)
            for number, deadline in self.armed.items():
                if number in self.over:
                    assert number not in found, "the ACK of %d is undone" % number
                elif number not in self.doubt:
                    assert found[number].deadline == deadline, found
            for _ in found:
                record = due.expiration()
                assert record.id in found and record.id not in self.over, record
                assert due.request(Record(ACK, id=record.id)).status == 0


def case(loop, call, number, reason, count=1):
    """Returns the client's work, and the calls of each kind."""
    with Faults() as faults, fast_disk() as disk:
        with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon:
            work = Work(daemon, faults, number)
            if call is not None:
                faults.fail(1, call, number, reason, count)
            before = faults.calls()
            work.run()
            calls = [b - a for a, b in zip(before, faults.calls())]
            kill(daemon)
        with disk.daemon(loop=loop, threads=1) as daemon:
            work.look(daemon.path)
            # Nothing unfinished is left.
            assert not [name for name in disk.files("") if name.endswith(".new")]
            kill(daemon)
    return work, calls


def spread(most, tries=TRIES):
    """Returns which of @most calls are tried: each, if there are no more than @tries."""
    count = min(most, tries)
    return sorted({1 + i * most // count for i in range(count)} | {most})


def cases(loop, call, reasons, count=1):
    """Tries calls of a kind. @count: how many fail in a row."""
    _, calls = case(loop, None, 1, 0)
    assert calls[call], "nothing is counted"
    refused, longest = set(), 0
    with Stalls() as stalls, concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        tried = {(number, reason): pool.submit(case, loop, call, number, reason, count)
                 for number in spread(calls[call]) for reason in reasons}
        for (number, reason), future in tried.items():
            try:
                work, _ = future.result()
            except (AssertionError, Closed) as problem:
                raise AssertionError("%s: %s %d of %d, %s: %r" % (
                    loop, NAMES[call], number, calls[call],
                    error(reason) if reason else "short", problem)) from problem
            refused |= work.errors
            longest = max(longest, work.longest)
        stall = stalls.worst()
    # An exchange is a row of wake-ups of two processes. Where each may come this late,
    # the time of a row tells nothing.
    if stall < MOST_STALL_S:
        assert longest < 1 + stall, "another queue waits for %.1f s, beside a stall of " \
            "%.1f s" % (longest, stall)
    else:
        print("# %s: another queue's wait is not judged: the machine stalls for %.1f s" %
              (loop, stall))
    print("# %s: %d runs for %d calls, refused with %s" % (
        loop, len(tried), calls[call], sorted(error(status) for status in refused)))
    # The failures that each of them has.
    assert -errno.EIO in refused, refused


def on_loops(*args, loops=SOME_LOOPS):
    for loop in loops:
        cases(loop, *args)


def test_each_call_is_tried_where_there_are_no_more_than_tries():
    for most in 1, 2, 9, 40, 500:
        every = list(range(1, most + 1))
        assert spread(most, 500) == spread(most, 1000000) == every
    assert spread(500, 2) == [1, 251, 500]


def test_a_write_fails():
    on_loops(WRITE, (errno.EIO, errno.ENOSPC, SHORT), loops=LOOPS)


def test_the_kernel_writes_a_part_of_a_block():
    """None of its requests is answered 0, and one answer follows each."""
    for loop in LOOPS:
        with tempfile.TemporaryDirectory() as folder, Disk() as disk:
            with disk.daemon(loop=loop, threads=1, program=without_signal(folder)) as daemon, \
                    attach(daemon.path, "queue", FLAGS) as queue:
                assert queue.request(arm(HOUR, id=1)).status == 0
                # What is there has less, and the block has more.
                limit_writes(daemon, 4 * 4096)
                replies = queue.batch([arm(HOUR, id=number) for number in range(2, 1000)])
                found = {reply.status for reply in replies}
                assert found <= {-errno.EIO, -errno.EFBIG}, found
                limit_writes(daemon, resource.RLIM_INFINITY)
                assert wait_for(lambda: queue.request(arm(HOUR, id=1000)).status == 0)
                kept = rows(queue)
                kill(daemon)
            with disk.daemon(loop=loop, threads=1) as daemon, \
                    attach(daemon.path, "queue", FLAGS) as queue:
                assert rows(queue) == kept


def test_a_sync_fails():
    on_loops(SYNC, (errno.EIO, errno.ENOSPC))


def test_an_open_fails():
    on_loops(OPEN, (errno.EIO, errno.ENOSPC))


def test_a_rename_fails():
    on_loops(RENAME, (errno.EIO, errno.ENOSPC))


def test_an_unlink_fails():
    on_loops(UNLINK, (errno.EIO,))


def test_a_sync_of_names_fails():
    on_loops(SYNC_NAMES, (errno.EIO, errno.ENOSPC))


def commit_fails(faults, queue):
    """Returns whether a commit fails, and not the journal's own write of that time or a
    segment's."""
    faults.fail(0, WRITE, 1, errno.EIO)
    return queue.request(arm(HOUR, id=1)).status == -errno.EIO


def leave_unfinished(disk):
    """Makes a file as a daemon leaves that is killed in a checkpoint."""
    with open(os.path.join(disk.folder, "checkpoint-00-%016x.new" % 1000), "wb"):
        pass


def starts(loop, call):
    """Lets each call of a start fail: it ends and says why, or serves all queues. The
    next one serves them."""
    ended = 0
    with Faults() as faults, fast_disk() as disk:
        with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon, \
                attach(daemon.path, "queue", FLAGS) as queue:
            # A checkpoint, and a segment behind it.
            assert wait_for(lambda: settled(faults))
            assert wait_for(lambda: commit_fails(faults, queue))
            assert wait_for(lambda: queue.request(arm(HOUR, id=1)).status == 0)
            kept = rows(queue)
            kill(daemon)
        before = faults.calls()[call]
        leave_unfinished(disk)
        with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon:
            calls = faults.calls()[call] - before
            kill(daemon)
        for number in spread(calls):
            leave_unfinished(disk)
            faults.fail(0, call, number, errno.EIO)
            daemon = disk.daemon(loop=loop, threads=1, environment=faults.environment)
            try:
                if daemon.wait_ready():
                    with attach(daemon.path, "queue", FLAGS) as queue:
                        assert rows(queue) == kept
                    kill(daemon)
                else:
                    assert daemon.process.wait(WAIT) > 0
                    assert "journal" in daemon.log(), daemon.log()
                    ended += 1
            finally:
                daemon.remove()
            faults.end()
            with disk.daemon(loop=loop, threads=1) as daemon, \
                    attach(daemon.path, "queue", FLAGS) as queue:
                assert rows(queue) == kept, "%s: %s %d of %d" % (
                    loop, NAMES[call], number, calls)
                kill(daemon)
    return calls, ended


def test_a_start_fails():
    for loop in SOME_LOOPS:
        for call in OPEN, READ, LIST, SYNC, SYNC_NAMES, UNLINK:
            calls, ended = starts(loop, call)
            print("# %s: %d calls of %s, %d starts ended" % (loop, calls, NAMES[call], ended))
            assert calls and ended


tap.main()
