#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What costs much is charged as much: clients beside one that asks for it, again
and again, are served as if it asked for little."""

import os
import signal
import threading
import time

import tap
from client import (CANCEL, CONSUME, HOUR, QUERY, SCAN, SIZE, STAT, Connection,
                    Record, arm, attach, pack, scaled, unpack_stat, wait_for)
from daemon import Daemon

SECOND = 10**9
SLOTS = scaled(200000, 2000)


class Hostile:
    """Keeps @count connections to a queue full of @requests and reads what
    comes, in threads, until it is told to end."""

    def __init__(self, path, name, requests, count=8):
        self.many = [attach(path, name) for _ in range(count)]
        self.data = pack(requests)
        self.stop = False
        self.taken = 0
        self.threads = [threading.Thread(target=target, args=(one,))
                        for one in self.many
                        for target in (self.send, self.receive)]

    def send(self, connection):
        try:
            while not self.stop:
                connection.socket.sendall(self.data)
        except OSError:
            pass

    def receive(self, connection):
        try:
            while not self.stop:
                self.taken += len(connection.socket.recv(1 << 20))
        except OSError:
            pass

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        end = time.monotonic() + 30
        while not self.taken and time.monotonic() < end:
            time.sleep(0.01)
        assert self.taken, "it was not served"
        return self

    def __exit__(self, *_):
        self.stop = True
        for one in self.many:
            one.socket.shutdown(2)
        for thread in self.threads:
            thread.join()
        for one in self.many:
            one.close()


def emptied(path, name):
    """A queue that had many timers and has one: few rows, many slots."""
    queue = attach(path, name)
    replies = queue.batch([arm(HOUR, i) for i in range(SLOTS)])
    replies = queue.batch([Record(CANCEL, id=r.id) for r in replies[:-1]])
    assert all(r.status == 0 for r in replies)
    return queue


def test_expirations_come_beside_scans_that_find_little(daemon):
    with emptied(daemon.path, "emptied"), \
            attach(daemon.path, flags=CONSUME) as good:
        good.credit(1000)
        with Hostile(daemon.path, "emptied",
                     [Record(SCAN, period=2**32 - 1)] * 512):
            for i in range(20):
                start = time.monotonic()
                assert good.request(arm(SECOND // 100, i)).status == 0
                assert good.expiration().cookie == i
                late = time.monotonic() - start
                assert late < 2, "after %.1f s" % late


def test_a_request_does_not_wait_for_all_that_connect(daemon):
    with attach(daemon.path) as good:
        # Those of the test before are gone.
        assert wait_for(lambda: good.stat().connections == 1)
        # Everything is there when the daemon looks.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            many = [Connection(daemon.path) for _ in range(1000)]
            good.send(Record(STAT))
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        head = good.reply()
        stat = unpack_stat(good.take(head.period * SIZE))
        assert stat.connections < 500, stat
        # They are served all the same.
        assert wait_for(lambda: good.stat().connections == 1001)
        for connection in many:
            connection.close()


def test_refused_timers_of_one_batch_are_refused_together():
    """Each is answered in its place, whatever stands between; that it takes one
    look at the batch and not one each is the benchmark's to see."""
    with Daemon("timers_per_user = 10\n") as daemon, \
            attach(daemon.path) as queue:
        queue.batch([arm(HOUR)] * 10)
        records = [arm(HOUR, i) for i in range(400)]
        # What else stands there is done, in its place.
        records[100] = Record(QUERY, id=77)
        records[200] = Record(STAT, flags=1)
        replies = queue.batch(records)
        status = [r.status for r in replies]
        assert status[100] == -2 and status[200] == -22, status
        del status[200], status[100]
        assert status == [-122] * 398, status
        assert [r.cookie for r in replies if r.op == 1] == \
            [i for i in range(400) if i not in (100, 200)]
        assert queue.stat().refused_timers == 398, queue.stat()


if __name__ == "__main__":
    tap.main()
