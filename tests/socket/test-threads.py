#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several threads: queues are spread over them, a queue stays one whoever
connects to it, and limits, counters, settings and the watchdog are of all.

The other tests of this folder are for any number of threads ($EXPIRY_THREADS);
here are those that there must be several for."""

import ctypes
import errno
import os
import signal
import tempfile
import time

import tap
from client import (ACKING, CLEAR, CONSUME, DROP, DURABLE, HOUR, KEYED, QUEUES, SIZE,
                    STAT, Connection, Record, accepted, arm, attach, hello,
                    scaled, wait_for)
from daemon import ENGINE, Daemon, as_user
from durable import Disk, kill
from listing import listing, take_page
from threads import served_by, servers


def status(daemon):
    return daemon.manager.value("STATUS") or ""


# ------------------------------------------------------------------------
# Which thread


def test_there_are_as_many_threads_as_asked_for():
    for number in 1, 3:
        with Daemon(threads=number) as daemon:
            assert len(servers(daemon)) == number, servers(daemon)
    with Daemon("threads = 2\n", threads=None) as daemon:
        assert len(servers(daemon)) == 2, servers(daemon)
        assert ", 2 threads: " in status(daemon), status(daemon)


def test_queues_are_spread():
    with Daemon(threads=4) as daemon:
        queues = [attach(daemon.path, "q%d" % i) for i in range(4)]
        by = [served_by(daemon, queue) for queue in queues]
        assert sorted(by) == sorted(servers(daemon)), by
        for queue in queues:
            queue.close()


def test_anonymous_queues_are_spread():
    with Daemon(threads=2) as daemon, attach(daemon.path) as one, \
            attach(daemon.path) as two:
        assert served_by(daemon, one) != served_by(daemon, two)


def test_what_comes_and_goes_does_not_bring_two_together():
    with Daemon(threads=2) as daemon:
        with attach(daemon.path, "a") as one:
            for i in range(scaled(100, 10)):
                attach(daemon.path).close()
                with attach(daemon.path, "passing-%d" % i) as passing:
                    assert passing.request(Record(DROP)).status == 0
            assert wait_for(lambda: one.stat().queues == 1), one.stat()
            with attach(daemon.path), attach(daemon.path, "b") as two:
                assert served_by(daemon, one) != served_by(daemon, two)


# ------------------------------------------------------------------------
# Limits


def test_timers_of_a_user_are_counted_over_all_threads():
    limit = scaled(20000, 2000) + 123
    with Daemon("timers_per_user = %d\n" % limit, threads=4) as daemon:
        queues = [attach(daemon.path, "q%d" % i) for i in range(8)]
        each = 500
        for turn in range(2):
            accepted = refused = 0
            # More of them than there may be, again and again at once.
            for _ in range(limit // (each * len(queues)) + 2):
                with daemon.halted():
                    for queue in queues:
                        queue.send(*[arm(HOUR)] * each)
                for queue in queues:
                    statuses = [r.status for r in queue.replies(each)]
                    assert set(statuses) <= {0, -errno.EDQUOT}, statuses
                    accepted += statuses.count(0)
                    refused += statuses.count(-errno.EDQUOT)
            assert accepted == limit and refused > 0, (turn, accepted)
            assert sum(queue.stat().armed for queue in queues) == limit
            if tap.have_root():
                assert as_user("nobody", arm_some, daemon.path) == 100
            # All that is given back can be had once more, by whomever.
            for queue in queues:
                assert queue.request(Record(CLEAR)).status == 0
        for queue in queues:
            queue.close()


def arm_some(path):
    with attach(path) as queue:
        return sum(r.status == 0 for r in queue.batch([arm(HOUR)] * 100))


def test_replacing_needs_no_room_in_any_thread():
    with Daemon("timers_per_user = 100\n", threads=4) as daemon:
        queues = [attach(daemon.path, "k%d" % i, KEYED) for i in range(4)]
        for queue in queues:
            replies = queue.batch([arm(HOUR, i, id=i + 1) for i in range(25)])
            assert all(r.status == 0 for r in replies), replies
        for _ in range(10):
            with daemon.halted():
                for queue in queues:
                    queue.send(*[arm(HOUR, i, id=i + 1) for i in range(25)])
            for queue in queues:
                assert all(r.status == 0 for r in queue.replies(25))
        for queue in queues:
            assert queue.request(arm(HOUR, id=99)).status == -errno.EDQUOT
            queue.close()


def said_hello(daemon, count, name):
    """Connections that say HELLO at once: their replies."""
    connections = [Connection(daemon.path) for _ in range(count)]
    with daemon.halted():
        for i, connection in enumerate(connections):
            connection.socket.sendall(hello(name(i)))
    return connections, [connection.reply() for connection in connections]


def test_queues_of_a_user_are_counted_over_all_threads():
    with Daemon("queues_per_user = 20\n", threads=4) as daemon:
        connections, replies = said_hello(
            daemon, 60, lambda i: "q%d" % i if i % 2 else "")
        statuses = [r.status for r in replies]
        assert statuses.count(0) == 20, statuses
        assert statuses.count(-errno.EDQUOT) == 40, statuses
        good = connections[statuses.index(0)]
        assert good.stat().queues == 20
        assert good.stat().refused_queues == 40
        if tap.have_root():
            assert as_user("nobody", arm_some, daemon.path) == 100
        for connection in connections:
            connection.close()


def test_queues_of_all_are_counted_over_all_threads():
    with Daemon("queues = 20\n", threads=4) as daemon:
        connections, replies = said_hello(daemon, 60, lambda i: "")
        statuses = [r.status for r in replies]
        assert statuses.count(0) == 20, statuses
        assert statuses.count(-errno.ENOSPC) == 40, statuses
        for connection in connections:
            connection.close()
        with wait_for(lambda: accepted(daemon.path)) as again:
            assert wait_for(lambda: again.stat().queues == 1)


def test_connections_are_counted_over_all_threads():
    with Daemon("connections = 10\n", threads=4) as daemon:
        held = [attach(daemon.path, "q%d" % i) for i in range(5)]
        # Those who say nothing count, too.
        silent = [Connection(daemon.path) for _ in range(5)]
        assert wait_for(lambda: held[0].stat().connections == 10)
        assert accepted(daemon.path) is None
        assert held[0].stat().refused_connections == 1
        silent.pop().close()
        with wait_for(lambda: accepted(daemon.path)):
            pass
        held.pop().close()
        with wait_for(lambda: accepted(daemon.path)):
            pass
        for connection in held + silent:
            connection.close()


def test_memory_is_of_all_threads():
    if ENGINE != "embedded":
        raise tap.Skip("the embedded engine's")
    memory = 4 << 20
    with Daemon("memory = %d\n" % memory, threads=2) as daemon:
        queues = [attach(daemon.path, "q%d" % i) for i in range(2)]
        refused = 0
        for _ in range(400):
            with daemon.halted():
                for queue in queues:
                    queue.send(*[arm(HOUR)] * 500)
            for queue in queues:
                statuses = [r.status for r in queue.replies(500)]
                assert set(statuses) <= {0, -errno.ENOMEM}, set(statuses)
                refused += statuses.count(-errno.ENOMEM)
            if refused > 1000:
                break
        assert refused, "never too many"
        armed = [queue.stat().armed for queue in queues]
        # 48 bytes each, and no thread had all of it.
        assert memory // 2 < sum(armed) * 48 <= memory, armed
        assert min(armed) > 0, armed
        # What one gives back the other can have.
        assert queues[0].request(Record(CLEAR)).status == 0
        assert wait_for(lambda: queues[1].request(arm(HOUR)).status == 0)
        for queue in queues:
            queue.close()


# ------------------------------------------------------------------------
# All together


def test_counters_are_sums():
    with Daemon(threads=2) as daemon, \
            attach(daemon.path, "a", CONSUME) as one, \
            attach(daemon.path, "b", CONSUME) as two:
        before = one.stat()
        for queue, count in (one, 30), (two, 50):
            queue.credit(100)
            queue.batch([arm(0)] * count)
            while len(queue.expired) < count:
                queue.expired.append(queue.record())
        stats = one.stat(), two.stat()
        for number, stat in enumerate(stats):
            # Two CREDITs, and the STATs themselves as far as they go.
            assert stat.records - before.records == 83 + number, \
                (before.records, stat.records)
            assert stat.expirations - before.expirations == 80
            assert stat.connections == stat.queues == 2
        broken = Connection(daemon.path)
        broken.socket.sendall(bytes(Record(STAT)))
        broken.ended()
        broken.close()
        assert one.stat().closed_protocol == two.stat().closed_protocol == 1


def test_queues_of_all_threads_are_listed():
    for threads in 1, 2, 4:
        with Daemon(threads=threads) as daemon:
            names = ["q%d" % i for i in range(4 * threads)]
            queues = [attach(daemon.path, name) for name in names]
            by = {served_by(daemon, queue) for queue in queues[:threads]}
            assert len(by) == threads, by
            for queue in queues:
                for most in 1, 1000:
                    rows = listing(queue, most)
                    assert sorted(row.name for row in rows) == sorted(names)
                    assert len({row.number for row in rows}) == len(names)
                queue.close()


def test_listing_many_at_once_and_some_do_not_wait():
    # A slow machine has not answered all of them before they would be refused.
    with Daemon("busy_after = 0\nthreads = 4\n", threads=None) as daemon:
        names = {"q%d" % i for i in range(60)}
        for name in names:
            attach(daemon.path, name).close()
        ask = [Record(QUEUES, id=i % 4, period=5) for i in range(40)]
        for _ in range(scaled(10, 2)):
            askers = [attach(daemon.path, "q%d" % i) for i in range(24)]
            with daemon.halted():
                for asker in askers:
                    asker.send(*ask)
                for asker in askers[::2]:
                    asker.close()
            for asker in askers[1::2]:
                for record in ask:
                    rows, cursor = take_page(asker)
                    assert len(rows) == 5 and cursor % 4 == record.id, rows
                asker.close()
        with attach(daemon.path) as looker:
            assert {row.name for row in listing(looker)} == names
            assert wait_for(lambda: looker.stat().connections == 1)


def test_stat_waits_for_all_threads():
    """The first STAT after a long time knows of them, and many do."""
    with Daemon(threads=4) as daemon:
        queues = [attach(daemon.path, "q%d" % i) for i in range(8)]
        for i, queue in enumerate(queues):
            queue.batch([arm((8 - i) * HOUR)] * (i + 1))
            time.sleep(0.1)
            stat = queues[0].stat()
            assert stat.timers_all == (i + 1) * (i + 2) // 2, stat
            late = time.time() + (8 - i) * 3600 - stat.next_all / 1e9
            assert 0 < late < 60, late
        with daemon.halted():
            for queue in queues:
                queue.send(*[Record(STAT)] * 20)
            queues.pop().close()
        for queue in queues:
            for _ in range(20):
                head = queue.reply()
                assert head.op == STAT and not head.status, head
                queue.take(head.period * SIZE)
            queue.close()


def test_status_tells_of_all_threads():
    with Daemon(threads=2,
                environment={"WATCHDOG_USEC": "200000"}) as daemon:
        with attach(daemon.path, "a") as one, attach(daemon.path, "b") as two:
            one.batch([arm(2 * HOUR)] * 3)
            two.batch([arm(HOUR)] * 4)
            due = time.gmtime(time.time() + 3600)
            assert wait_for(lambda: "7 timers in 2 queues, 2 clients, next "
                            in status(daemon)), status(daemon)
            assert time.strftime("%Y-%m-%dT%H:", due) in status(daemon) or \
                time.gmtime().tm_hour != (due.tm_hour - 1) % 24


def test_status_is_told_of_other_threads_without_a_watchdog():
    with Daemon(threads=2) as daemon:
        with attach(daemon.path, "a") as one, attach(daemon.path, "b") as two:
            by = {served_by(daemon, queue): queue for queue in (one, two)}
            assert by[max(by)].request(arm(HOUR)).status == 0
            assert by[min(by)].request(arm(HOUR)).status == 0
            assert wait_for(lambda: "2 timers in 2 queues" in status(daemon))
            # From here on nothing happens in the first thread.
            by[max(by)].batch([arm(HOUR)] * 5)
            assert wait_for(lambda: "7 timers in 2 queues" in status(daemon)), \
                status(daemon)


class Ptrace:
    """One thread is kept from running, as if it were stuck."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, task):
        self.task = task
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long] * 4

    def call(self, request):
        if self.libc.ptrace(request, self.task, 0, 0) < 0:
            raise tap.Skip("may not be traced: " +
                           os.strerror(ctypes.get_errno()))

    def __enter__(self):
        self.call(self.SEIZE)
        self.call(self.INTERRUPT)
        os.waitpid(self.task, self.WALL)

    def __exit__(self, *_):
        self.call(self.DETACH)


