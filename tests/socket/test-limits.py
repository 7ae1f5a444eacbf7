#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits set by the configuration file: each refuses plainly, with a counter,
and takes again what was given back."""

import errno
import os
import select
import subprocess
import tempfile
import time

import tap
from client import (ACK, ACKING, CANCEL, CONSUME, DROP, HELLO, HOUR, KEYED,
                    QUIET, WAIT, Connection, Record, accepted, arm, attach,
                    scaled, wait_for)
from daemon import ENGINE, PROGRAM, Daemon, as_user

# Descriptors of a connection with a queue of its own.
EACH = 2 if ENGINE == "kernel" else 1


def test_connections():
    with Daemon("connections = 5\nconnections_per_user = 5\n") as daemon:
        held = [attach(daemon.path, "counted") for _ in range(5)]
        for _ in range(3):
            assert accepted(daemon.path) is None, "one more than the limit"
        assert held[0].request(arm(HOUR)).status == 0
        assert wait_for(
            lambda: held[0].stat().refused_connections == 3), held[0].stat()
        held.pop().close()
        again = wait_for(lambda: accepted(daemon.path))
        assert again, "none after one has left"
        for connection in held + [again]:
            connection.close()


def test_connections_per_user():
    tap.need_root()
    with Daemon("connections = 100\nconnections_per_user = 3\n") as daemon:
        held = [attach(daemon.path) for _ in range(3)]
        assert accepted(daemon.path) is None
        assert as_user("nobody", lambda: bool(accepted(daemon.path)))
        assert held[0].stat().refused_connections == 1
        for connection in held:
            connection.close()


def test_who_finds_no_descriptor_hears_so():
    with Daemon(files=40) as daemon:
        time.sleep(QUIET)
        at_first = daemon.open_files()
        held = []
        while True:
            one = accepted(daemon.path)
            if not one:
                break
            held.append(one)
        assert 1 < len(held) < 40, len(held)
        # Where a queue is a descriptor, too, one may be left, once what the
        # last one had is given back.
        time.sleep(QUIET)
        rest = []
        while True:
            one = Connection(daemon.path)
            if select.select([one.socket], [], [], WAIT / 30)[0]:
                one.close()
                break
            rest.append(one)
        assert len(rest) < EACH, len(rest)
        before = held[0].stat().refused_connections
        for _ in range(39):
            with Connection(daemon.path) as refused:
                reply = refused.reply()
                assert reply.op == HELLO, reply
                assert reply.status == -errno.EBUSY, reply
                assert refused.ended() == []
        assert held[0].request(arm(HOUR)).status == 0
        stat = held[0].stat()
        assert stat.refused_connections == before + 39, stat
        # Several at once, of whom some wait while others are told.
        many = [Connection(daemon.path) for _ in range(100)]
        assert [refused.reply().status for refused in many] == \
            [-errno.EBUSY] * 100
        for refused in many:
            refused.close()
        said = [line for line in daemon.log().splitlines()
                if os.strerror(errno.EMFILE) in line]
        assert said and "pid %d, uid %d refused" % (
            os.getpid(), os.getuid()) in said[0], daemon.log()
        assert len(said) < 40, "%d lines" % len(said)
        # One has left: its place is taken at once, and then there is none.
        held.pop().close()
        again = wait_for(lambda: accepted(daemon.path))
        assert again, "none after one has left"
        assert accepted(daemon.path) is None
        for connection in held + [again] + rest:
            connection.close()
        assert wait_for(lambda: daemon.open_files() == at_first), \
            (at_first, daemon.open_files())
        attach(daemon.path).close()


def test_queues_per_user():
    with Daemon("queues_per_user = 4\n") as daemon:
        held = [attach(daemon.path, "q%d" % i) for i in range(3)]
        anonymous = attach(daemon.path)
        for name in ("q3", ""):
            with Connection(daemon.path) as more:
                reply = more.hello(name)
                assert reply.status in (-errno.EDQUOT, -errno.ENOSPC), reply
        # One that is there may be attached to, and others have their own.
        attach(daemon.path, "q0").close()
        if tap.have_root():
            assert as_user("nobody", lambda: bool(accepted(daemon.path)))
        assert held[0].stat().refused_queues == 2
        anonymous.close()
        assert wait_for(lambda: held[0].stat().queues == 3)
        attach(daemon.path, "q3").close()
        assert held[0].request(Record(DROP)).status == 0
        for connection in held:
            connection.close()


def test_queues_of_all():
    tap.need_root()
    with Daemon("queues = 3\nqueues_per_user = 3\n") as daemon:
        held = [attach(daemon.path, "q%d" % i) for i in range(3)]
        assert not as_user("nobody", lambda: bool(accepted(daemon.path)))
        assert held[0].stat().refused_queues == 1
        for connection in held:
            connection.close()


def test_timers_per_queue():
    with Daemon("timers_per_queue = 10\n") as daemon:
        for flags in (0, KEYED):
            with attach(daemon.path, flags=flags) as queue, \
                    attach(daemon.path) as other:
                replies = queue.batch(
                    [arm(HOUR, i, id=i + 1 if flags else 0)
                     for i in range(15)])
                assert [r.status for r in replies] == \
                    [0] * 10 + [-errno.ENOSPC] * 5, replies
                stat = queue.stat()
                assert stat.limit == 10 and stat.armed == 10, stat
                assert stat.refused_limit == 5, stat
                assert other.request(arm(HOUR)).status == 0
                gone = queue.request(Record(CANCEL, id=replies[0].id))
                assert gone.status == 0
                assert queue.request(arm(
                    HOUR, id=50 if flags else 0)).status == 0


def test_delivered_and_not_acknowledged_counts_as_a_timer():
    with Daemon("timers_per_queue = 5\n") as daemon:
        with attach(daemon.path, flags=CONSUME | ACKING) as queue:
            queue.credit(100)
            queue.batch([arm(0, i) for i in range(5)])
            while len(queue.expired) < 5:
                queue.expired.append(queue.record())
            assert queue.request(arm(HOUR)).status == -errno.ENOSPC
            ident = queue.expired[0].id
            assert queue.request(Record(ACK, id=ident)).status == 0
            assert queue.request(arm(HOUR)).status == 0


def test_timers_per_user():
    with Daemon("timers_per_user = 100\ntimers_per_queue = 1000\n") as daemon:
        with attach(daemon.path, "a") as one, attach(daemon.path, "b") as two:
            replies = one.batch([arm(HOUR, i) for i in range(60)])
            assert all(r.status == 0 for r in replies)
            replies = two.batch([arm(HOUR, i) for i in range(60)])
            counts = [r.status for r in replies]
            assert counts == [0] * 40 + [-errno.EDQUOT] * 20, counts
            assert two.stat().refused_timers == 20, two.stat()
            if tap.have_root():
                assert as_user("nobody", arm_some, daemon.path, 100) == 100
            # What one gives back the other may have.
            assert one.request(Record(6)).cookie == 60
            replies = two.batch([arm(HOUR, i) for i in range(60)])
            assert all(r.status == 0 for r in replies)
            assert one.request(arm(HOUR)).status == -errno.EDQUOT


def test_a_keyed_timer_is_armed_again_at_the_limit():
    with Daemon("timers_per_user = 5\n") as daemon, \
            attach(daemon.path, "keyed", KEYED) as queue:
        for ident in range(1, 6):
            assert queue.request(arm(HOUR, 0, id=ident)).status == 0
        # That adds none, in a batch of its own and behind what is refused.
        assert queue.request(arm(HOUR, 1, id=3)).status == 0
        replies = queue.batch([arm(HOUR, 0, id=6), arm(HOUR, 0, id=2)])
        assert [r.status for r in replies] == [-errno.EDQUOT, 0], replies
        assert queue.stat().armed == 5


def arm_some(path, count):
    with attach(path) as queue:
        return sum(r.status == 0
                   for r in queue.batch([arm(HOUR)] * count))


def test_timers_per_user_are_given_back_by_expiry_and_by_leaving():
    with Daemon("timers_per_user = 50\n") as daemon:
        for _ in range(5):
            with attach(daemon.path, flags=CONSUME) as queue:
                queue.credit(1000)
                # Delivered ones count no more.
                for _ in range(3):
                    replies = queue.batch([arm(0, i) for i in range(50)])
                    assert all(r.status == 0 for r in replies), replies
                    while len(queue.expired) < 50:
                        queue.expired.append(queue.record())
                    queue.expired.clear()
                replies = queue.batch([arm(HOUR, i) for i in range(50)])
                assert all(r.status == 0 for r in replies), replies
            # And those that go with an anonymous queue, neither.
            with attach(daemon.path, "watch") as watch:
                assert wait_for(lambda: watch.stat().queues == 1)


def test_upserts_of_one_id_are_charged_once():
    with Daemon("timers_per_user = 10\n") as daemon:
        with attach(daemon.path, flags=KEYED) as queue:
            replies = queue.batch([arm(HOUR, i, id=7)
                                   for i in range(scaled(1000, 50))])
            assert all(r.status == 0 for r in replies)
            # All ten together, as soon as the daemon knows the true count.
            assert wait_for(lambda: all(r.status == 0 for r in queue.batch(
                [arm(HOUR, i, id=i + 1) for i in range(10)])))
            assert queue.request(arm(HOUR, id=50)).status == -errno.EDQUOT


def test_acknowledged_timers_are_given_back():
    with Daemon("timers_per_user = 10\n") as daemon:
        with attach(daemon.path, flags=CONSUME | ACKING) as queue:
            queue.credit(1000)
            for _ in range(3):
                assert wait_for(lambda: queue.request(arm(0)).status == 0)
                replies = queue.batch([arm(0, i) for i in range(9)])
                assert all(r.status == 0 for r in replies), replies
                while len(queue.expired) < 10:
                    queue.expired.append(queue.record())
                assert queue.request(arm(0)).status == -errno.EDQUOT
                replies = queue.batch([Record(ACK, id=r.id)
                                       for r in queue.expired])
                assert all(r.status == 0 for r in replies), replies
                queue.expired.clear()


def test_credit_is_capped():
    with Daemon("credit_max = 100\n") as daemon:
        with attach(daemon.path, flags=CONSUME) as queue:
            queue.credit(2**32 - 1)
            stat = queue.stat()
            assert stat.credit == 100 and stat.refused_credit == 1, stat
            queue.batch([arm(0, i) for i in range(150)])
            while len(queue.expired) < 100:
                queue.expired.append(queue.record())
            assert queue.stat().credit == 0
            assert queue.stat().armed == 50


def test_a_cut_of_credit_is_logged_once_for_each_consumer():
    with Daemon("credit_max = 100\n") as daemon:
        for consumers in (1, 2):
            with attach(daemon.path, flags=CONSUME) as queue:
                queue.credit(100)
                queue.stat()
                assert daemon.log().count("cut from") == consumers - 1
                for _ in range(3):
                    queue.credit(50)
                assert queue.stat().refused_credit == 3 * consumers
                assert daemon.log().count("cut from 150 to 100") == consumers
                assert "pid %d, uid %d" % (os.getpid(), os.getuid()) in \
                    daemon.log()


def test_credit_that_was_given_stays():
    """A reload that lowers credit_max takes nothing away, whatever is in flight."""
    with Daemon("credit_max = 1000\n") as daemon:
        with attach(daemon.path, flags=CONSUME) as queue:
            queue.credit(1000)
            assert queue.stat().credit == 1000
            daemon.reload("credit_max = 100\n")
            queue.credit(1)
            queue.batch([arm(0, i) for i in range(500)])
            while len(queue.expired) < 500:
                queue.expired.append(queue.record())
            stat = queue.stat()
            assert stat.credit == 500 and stat.refused_credit == 1, stat
            assert "cut from 1001 to 1000" in daemon.log(), daemon.log()


def test_records_in_flight_are_told_and_kept():
    with Daemon("records_in_flight = 64\n") as daemon:
        with Connection(daemon.path) as queue:
            assert queue.hello().cookie == 64
            replies = queue.batch([arm(HOUR, i)
                                   for i in range(scaled(5000, 500))])
            assert all(r.status == 0 for r in replies)


def refused_config(text):
    """What the daemon says of a configuration it does not start with."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [PROGRAM, "--engine", ENGINE, "--config", path, "--socket",
             os.path.join(folder, "socket")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60)
        assert done.returncode > 0, (text, done)
        return done.stdout


