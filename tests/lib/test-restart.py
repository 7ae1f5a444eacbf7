#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""EXPIRY_OPEN_RECONNECT while the daemon is killed and started again behind one
listening socket, as by systemd. The kernel's queues and durable ones survive. The
others of the embedded engine are lost, and the handle reports that."""

import ctypes
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                                      # noqa: E402
from client import (ACK, ARM, CANCEL, EXPIRED, HOUR, MONOTONIC,  # noqa: E402
                    QUERY, REDELIVERED, REFRESH, RELATIVE, SCALE, WAIT,
                    wait_for)
from daemon import ENGINE, ROOT, Daemon                         # noqa: E402

CTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build", "expiryctl"))
LIBRARY = os.environ.get("LIBEXPIRY",
                         os.path.join(os.path.dirname(CTL), "libexpiry.so.0"))
KILLS = int(os.environ.get("EXPIRY_TEST_KILLS", 200 // SCALE))

OPEN_CONSUME, OPEN_ACK, OPEN_DURABLE, OPEN_KEYED, OPEN_RECONNECT = 1, 2, 4, 8, 0x200
ENOENT, ESTALE, ECANCELED = 2, 116, 125
LATE = 16


class Record(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint8), ("flags", ctypes.c_uint8),
                ("status", ctypes.c_int16), ("period_ms", ctypes.c_uint32),
                ("id", ctypes.c_uint64), ("deadline_ns", ctypes.c_uint64),
                ("cookie", ctypes.c_uint64)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("queue", ctypes.c_char_p), ("clock_id", ctypes.c_uint32),
                ("credit", ctypes.c_uint32), ("window", ctypes.c_uint32),
                ("timeout_ms", ctypes.c_uint32), ("slack_ns", ctypes.c_uint64),
                ("limit", ctypes.c_uint64)]


class Handle:
    """A reconnecting handle of the library, on a keyed, acknowledging queue."""

    def __init__(self, path, queue, flags=0, credit=64):
        self.library = ctypes.CDLL(LIBRARY)
        self.handle = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options),
                          OPEN_CONSUME | OPEN_ACK | OPEN_KEYED | OPEN_RECONNECT |
                          flags, queue.encode(), MONOTONIC, credit, 0, WAIT * 1000, 0, 0)
        status = self.library.expiry_open(ctypes.byref(self.handle),
                                          b"unix:" + path.encode(),
                                          ctypes.byref(options))
        assert status == 0, status

    def submit(self, *records):
        """Returns the replies, or the errno."""
        array = (Record * len(records))(*records)
        done = self.library.expiry_submit(self.handle, array, len(records))
        assert done < 0 or done == len(records), done
        return list(array) if done >= 0 else done

    def receive(self, timeout_ms):
        """Returns expirations, or the errno."""
        array = (Record * 64)()
        nr = self.library.expiry_receive(self.handle, array, 64, timeout_ms)
        return list(array[:nr]) if nr >= 0 else nr

    def scan(self, cursor, most):
        """Returns the next cursor and ids, or the cursor and the errno."""
        array, place = (Record * most)(), ctypes.c_uint64(cursor)
        nr = self.library.expiry_scan(self.handle, ctypes.byref(place), array, most)
        return place.value, [r.id for r in array[:nr]] if nr >= 0 else nr

    def close(self):
        self.library.expiry_close(self.handle)


def arm(number, deadline_ns):
    return Record(op=ARM, flags=RELATIVE, id=number, deadline_ns=deadline_ns,
                  cookie=number)


class Service:
    """Does systemd's work for the daemon: holds socket and store, and starts the next
    daemon. @durable: with a journal"""

    def __init__(self, durable=False):
        self.folder = tempfile.TemporaryDirectory()
        self.journal = os.path.join(self.folder.name, "journal")
        self.options = ["--journal", self.journal] if durable else []
        os.mkdir(self.journal, 0o700)
        self.path = os.path.join(self.folder.name, "socket")
        self.listen = socket.socket(socket.AF_UNIX)
        self.listen.bind(self.path)
        self.listen.listen()
        self.stored = []
        self.daemon = None

    def start(self):
        self.daemon = Daemon(listen=self.listen, path=self.path,
                             stored=self.stored, options=self.options)
        assert self.daemon.wait_ready(), self.daemon.log()

    def kill(self):
        self.daemon.end(signal.SIGKILL)
        # Messages before its end count.
        manager = self.daemon.manager
        assert wait_for(lambda: not select.select([manager.socket], [], [],
                                                  0)[0])
        manager.pause()
        self.stored += manager.take_store()
        self.daemon.remove()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.daemon.remove()
        self.listen.close()
        for _, fd in self.stored:
            os.close(fd)
        self.folder.cleanup()


def restart_later(service, seconds):
    """Starts the daemon later. Returns the thread for that."""
    def run():
        time.sleep(seconds)
        service.start()
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_queue_goes_on_or_its_loss_is_told():
    with Service() as service:
        handle = Handle(service.path, "leases")
        replies = handle.submit(arm(1, HOUR), arm(2, 300 * 10**6))
        assert [r.status for r in replies] == [0, 0], replies
        service.kill()
        before = time.monotonic()
        thread = restart_later(service, 0.5)
        # Sent while no daemon accepts on the socket.
        replies = handle.submit(Record(op=QUERY, id=1))
        assert time.monotonic() - before >= 0.5
        if ENGINE == "kernel":
            assert replies[0].status == 0 and replies[0].cookie == 1
            due = handle.receive(WAIT * 1000)
            assert [r.id for r in due] == [2], due
        else:
            assert replies == -ESTALE, replies
            assert handle.receive(0) == -ESTALE
        thread.join()
        handle.close()


def test_watch_goes_on_or_tells():
    with Service() as service:
        def ctl(*arguments):
            return subprocess.check_output(
                [CTL, "--socket", service.path, "--queue", "watched", "--ack",
                 *arguments], text=True, stderr=subprocess.STDOUT)
        ctl("arm", "+1ms", "1")
        watch = subprocess.Popen([CTL, "--socket", service.path, "--queue",
                                  "watched", "watch", "--count", "2"],
                                 text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        assert watch.stdout.readline()
        service.kill()
        service.start()
        if ENGINE == "kernel":
            ctl("arm", "+1ms", "2")
            said = watch.communicate(timeout=WAIT)[0]
            assert watch.returncode == 0 and said.count("\n") == 1, said
        else:
            said = watch.communicate(timeout=WAIT)[0]
            assert watch.returncode == 1 and "was lost" in said, said


def test_durable_queue_goes_on():
    with Service(durable=True) as service:
        # With credit for one: number 6 does not come along where the machine is slow.
        handle = Handle(service.path, "leases", OPEN_DURABLE, credit=1)
        replies = handle.submit(*(arm(number, HOUR) for number in range(1, 6)),
                                arm(6, 300 * 10**6), arm(7, 0))
        assert all(r.status == 0 for r in replies), replies
        assert [r.id for r in handle.receive(WAIT * 1000)] == [7]
        service.kill()
        thread = restart_later(service, 0.5)
        # Sent while no daemon accepts on the socket.
        replies = handle.submit(Record(op=QUERY, id=1), arm(2, 2 * HOUR),
                                Record(op=REFRESH, flags=RELATIVE, id=3,
                                       deadline_ns=3 * HOUR))
        assert [r.status for r in replies] == [0, 0, 0], replies
        due = []
        while len(due) < 2:
            due += handle.receive(WAIT * 1000)
        # Number 7 was delivered before; number 6 came due without a daemon.
        assert [r.id for r in due] == [7, 6], due
        assert due[0].flags == LATE | REDELIVERED and due[1].flags & LATE, due
        replies = handle.submit(*(Record(op=ACK, id=r.id) for r in due))
        assert [r.status for r in replies] == [0, 0]
        thread.join()
        handle.close()


def test_a_scan_ends_with_the_slots_of_a_durable_queue():
    """The next daemon has the timers in other slots: some are before the cursor."""
    with Service(durable=True) as service:
        handle = Handle(service.path, "leases", OPEN_DURABLE)
        replies = handle.submit(*(arm(number, HOUR) for number in range(1, 21)))
        assert all(r.status == 0 for r in replies), replies
        replies = handle.submit(*(Record(op=CANCEL, id=n) for n in range(1, 6)))
        assert all(r.status == 0 for r in replies), replies
        cursor, ids = handle.scan(0, 5)
        assert cursor and len(ids) == 5, (cursor, ids)
        service.kill()
        thread = restart_later(service, 0)
        after, more = handle.scan(cursor, 50)
        if ENGINE == "kernel":      # the module keeps the queue with its slots
            assert not after and sorted(ids + more) == list(range(6, 21)), more
        else:
            assert (after, more) == (cursor, -ECANCELED), (after, more)
        cursor, ids = handle.scan(0, 50)
        assert not cursor and sorted(ids) == list(range(6, 21)), (cursor, ids)
        thread.join()
        handle.close()


class Program:
    """Arms, refreshes, receives and acknowledges, and remembers."""

    def __init__(self, path, flags):
        self.handle = Handle(path, "kills", flags)
        self.random = random.Random(1)
        self.last = 0
        self.deadlines = {}
        self.seen = {}

    def send(self):
        records = []
        for _ in range(self.random.randrange(1, 40)):
            self.last += 1
            records.append(arm(self.last, self.random.randrange(200 * 10**6)))
        if self.last > 100:
            records.append(Record(op=REFRESH, flags=RELATIVE,
                                  id=self.last + 1 - len(records),
                                  deadline_ns=100 * 10**6))
        replies = self.handle.submit(*records)
        assert isinstance(replies, list), replies
        for reply in replies:
            if reply.status == 0:
                self.deadlines[reply.id] = reply.deadline_ns
            else:
                assert (reply.op, reply.status) == (REFRESH, -ENOENT), \
                    (reply.op, reply.status)

    def take(self, timeout_ms):
        due = self.handle.receive(timeout_ms)
        assert isinstance(due, list), due
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        acks = []
        for record in due:
            assert record.op == EXPIRED and record.deadline_ns <= now
            times = self.seen.setdefault(record.id, [0, 0])
            times[bool(record.flags & REDELIVERED)] += 1
            acks.append(Record(op=ACK, id=record.id))
        replies = self.handle.submit(*acks)
        assert isinstance(replies, list), replies
        assert all(r.status in (0, -ENOENT) for r in replies)


def kill_again_and_again(durable, kills):
    problems = []

    def kill_often(service, done):
        moments = random.Random(2)
        try:
            for _ in range(kills):
                time.sleep(moments.random() * 0.15)
                service.kill()
                service.start()
        except BaseException as problem:            # pass it to the test
            problems.append(problem)
        done.set()

    with Service(durable) as service:
        program = Program(service.path, OPEN_DURABLE if durable else 0)
        done = threading.Event()
        thread = threading.Thread(target=kill_often, args=(service, done))
        thread.start()
        while not done.is_set():
            program.send()
            program.take(5)
        thread.join()
        assert not problems, problems
        assert wait_for(lambda: program.take(100) or
                        len(program.seen) == len(program.deadlines))
        assert program.seen.keys() == program.deadlines.keys()
        twice = [number for number, times in program.seen.items()
                 if times[0] > 1]
        assert not twice, twice
        print("# %d kills, %d timers" % (kills, len(program.seen)))
        program.handle.close()


def test_killed_again_and_again():
    if ENGINE != "kernel":
        raise tap.Skip("needs the kernel engine")
    kill_again_and_again(False, KILLS)


def test_durable_killed_again_and_again():
    kill_again_and_again(True, (KILLS + 7) // 8)


if __name__ == "__main__":
    tap.main()