def test_watchdog_is_not_answered_when_one_thread_is_stuck():
    with Daemon(threads=3,
                environment={"WATCHDOG_USEC": "200000"}) as daemon:
        def answers():
            return daemon.manager.count("WATCHDOG=1")

        queues = [attach(daemon.path, "q%d" % i) for i in range(3)]
        by = {served_by(daemon, queue): queue for queue in queues}
        assert len(by) == 3
        for task in servers(daemon):
            before = answers()
            assert wait_for(lambda: answers() > before + 2)
            with Ptrace(task):
                time.sleep(0.3)
                before = answers()
                time.sleep(0.5)
                assert answers() == before, "thread %d is stuck" % task
                # The others go on.
                for other, queue in by.items():
                    if other != task:
                        assert queue.request(arm(HOUR)).status == 0
            assert wait_for(lambda: answers() > before)
        for queue in queues:
            queue.close()


def test_reload_reaches_all_threads():
    with Daemon("credit_max = 100\nthreads = 4\n", threads=None) as daemon:
        queues = [attach(daemon.path, "q%d" % i, CONSUME) for i in range(8)]
        for queue in queues:
            queue.credit(1000)
            assert queue.stat().credit == 100
        daemon.configure("credit_max = 200\nthreads = 2\n")
        ready = daemon.manager.count("READY=1")
        daemon.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: daemon.manager.count("READY=1") > ready)
        for queue in queues:
            queue.credit(1000)
            assert queue.stat().credit == 200
            queue.close()
        assert daemon.log().count("threads: changes with the next start") == 1
        assert len(servers(daemon)) == 4


