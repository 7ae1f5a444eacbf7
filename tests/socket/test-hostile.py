#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hostile clients, and other clients that must not notice them."""

import contextlib
import itertools
import os
import re
import signal
import socket
import struct
import time

import tap
from client import (CONSUME, CREDIT, HOUR, SCAN, SIZE, SLOWER, STAT, WAIT,
                    Closed, Connection, Record, arm, attach, hello, pack,
                    scaled, wait_for)
from daemon import Daemon
from memory_faults import Refuser
from stalls import Stalls

MEBIBYTE = 1 << 20
SO_PASSRIGHTS = 83


def flood(connection, data, seconds=2):
    """Sends without reading, until the server blocks the sender or the time is over.
    Returns the bytes sent, and whether the server blocked it."""
    connection.socket.settimeout(0)
    sent, held_since = 0, None
    end = time.monotonic() + seconds * 5
    view = memoryview(data)
    pos = 0
    while time.monotonic() < end:
        try:
            count = connection.socket.send(view[pos:pos + 65536])
            sent += count
            pos = (pos + count) % len(data)
            held_since = None
        except BlockingIOError:
            held_since = held_since or time.monotonic()
            if time.monotonic() - held_since > seconds:
                return sent, True
            time.sleep(0.005)
    return sent, False


def round_trips(daemons, count=20):
    """Returns the median round trip of a well-behaved client of each, in seconds,
    measured in turn: all of them meet the same machine."""
    times = [[] for _ in daemons]
    with contextlib.ExitStack() as stack:
        goods = [stack.enter_context(attach(daemon.path)) for daemon in daemons]
        for i in range(count):
            for good, its in zip(goods, times):
                start = time.monotonic()
                assert good.request(arm(HOUR, i)).status == 0
                its.append(time.monotonic() - start)
    return [sorted(its)[count // 2] for its in times]


def check_served(daemon):
    """Checks that a client is served about as quickly as by a daemon that nobody
    disturbs."""
    with Daemon() as other, Stalls() as stalls:
        beside, alone = round_trips([daemon, other])
        stall = stalls.worst()
    assert beside < 10 * alone + 0.02 * SLOWER + stall, (alone, beside, stall)


def lingering(seconds):
    """Returns a TCP socket whose close() takes this time."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                   struct.pack("ii", 1, seconds))
    one.setblocking(False)
    try:
        while True:
            one.send(b"." * 65536)
    except BlockingIOError:
        pass
    return one, other


def test_descriptors_that_take_long_to_close_hold_nobody_up():
    """The receiver of unwanted descriptors closes them."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError as error:
            raise tap.Skip("no SO_PASSRIGHTS before Linux 6.16") from error
    with Daemon() as daemon, attach(daemon.path) as good:
        for when in (b"", hello()):
            with Connection(daemon.path) as bad:
                bad.send(when)
                one, other = lingering(2 * WAIT)
                try:
                    socket.send_fds(bad.socket, [hello()], [one.fileno()])
                    one.close()
                    bad.record()
                except PermissionError:
                    # It is still ours alone.
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 0, 0))
                    one.close()
                assert good.request(arm(HOUR)).status == 0
                other.close()


def test_flood_of_requests_without_reading_replies(daemon):
    before = daemon.resident()
    data = pack([Record(5, id=77)] * 4096)
    with attach(daemon.path) as bad:
        sent, held = flood(bad, data)
        assert held, "%d bytes taken and no end" % sent
        assert sent < 64 * MEBIBYTE, sent
        check_served(daemon)
        used = daemon.resident() - before
        assert used < 32 * MEBIBYTE, used
        # Backpressure, no disconnect: every request is still answered.
        bad.socket.settimeout(30)
        whole = sent // SIZE
        for _ in range(whole):
            reply = bad.record()
            assert reply.op == 5 and reply.status == -2, reply


def test_flood_by_twenty_connections_at_once(daemon):
    before = daemon.resident()
    data = pack([Record(STAT)] * 1024)
    floods = [attach(daemon.path) for _ in range(scaled(20, 4))]
    for bad in floods:
        flood(bad, data, 0.2)
    check_served(daemon)
    used = daemon.resident() - before
    assert used < 128 * MEBIBYTE, used
    for bad in floods:
        bad.close()


def test_flood_of_scans(daemon):
    with attach(daemon.path) as bad:
        bad.batch([arm(HOUR, i) for i in range(scaled(5000))])
        before = daemon.resident()
        flood(bad, pack([Record(SCAN, period=4096)] * 256), 0.5)
        check_served(daemon)
        used = daemon.resident() - before
        assert used < 32 * MEBIBYTE, used


