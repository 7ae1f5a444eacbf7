# SPDX-License-Identifier: LGPL-2.1-or-later
"""Journals of daemons that are killed, and what clients know of a durable queue."""

import errno
import os
import random
import resource
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from client import (ACKING, ARM, CANCEL, DURABLE, HOUR, KEYED, QUERY, REFRESH, SIZE, WAIT, Record,
                    pack, unpack)
from daemon import LOOP, PROGRAM, Daemon

LATE = 16
FLAGS = DURABLE | KEYED | ACKING
MILLISECOND = 1_000_000
JOURNAL_QUEUE = 133  # of daemon/journal/format.h: whose rows follow

# What a request is answered with that the journal did not take, or lost: it may have
# been carried out.
DOUBTFUL = {-errno.EIO, -errno.ENOSPC, -errno.EFBIG}


class Mortal(Daemon):
    """A daemon that a test may kill."""

    def __exit__(self, kind, *_):
        if self.process.poll() == -signal.SIGKILL:
            self.remove()
        else:
            super().__exit__(kind, *_)


class Disk:
    """A folder for journals, and the daemons that use it one after the other."""

    def __init__(self, config=None, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="expiry-journal-")
        self.is_mine = folder is None
        self.config = config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.is_mine:
            shutil.rmtree(self.folder)

    def daemon(self, **more):
        return Mortal(self.config, options=["--journal", self.folder], **more)

    def files(self, kind="journal"):
        return sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder)
                      if name.startswith(kind + "-") and not name.endswith(".new"))


def blocks(path):
    """Yields offset and size of each block of a file."""
    with open(path, "rb") as file:
        data = file.read()
    offset = 0
    while data[offset:offset + 3] == b"EXJ":
        size = struct.unpack_from("<I", data, offset + 8)[0]
        yield offset, size
        offset += size


def named_by(path):
    """Returns which queues each block of a file says the rows behind are of."""
    with open(path, "rb") as file:
        data = file.read()
    counts = [(offset, struct.unpack_from("<I", data, offset + 12)[0])
              for offset, _ in blocks(path)]
    return [[record.id for record in unpack(data[offset + SIZE:offset + SIZE * (1 + count)])
             if record.op == JOURNAL_QUEUE] for offset, count in counts]


def refused(disk, text, threads=1):
    """Expects that a start from the journal is refused, with @text in the log."""
    run = subprocess.run([PROGRAM, "--engine", "embedded", "--loop", LOOP, "--socket",
                          os.path.join(disk.folder, "socket"), "--journal", disk.folder,
                          "--threads", str(threads)],
                         stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    assert run.returncode == 1 and text in run.stderr, run


def kill(daemon):
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()


def limit_writes(daemon, most):
    """Lets the daemon's writes to files fail behind so many bytes."""
    _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (most, hard))


def without_signal(folder):
    """Returns a program: the daemon, which no failed write ends."""
    program = os.path.join(folder, "program")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ntrap '' XFSZ\nexec '%s' \"$@\"\n" % PROGRAM)
    os.chmod(program, 0o700)
    return program


def rows(connection):
    return {row.id: row for row in connection.scan(100)}


def query(connection, number):
    return connection.request(Record(QUERY, id=number))


def state_of(record):
    return record.deadline, record.cookie, record.period


def after(request, state):
    """Returns a timer's state after a request, from that before, None = none."""
    if request.op == ARM:
        return state_of(request)
    if request.op == CANCEL or state is None:
        return None
    return (request.deadline,) + state[1:]


