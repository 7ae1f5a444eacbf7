#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/run: alone, because a daemon that gets no processor for long takes more memory.
"""Nothing needless in the steady state: one io_uring_enter() a turn and no other
system call, however many connections are ready; no memory asked for or given
back. With the epoll loop a turn is one epoll_wait(), and each message one more
call."""

import collections
import mmap
import os
import re
import signal
import struct
import subprocess
import tempfile
import time

import tap
from client import (CANCEL, CONSUME, HOUR, REFRESH, SIZE, WAIT, arm,
                    attach, pack, scaled, wait_for)
from daemon import ENGINE, LOOP, THREADS, Daemon, uring_refused
from durable import FLAGS, Disk
from strace import Trace

BATCH = 512
CALLS = ("malloc", "calloc", "realloc", "free", "aligned_alloc", "mmap",
         "munmap", "madvise")

# Calls from requests to answers: the module is asked by one of its own. Where
# timers are due it is another to read them.
TURNS = 1 if ENGINE == "embedded" else 2
TURNS_DUE = 1 if ENGINE == "embedded" else 3

# What begins a turn.
EPOLL = LOOP == "epoll" or LOOP == "auto" and uring_refused()
TURN = "epoll_wait" if EPOLL else "io_uring_enter"

# The daemon tells the service manager how it is that often, in a few calls. Only
# on a slow machine does a test take so long.
STATUS_S = 10
STATUS_CALLS = 40

# Where the kernel's clock cannot be read from memory, asking it is a call.
CLOCK = "clock_gettime"


class Traffic:
    """Batches over one connection: what comes back goes out again, changed."""

    def __init__(self, connection):
        self.connection = connection
        self.arms = pack([arm(HOUR + i * 1000, i) for i in range(BATCH)])

    def trip(self, data):
        self.connection.socket.sendall(data)
        answer = bytearray(self.connection.take(len(data)))
        assert not any(answer[2::SIZE]) and not any(answer[3::SIZE]), "refused"
        return answer

    def change(self, answer, op, flags=0):
        """Requests for the same timers."""
        count = len(answer) // SIZE
        answer[0::SIZE] = bytes([op]) * count
        answer[1::SIZE] = bytes([flags]) * count
        return answer

    def life(self):
        """Arm, refresh and cancel a batch of timers."""
        timers = self.trip(self.arms)
        timers = self.trip(self.change(timers, REFRESH))
        self.trip(self.change(timers, CANCEL))

    def settle(self):
        """Until the daemon has all the memory this will ever take."""
        for _ in range(100):
            self.life()


# ------------------------------------------------------------------------
# System calls