def test_wrong_configuration_is_refused_by_line():
    for text, number in (("no_such_key = 5\n", 1),
                         ("# fine\n\nconnections = many\n", 3),
                         ("connections = 0\n", 1),
                         ("connections = -1\n", 1),
                         ("connections = 99999999999999999999999\n", 1),
                         ("connections\n", 1),
                         ("layout = binary\n", 1),
                         ("queues = 5 5\n", 1)):
        said = refused_config(text)
        assert ":%d:" % number in said, (text, said)


def test_layout_of_heaps_is_as_configured():
    pages = {}
    for layout in ("subtree", "sorted", "radix", "auto"):
        with Daemon("layout = %s\n" % layout) as daemon:
            with attach(daemon.path) as queue:
                replies = queue.batch([arm(HOUR - i * 7919 % 600, i)
                                       for i in range(600)])
                assert all(r.status == 0 for r in replies)
                pages[layout] = queue.stat().pages_heap
    # Of sorted pages one is for what was armed last, one for the sweep.
    assert pages["radix"] > pages["sorted"] > pages["subtree"] > 1, pages
    # Each engine has its own.
    assert pages["auto"] == pages["sorted" if ENGINE == "kernel" else "radix"], pages


def test_missing_configuration_is_refused():
    done = subprocess.run([PROGRAM, "--config", "/nonexistent/config"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    assert done.returncode > 0 and "/nonexistent/config" in done.stdout, done


if __name__ == "__main__":
    tap.main()
