#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each call about the journal's files fails in turn, on both loops: nothing that was
answered is lost or undone, requests that wait get the error, other queues do not
notice, and the journal goes on in a new file."""

import concurrent.futures
import errno
import mmap
import os
import resource
import struct
import tempfile
import time

import tap
from client import (ACK, ACKING, CANCEL, CONSUME, DROP, HOUR, KEYED, SCALE, SCAN, WAIT,
                    Closed, Connection, Record, Refused, arm, attach, error, wait_for)
from daemon import ENGINE, ROOT, SHADOW, uring_refused
from declared import files, rows as declared_rows
from durable import (DOUBTFUL, FLAGS, MILLISECOND, Disk, Model, kill, limit_writes, rows,
                     without_signal)
from stalls import Stalls

PRELOAD = os.path.join(ROOT, "build", "tests", "socket", "fail-disk.so")
LOOPS = ("epoll",) if uring_refused() else ("io_uring", "epoll")
# With the module each error comes from the journal as it does without: calls of one
# kind fail on both loops, the others on one.
SOME_LOOPS = LOOPS[:1] if ENGINE == "kernel" else LOOPS

# As in fail-disk.c.
WRITE, SYNC, OPEN, RENAME, UNLINK, SYNC_NAMES, READ, LIST = range(8)
NAMES = ("write", "sync", "open", "rename", "unlink", "sync of names", "read", "list")
CALLS, RULES = 8, 4
SHORT = 0
EVER = 1 << 40
DELAY = 1 << 20         # and milliseconds

# How many calls of a kind are tried, from the first to the last; and at once.
TRIES = int(os.environ.get("EXPIRY_TEST_TRIES", "3" if SCALE == 1 else "1"))
JOBS = min(8, 4 * os.cpu_count())
ROUNDS = 9
MOST_STALL_S = 0.2      # of a machine on which waits are judged


class Faults:
    """What a daemon's calls are counted and fail by."""

    def __init__(self):
        if not os.path.exists(PRELOAD):
            raise tap.Skip("no %s: make check-socket builds it" % os.path.basename(PRELOAD))
        if SHADOW:
            raise tap.Skip("the sanitizer has calls of its own")
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(8 * (CALLS + 4 * RULES))
        self.map = mmap.mmap(self.file.fileno(), 8 * (CALLS + 4 * RULES))
        self.environment = {"LD_PRELOAD": PRELOAD, "EXPIRY_FAIL_DISK": self.file.name}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.map.close()
        self.file.close()

    def calls(self):
        return struct.unpack_from("%dQ" % CALLS, self.map)

    def fail(self, rule, call, number, reason, count=1):
        """Lets @count calls fail, from number @number from now on."""
        first = self.calls()[call] + number
        at = 8 * (CALLS + 4 * rule)
        # The range is empty while the rest is written.
        struct.pack_into("4Q", self.map, at, call, 1, 0, reason)
        struct.pack_into("Q", self.map, at + 16, first + count - 1)
        struct.pack_into("Q", self.map, at + 8, first)

    def end(self):
        for rule in range(RULES):
            struct.pack_into("4Q", self.map, 8 * (CALLS + 4 * rule), 0, 1, 0, 0)


def settled(faults):
    """Returns whether nothing was called for a while."""
    before = faults.calls()
    time.sleep(0.3)
    return faults.calls() == before


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


def fast_disk():
    """A disk in memory, if there is one: its errors are made here."""
    folder = tempfile.mkdtemp(prefix="expiry-journal-",
                              dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    disk = Disk(folder=folder)
    disk.is_mine = True
    return disk


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


def on_both(test):
    """Calls @test(daemon, faults) for a daemon on each loop."""
    for loop in LOOPS:
        with Faults() as faults, fast_disk() as disk, \
                disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon:
            test(daemon, faults)


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


def arm_until_refused(queue, first):
    """Arms timers from the id @first on. Returns the status of those that are refused."""
    while True:
        replies = queue.batch([arm(HOUR, id=first + i) for i in range(20000)])
        status = min(reply.status for reply in replies)
        if status:
            return status
        first += 20000


def test_a_disk_that_takes_no_new_file_is_told():
    """A file system that is read-only now, say: what is written still goes into the files
    that are there."""
    def check(daemon, faults):
        with attach(daemon.path, "queue", FLAGS) as queue:
            assert queue.request(arm(HOUR, id=1)).status == 0
            assert wait_for(lambda: settled(faults))
            faults.fail(0, OPEN, 1, errno.EROFS, EVER)
            assert arm_until_refused(queue, 2) == -errno.EROFS
            assert queue.request(Record(CANCEL, id=1)).status == -errno.EROFS
            assert "are refused until" in daemon.log(), daemon.log()
            faults.end()
            assert wait_for(lambda: queue.request(arm(HOUR, id=2)).status == 0)
    on_both(check)


def sizes(disk):
    return sum(os.stat(path).st_size for kind in ("journal", "checkpoint")
               for path in disk.files(kind))


def write_over(queue, batches):
    """Arms the same timers over and over. Returns the statuses."""
    return {reply.status for _ in range(batches)
            for reply in queue.batch([arm(HOUR, id=1 + i) for i in range(4000)])}


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


def test_a_stop_flushes_what_was_answered():
    for loop in LOOPS:
        with Faults() as faults, fast_disk() as disk:
            disk.config = "commit = 60000ms\n"
            with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon, \
                    attach(daemon.path, "queue", FLAGS) as queue:
                assert queue.request(arm(HOUR, id=1)).status == 0
                assert wait_for(lambda: settled(faults))
                assert queue.request(arm(HOUR, id=2)).status == 0
                before = faults.calls()[SYNC]
            assert faults.calls()[SYNC] > before, "%s: it is not flushed" % loop


def test_what_is_written_is_flushed_without_other_work():
    for loop in LOOPS:
        with Faults() as faults, fast_disk() as disk:
            disk.config = "commit = 100ms\n"
            with disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon, \
                    attach(daemon.path, "queue", FLAGS) as queue:
                assert queue.request(arm(HOUR, id=1)).status == 0
                assert wait_for(lambda: settled(faults))
                before = faults.calls()[SYNC]
                # The first is flushed at once, the second not until its time.
                assert queue.request(arm(HOUR, id=2)).status == 0
                assert wait_for(lambda: faults.calls()[SYNC] == before + 1, 2)
                assert queue.request(arm(HOUR, id=3)).status == 0
                assert wait_for(lambda: faults.calls()[SYNC] == before + 2, 2), \
                    "%s: it is not flushed" % loop


tap.main()