class SystemCalls(Trace):
    """The system calls of a daemon while the with statement lasts."""

    def __init__(self, daemon):
        super().__init__(daemon)
        self.started = daemon.started
        # It sleeps, and being traced or stopped has it begin that anew.
        wait_for(daemon.log_thread)     # it names itself when it first runs
        self.log_thread = daemon.log_thread()[0]
        self.calls = collections.Counter()

    def __exit__(self, *_):
        super().__exit__()
        for line in self.lines:
            call = re.match(r"(\d+) +(\w+)\(", line)
            if call and (int(call[1]), call[2]) != (self.log_thread, "futex"):
                self.calls[call[2]] += 1
        self.calls.pop(CLOCK, None)
        self.statuses = int((time.monotonic() - self.started) // STATUS_S)

    def check(self, most, received, sent, queues=1):
        """Nothing but turns and statuses, no more than @most turns, and with epoll
        no more than these messages, each in one piece. @queues: there are so many"""
        turns = self.calls.pop(TURN, 0)
        if EPOLL:
            number = self.calls.pop("recvfrom")
            assert number <= received, "%d received" % number
            number = self.calls.pop("sendto")
            assert number <= sent, "%d sent" % number
            # A batch's ioctl, and each queue's for a status; for expirations a read,
            # another that finds no more, and the poll once more.
            if ENGINE == "kernel":
                for call, limit in (("ioctl", received + self.statuses * queues),
                                    ("preadv2", sent), ("epoll_ctl", sent)):
                    number = self.calls.pop(call, 0)
                    assert number <= limit, "%d of %s" % (number, call)
        others = sum(self.calls.values())
        assert others <= self.statuses * STATUS_CALLS, dict(self.calls)
        most += self.statuses * STATUS_CALLS
        assert 0 < turns <= most, "%d turns, at most %d" % (turns, most)


def test_a_batch_takes_one_system_call():
    batches = scaled(300, 30)
    with Daemon() as daemon, attach(daemon.path) as connection:
        traffic = Traffic(connection)
        traffic.settle()
        with SystemCalls(daemon) as trace:
            for _ in range(batches // 3):
                traffic.life()
        # Now and then work is left over for another turn.
        trace.check(TURNS * (batches + batches // 10 + 5),
                    2 * batches, batches)


def test_a_durable_request_takes_two_system_calls():
    """One submits its commit, and one the answer. The write's end is no turn."""
    requests = scaled(300, 30)
    with Disk() as disk, disk.daemon(threads=1) as daemon:
        with attach(daemon.path, "queue", FLAGS) as connection:
            for number in range(1, requests):
                assert connection.request(arm(HOUR, id=number)).status == 0
            with Trace(daemon, "-e", "trace=" + TURN) as trace:
                for number in range(1, requests):
                    assert connection.request(arm(HOUR, id=number)).status == 0
            turns = sum("resumed" not in line and TURN in line for line in trace.lines)
            # Two more to submit what a turn's end begins, and a tick now and then.
            assert 0 < turns <= (4 if EPOLL else 2) * requests + requests // 5 + 5, turns


def test_a_batch_takes_one_system_call_in_each_thread():
    """Anonymous queues are spread: there is one for each thread."""
    batches, number = scaled(90, 9), 3
    with Daemon(threads=number) as daemon:
        connections = [attach(daemon.path) for _ in range(number)]
        for connection in connections:
            Traffic(connection).settle()
        with SystemCalls(daemon) as trace:
            for connection in connections:
                for _ in range(batches // 3):
                    Traffic(connection).life()
        trace.check(number * TURNS * (batches + batches // 10 + 5),
                    2 * number * batches, number * batches, number)
        for connection in connections:
            connection.close()


def test_many_connections_share_a_turn():
    rounds = 10
    with Daemon() as daemon:
        connections = [attach(daemon.path) for _ in range(64)]
        for connection in connections:
            Traffic(connection).life()
        with SystemCalls(daemon) as trace:
            for _ in range(rounds):
                os.kill(daemon.process.pid, signal.SIGSTOP)
                wait_for(lambda: stopped(daemon.process.pid))
                for connection in connections:
                    connection.send(arm(HOUR))
                os.kill(daemon.process.pid, signal.SIGCONT)
                for connection in connections:
                    assert connection.reply().status == 0
        # Being stopped ends one; some kernels hand out what is ready in a few
        # parts. What matters is that it is not one for each connection. Their
        # queues are spread over the threads.
        trace.check(6 * TURNS * rounds * THREADS, 64 * rounds, 64 * rounds,
                    len(connections))
        for connection in connections:
            connection.close()


def stopped(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] in "tT"


def test_few_buffers_keep_nobody_waiting():
    """A send of which the daemon is not told holds its buffer until the next
    turn: whoever waits for one must not wait for that turn, too."""
    with Daemon("buffers = 4\nbuffer_size = 2048\n") as daemon:
        connections = [attach(daemon.path) for _ in range(40)]
        for _ in range(scaled(20, 2)):
            os.kill(daemon.process.pid, signal.SIGSTOP)
            wait_for(lambda: stopped(daemon.process.pid))
            for connection in connections:
                connection.send(*[arm(HOUR)] * 20)
            os.kill(daemon.process.pid, signal.SIGCONT)
            for connection in connections:
                assert not any(reply.status
                               for reply in connection.replies(20))
        for connection in connections:
            connection.close()


def test_expirations_take_one_system_call_a_buffer():
    count = scaled(20, 2) * BATCH
    with Daemon() as daemon, \
            attach(daemon.path, "due", CONSUME) as consumer, \
            attach(daemon.path, "due") as producer:
        consumer.credit(count + 100 * BATCH)
        traffic = Traffic(producer)
        due = pack([arm(0, flags=0) for _ in range(BATCH)])
        for _ in range(10):
            traffic.trip(due)
            consumer.take(BATCH * SIZE)
        with SystemCalls(daemon) as trace:
            for _ in range(count // BATCH):
                traffic.trip(due)
                consumer.take(BATCH * SIZE)
        # One to take the batch, one to look for more of what is due.
        trace.check(TURNS_DUE * (3 * count // BATCH + 5),
                    2 * count // BATCH, 2 * count // BATCH)


def test_at_rest_there_is_no_system_call():
    with Daemon() as daemon, attach(daemon.path, flags=CONSUME) as queue:
        queue.credit(10)
        queue.batch([arm(HOUR, i) for i in range(1000)])
        idle = [attach(daemon.path) for _ in range(100)]
        assert wait_for(lambda: sleeping(daemon.process.pid))
        with SystemCalls(daemon) as trace:
            try:
                daemon.process.wait(1)
                raise AssertionError("it ended")
            except subprocess.TimeoutExpired:
                pass
        # That each thread was asleep in one is seen, too.
        assert sum(trace.calls.values()) <= THREADS, dict(trace.calls)
        for connection in idle:
            connection.close()


def sleeping(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


# ------------------------------------------------------------------------
# Memory


class Calls:
    """A daemon whose calls for memory are counted; @slow_ms: likewise, whose engine
    takes so long for each batch."""

    def __init__(self, config=None, slow_ms=None):
        counter = tap.preload("count-calls.so")
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(8 * len(CALLS))
        self.map = mmap.mmap(self.file.fileno(), 8 * len(CALLS))
        environment = {"LD_PRELOAD": counter,
                       "EXPIRY_COUNT_CALLS": self.file.name}
        if slow_ms is None:
            self.daemon = Daemon(config, environment=environment)
        else:
            tap.need_slow()
            self.daemon = Daemon(config, program=tap.SLOW, threads=1, environment={
                **environment, "EXPIRY_SLOW_MS": str(slow_ms)})

    def counts(self):
        return dict(zip(CALLS, struct.unpack("%dQ" % len(CALLS), self.map)))

    def since(self, before):
        now = self.counts()
        return {name: now[name] - before[name] for name in CALLS
                if now[name] != before[name]}


def test_a_million_requests_take_no_memory():
    calls = Calls()
    with calls.daemon as daemon, attach(daemon.path) as connection:
        assert calls.counts()["malloc"], "nothing is counted"
        traffic = Traffic(connection)
        connection.batch([arm(HOUR + i, i) for i in range(scaled(10000))])
        traffic.settle()
        before = calls.counts()
        for _ in range(scaled(10**6) // (3 * BATCH) + 1):
            traffic.life()
        assert not calls.since(before), calls.since(before)


def test_expirations_take_no_memory():
    calls = Calls()
    rounds = scaled(10**6) // (2 * BATCH) + 1
    with calls.daemon as daemon, \
            attach(daemon.path, "due", CONSUME) as consumer, \
            attach(daemon.path, "due") as producer:
        traffic = Traffic(producer)
        due = pack([arm(0, flags=0) for _ in range(BATCH)])

        def fire():
            consumer.credit(BATCH)
            traffic.trip(due)
            consumer.take(BATCH * SIZE)
        for _ in range(100):
            fire()
        before = calls.counts()
        for _ in range(rounds):
            fire()
        assert not calls.since(before), calls.since(before)


def test_connections_in_turns_take_no_memory():
    calls = Calls()
    with calls.daemon as daemon:
        traffic = [Traffic(attach(daemon.path, "shared")) for _ in range(50)]
        for one in traffic:
            one.settle()
        before = calls.counts()
        for _ in range(scaled(20)):
            for one in traffic:
                one.life()
        assert not calls.since(before), calls.since(before)
        for one in traffic:
            one.connection.close()


def test_a_status_takes_no_memory():
    """It says when the next timer is due."""
    calls = Calls()
    with calls.daemon as daemon, attach(daemon.path) as connection:
        assert connection.request(arm(HOUR)).status == 0
        before = calls.counts()
        assert ", next" not in (daemon.manager.value("STATUS") or "")
        assert wait_for(lambda: ", next 2" in daemon.manager.value("STATUS"),
                        2 * STATUS_S)
        assert not calls.since(before), calls.since(before)


def test_buffers_that_an_engine_had_are_used_again():
    """Many more batches than there are buffers, one after the other: none of them
    has to be copied because the engine has too many."""
    calls = Calls("buffers = 8\n", slow_ms=1)
    with calls.daemon as daemon, attach(daemon.path) as connection:
        def batch():
            connection.send(*[arm(HOUR)] * 4)
            assert all(reply.status == 0 for reply in connection.replies(4))
        for _ in range(4):
            batch()
        before = calls.counts()
        for _ in range(40):
            batch()
        assert not calls.since(before), calls.since(before)


def test_what_it_was_given_it_keeps_for_the_next():
    """A connection that comes after another one has gone costs nothing new."""
    calls = Calls()
    with calls.daemon as daemon:
        for _ in range(10):
            with attach(daemon.path, "kept") as connection:
                connection.request(arm(HOUR))
        with attach(daemon.path, "kept") as watch:
            assert wait_for(lambda: watch.stat().connections == 1)
            before = calls.counts()
            for _ in range(scaled(100)):
                with attach(daemon.path, "kept") as connection:
                    assert connection.request(arm(HOUR)).status == 0
            assert not calls.since(before), calls.since(before)


if __name__ == "__main__":
    tap.main()