def test_stop_with_traffic_on_all_threads():
    for _ in range(scaled(10, 2)):
        with Daemon(threads=4) as daemon:
            queues = [attach(daemon.path, "q%d" % i, CONSUME)
                      for i in range(8)]
            for queue in queues:
                queue.credit(10000)
                queue.send(*[arm(i % 3) for i in range(1500)])
            assert daemon.end() == 0, daemon.log()
            for queue in queues:
                # Whole records and then the end.
                for record in queue.ended():
                    assert record.status == 0, record
                queue.close()
            # The end of the with statement would end it once more.
            daemon.end = lambda: 0


def test_queues_of_the_store_are_taken_by_all_threads():
    if ENGINE != "kernel":
        raise tap.Skip("the kernel engine's")
    count = 6
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "socket")
        first = Daemon(path=path, threads=2)
        assert first.wait_ready(), first.log()
        for i in range(count):
            with attach(path, "q%d" % i, KEYED) as queue:
                replies = queue.batch([arm(HOUR, j, id=j + 1)
                                       for j in range(10 + i)])
                assert all(r.status == 0 for r in replies)
        first.process.kill()
        first.process.wait()
        assert wait_for(lambda: len(first.manager.names()) == count)
        stored = first.manager.take_store()
        first.remove()
        with Daemon(path=path, stored=stored, threads=2) as second:
            for _, fd in stored:
                os.close(fd)
            total = sum(10 + i for i in range(count))
            assert "queues taken over: %d, timers in them: %d" % (
                count, total) in second.log(), second.log()
            queues = [attach(path, "q%d" % i, KEYED) for i in range(count)]
            for i, queue in enumerate(queues):
                assert queue.stat().armed == 10 + i
            assert queues[0].stat().queues == count
            by = [served_by(second, queue) for queue in queues]
            assert sorted(by.count(task) for task in set(by)) == \
                [count // 2] * 2, by
            for queue in queues:
                queue.close()


def test_durable_queues_of_the_store_stay_with_their_journals():
    """In whatever order the store has them."""
    if ENGINE != "kernel":
        raise tap.Skip("the kernel engine's")
    names = ["q%d" % number for number in range(6)]
    stored = []
    with Disk() as disk:
        for turn in range(4):
            with disk.daemon(threads=2, stored=stored) as daemon:
                for number, name in enumerate(names):
                    flags = DURABLE | KEYED | ACKING if number % 3 else KEYED
                    with attach(daemon.path, name, flags) as queue:
                        assert queue.stat().armed == turn, (turn, name)
                        reply = queue.request(arm(HOUR, id=1 + turn))
                        assert reply.status == 0, reply
                kill(daemon)
                if not stored:
                    assert wait_for(lambda: len(daemon.manager.names()) == len(names))
                    stored = daemon.manager.take_store()
                stored.reverse()
    for _, fd in stored:
        os.close(fd)


if __name__ == "__main__":
    tap.main()