def test_flooder_that_vanishes(daemon):
    for _ in range(5):
        bad = attach(daemon.path)
        flood(bad, pack([arm(HOUR)] * 1024), 0.1)
        bad.close()
    check_served(daemon)


def test_stream_cut_inside_a_record(daemon):
    with attach(daemon.path, "cut") as good:
        for size in (1, 16, 31, 33, 63):
            with attach(daemon.path, "cut") as bad:
                bad.send(pack([arm(HOUR), arm(HOUR)])[:size])
                bad.socket.shutdown(socket.SHUT_WR)
                replies = bad.ended()
                # What was whole was done and answered; the rest was not.
                done = [r for r in replies if r.op == 1]
                assert len(done) == size // SIZE, replies
        assert good.stat().armed == 2
        assert good.request(arm(HOUR)).status == 0


def test_end_after_whole_records_answers_them_all(daemon):
    with attach(daemon.path, "ends") as queue:
        queue.send(*[arm(HOUR, i) for i in range(200)])
        queue.socket.shutdown(socket.SHUT_WR)
        replies = queue.ended()
        assert [r.cookie for r in replies] == list(range(200)), len(replies)


AT_ONCE = 100


ROUNDS = 5


def test_connections_that_come_and_go_leave_no_memory():
    """What each of them left would be more after each round. Resident memory does
    not show it: it moves by more than a small leak, and with what else the machine
    does."""
    counter = Refuser()

    def come(i):
        queue = Connection(daemon.path)
        if i % 4 < 3:           # every fourth sends nothing
            queue.send(hello(flags=CONSUME), Record(CREDIT, period=9),
                       arm(0), arm(HOUR))
        if i % 4 == 1:
            queue.reply()
        return queue

    def visit(count):
        for i in range(count):
            come(i).close()
            if i % AT_ONCE == AT_ONCE - 1:
                settle()
        settle()

    def settle():
        """So that no more are there at a time later than before."""
        assert wait_for(lambda: watch.stat().connections == 1), watch.stat()
        # One with a read in the engine lasts until that ends: a little longer.
        assert wait_for(lambda: watch.stat().queues == 1), watch.stat()

    with counter.daemon(Daemon) as daemon, attach(daemon.path, "counts") as watch:
        visit(scaled(2000, 100))
        # Later there may be as many at once as a busy machine has not yet ended.
        for queue in [come(i) for i in range(AT_ONCE)]:
            queue.close()
        settle()
        files, allocated = daemon.open_files(), [counter.allocated()]
        count = scaled(2000, 50)
        for _ in range(ROUNDS - 1):
            visit(count)
            allocated.append(counter.allocated())
        assert daemon.open_files() <= files, (files, daemon.open_files())
        # The least that malloc() gives is 24 bytes.
        assert any(now - before < 16 * count
                   for before, now in itertools.pairwise(allocated)), allocated


def test_descriptors_that_are_sent_are_not_kept(daemon):
    before = daemon.open_files()
    with attach(daemon.path) as queue:
        held = os.open("/dev/null", os.O_RDONLY)
        for i in range(20):
            try:
                socket.send_fds(queue.socket, [bytes(arm(HOUR, i))], [held])
                assert queue.reply().op == 1
            except (Closed, OSError):
                break
        os.close(held)
        assert wait_for(lambda: daemon.open_files() <= before + 2), \
            (before, daemon.open_files())


def test_client_killed_in_the_middle(daemon):
    with attach(daemon.path, "killed") as good:
        for i in range(scaled(20, 5)):
            pid = os.fork()
            if not pid:
                try:
                    with attach(daemon.path, "killed", CONSUME) as bad:
                        bad.credit(1000)
                        while True:
                            bad.send(*[arm(0, j) for j in range(100)])
                finally:
                    os._exit(1)
            time.sleep(0.005 * i)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            assert good.request(arm(HOUR)).status == 0
            assert wait_for(lambda: good.stat().consumers == 0)


def test_protocol_breaker_gets_one_log_line():
    with Daemon() as daemon:
        log = len(daemon.log())
        with Connection(daemon.path) as bad:
            bad.send(b"\xee" * SIZE)
            bad.ended()

        def lines():
            # Those of the start may come later than it was looked.
            return [line for line in daemon.log()[log:].splitlines()
                    if "client of" in line]
        assert wait_for(lines), "not a line"
        time.sleep(0.1)
        assert len(lines()) == 1, lines()
        line = lines()[0]
        # Who it was: pid and uid, and why.
        assert re.search(r"\b%d\b" % os.getpid(), line), line
        assert re.search(r"uid\W{0,2}%d\b" % os.getuid(), line), line
        assert re.search(r"hello|protocol|record", line, re.I), line


if __name__ == "__main__":
    tap.main()