class Model:
    """What the one client that changes the timers @ids knows of them.

    @possible: by id, the states that the timer may have
    @waiting: requests without an answer, in their order
    """

    def __init__(self, seed, ids=range(1, 301)):
        self.random = random.Random(seed)
        self.ids = ids
        self.possible = {number: {None} for number in ids}
        self.waiting = []
        self.base = time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def requests(self, count):
        """Returns requests with absolute times, none of them due for an hour."""
        made = []
        for _ in range(count):
            op = self.random.choice((ARM, ARM, ARM, REFRESH, REFRESH, CANCEL))
            made.append(Record(
                op, id=self.random.choice(self.ids),
                deadline=self.base + self.random.randint(2, 1000) * HOUR
                if op != CANCEL else 0,
                cookie=self.random.getrandbits(60) if op == ARM else 0,
                period=self.random.choice((0, 0, 1000)) if op == ARM else 0))
        return made

    def send(self, records):
        self.waiting += records

    def answer(self, replies):
        for reply, request in zip(replies, self.waiting):
            assert (reply.op, reply.id) == (request.op, request.id), (reply, request)
            before = self.possible[request.id]
            if reply.status in DOUBTFUL:
                self.possible[request.id] = before | {after(request, s) for s in before}
            elif reply.status:
                assert reply.status == -errno.ENOENT and request.op != ARM, reply
                assert None in before, "%s is lost, it may be %s" % (reply, before)
                self.possible[request.id] = {None}
            elif request.op == CANCEL:
                assert before != {None}, "%s was never" % (reply,)
                self.possible[request.id] = {None}
            else:
                states = {after(request, s) for s in before if s or request.op == ARM}
                assert state_of(reply) in states, "%s was never, but %s" % (reply, states)
                self.possible[request.id] = {state_of(reply)}
        del self.waiting[:len(replies)]

    def check(self, found):
        """Compares all rows: the state is that after all requests with an answer and
        some number of the others, in their order."""
        states = {number: state_of(found[number]) if number in found else None
                  for number in self.ids}
        possible = dict(self.possible)
        wrong = {number for number in self.ids if states[number] not in possible[number]}
        first = sorted(wrong)[:3]
        for request in self.waiting:
            if not wrong:
                break
            number = request.id
            possible[number] = {after(request, s) for s in possible[number]}
            if states[number] in possible[number]:
                wrong.discard(number)
            else:
                wrong.add(number)
        assert not wrong, "lost, undone or never so: %s" % [
            (number, states[number], self.possible[number]) for number in first]
        self.possible = {number: {state} for number, state in states.items()}
        self.waiting = []

    def exchange(self, connection, count):
        """Sends requests and takes their answers, whose errors it returns."""
        records = self.requests(count)
        self.send(records)
        replies = connection.batch(records)
        self.answer(replies)
        return {reply.status for reply in replies} & DOUBTFUL


class Stream:
    """A connection that is served without waiting. @ended: by the daemon."""

    def __init__(self, connection):
        self.connection = connection
        self.rest = b""
        self.ended = False
        connection.socket.settimeout(0)

    def send(self, records):
        self.rest += pack(records)

    def serve(self):
        """Sends and receives what goes at once. Returns the records."""
        link = self.connection
        try:
            if self.rest:
                self.rest = self.rest[link.socket.send(self.rest):]
        except BlockingIOError:
            pass
        except (ConnectionResetError, BrokenPipeError):
            self.rest = b""
        try:
            data = link.socket.recv(1 << 20)
            self.ended = not data
            link.buffer += data
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.ended = True
        whole = len(link.buffer) // 32 * 32
        records, link.buffer = unpack(link.buffer[:whole]), link.buffer[whole:]
        return records


class Producer:
    """Changes timers that are not due, up to @most requests in flight.

    @progress: requests answered in this life of the daemon
    """

    def __init__(self, seed, ids=range(1, 301), most=2000):
        self.model = Model(seed, ids)
        self.most = most
        self.answered = 0

    def begin(self, connection):
        self.model.check(rows(connection))
        self.stream = Stream(connection)
        self.progress = 0

    def serve(self, sends):
        model = self.model
        if sends and len(model.waiting) < self.most:
            records = model.requests(model.random.randint(1, 300))
            model.send(records)
            self.stream.send(records)
        replies = self.stream.serve()
        model.answer(replies)
        self.progress += len(replies)
        self.answered += len(replies)


def work(daemon, parts, seconds):
    """Has @parts work for a time, and longer until each has seen progress: on a slow
    disk clients would starve otherwise. Then kills the daemon."""
    end = time.monotonic() + seconds
    limit = end + WAIT
    killed = False
    while not all(part.stream.ended for part in parts):
        if not killed and time.monotonic() > end and all(part.progress for part in parts):
            daemon.process.send_signal(signal.SIGKILL)
            killed = True
        assert killed or daemon.alive(), daemon.log()
        assert time.monotonic() < limit, "no progress: %s" % [
            part.progress for part in parts]
        for part in parts:
            part.serve(not killed)
        select.select([part.stream.connection.socket for part in parts
                       if not part.stream.ended], [], [], 0.002)
    daemon.process.wait()
