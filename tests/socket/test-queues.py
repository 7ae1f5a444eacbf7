#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""QUEUES: the listed queues, for each user."""

import collections
import os

import tap
from client import (CONSUME, DROP, HOUR, KEYED, QUEUES, REALTIME, Record, arm,
                    attach, scaled, wait_for)
from daemon import THREADS, Daemon, as_user
from listing import listing, page, take_page

def test_tells_what_a_queue_is():
    with Daemon() as daemon, attach(daemon.path) as looker, \
            attach(daemon.path, "leases", CONSUME | KEYED, REALTIME) as lease:
        lease.credit(7)
        assert lease.request(arm(HOUR, id=1)).status == 0
        queue, = listing(looker)
        assert queue.name == "leases" and queue.armed == 1, queue
        assert 0 < queue.next - queue.now <= HOUR, queue
        assert (queue.connections, queue.consumers, queue.credit,
                queue.pid) == (1, 1, 7, os.getpid()), queue
        assert queue.uid == os.getuid() and queue.number > 0, queue


def test_many_in_pieces():
    count = scaled(1500, 60)
    with Daemon("buffer_size = 2048\n") as daemon, \
            attach(daemon.path) as looker:
        for i in range(count):
            attach(daemon.path, "q%d" % i).close()
        for i in range(0, count, 3):
            with attach(daemon.path, "q%d" % i) as queue:
                assert queue.request(Record(DROP)).status == 0
        wanted = {"q%d" % i for i in range(count) if i % 3}
        for most in (1, 2, 1000):
            names = [queue.name for queue in listing(looker, most)]
            assert len(names) == len(set(names)) and set(names) == wanted
        numbers = {queue.number for queue in listing(looker)}
        assert len(numbers) == len(wanted)


def test_a_queue_that_stays_is_listed_once_whatever_else_comes_and_goes():
    with Daemon() as daemon, attach(daemon.path) as looker:
        for i in range(60):
            attach(daemon.path, "stays%d" % i).close()
            attach(daemon.path, "goes%d" % i).close()
        seen, cursor = collections.Counter(), 0
        for i in range(10000):
            queues, cursor = page(looker, cursor, 3)
            seen.update(queue.name for queue in queues)
            if not cursor:
                break
            if i < 60:
                with attach(daemon.path, "goes%d" % i) as queue:
                    assert queue.request(Record(DROP)).status == 0
                for j in range(20):
                    attach(daemon.path, "comes%d.%d" % (i, j)).close()
        assert all(seen["stays%d" % i] == 1 for i in range(60)), seen


def test_anonymous_ones_but_not_the_askers():
    with Daemon() as daemon, attach(daemon.path) as looker:
        assert listing(looker) == []
        with attach(daemon.path, flags=CONSUME):
            queue, = listing(looker)
            assert queue.name == "" and queue.pid == os.getpid(), queue
        with attach(daemon.path, "mine") as mine:
            queue, = [row for row in listing(mine) if row.name]
            assert queue.name == "mine" and queue.connections == 1, queue


def names_seen(path):
    with attach(path, "nobodys") as queue:
        return [row.name for row in listing(queue)]


def names_of_anonymous(path):
    with attach(path) as queue:
        return [row.name for row in listing(queue)]


def test_others_queues_are_roots_alone():
    tap.need_root()
    with Daemon() as daemon, attach(daemon.path, "roots") as root:
        assert as_user("nobody", names_seen, daemon.path) == ["nobodys"]
        assert {row.name for row in listing(root)} == {"roots", "nobodys"}


def test_all_are_the_daemons_own_users_too():
    """The daemon's own user sees all queues: metrics are printed as this user."""
    tap.need_root()
    with Daemon(user="nobody", engine="embedded") as daemon, \
            attach(daemon.path, "roots"):
        assert sorted(as_user("nobody", names_seen, daemon.path)) == \
            ["nobodys", "roots"]
        assert as_user("daemon", names_of_anonymous, daemon.path) == []


def test_wrong_requests():
    with Daemon() as daemon, attach(daemon.path, "one") as queue:
        for wrong in (Record(QUEUES), Record(QUEUES, 1, period=1),
                      Record(QUEUES, status=1, period=1)):
            assert queue.request(wrong) == wrong._replace(status=-22), wrong
        for cursor in (2**32, 2**64 - 1, 12345678901234567890):
            queues, cursor = page(queue, cursor)
            assert queues == []
            # What is left is of other threads.
            for _ in range(THREADS - 1):
                if cursor:
                    queues, cursor = page(queue, cursor)
                    assert len(queues) <= 1
            assert not cursor
        # Between other replies, in order, whichever thread is asked.
        for cursor in range(4):
            queue.send(arm(HOUR, 1), Record(QUEUES, id=cursor, period=5),
                       Record(QUEUES, id=cursor, period=5), arm(HOUR, 2))
            assert queue.reply().cookie == 1
            queues = take_page(queue)
            again = take_page(queue)
            assert [row.name for row in queues[0]] == \
                [row.name for row in again[0]] and queues[1] == again[1]
            assert queue.reply().cookie == 2
        assert queue.request(Record(DROP)).status == 0
        assert queue.request(Record(QUEUES, period=1)).status == -2


def test_stat_has_the_sum_of_all_queues():
    with Daemon() as daemon, attach(daemon.path) as looker, \
            attach(daemon.path, "one", 0, REALTIME) as one, \
            attach(daemon.path, "two") as two:
        assert looker.stat().timers_all == 0
        assert looker.stat().next_all == 2**64 - 1
        one.batch([arm(2 * HOUR)] * 3)
        first = two.batch([arm(HOUR)] * 2 + [arm(HOUR // 2)])[2]

        def told():
            stat = looker.stat()
            return stat if stat.timers_all == 6 else None
        stat = wait_for(told)
        # MONOTONIC's deadline as time of day, by two clocks read in turn.
        at = first.deadline - two.stat().now + one.stat().now
        assert abs(stat.next_all - at) < 10**9, (stat.next_all, at)
        assert stat.lateness_max_all == 0, stat


if __name__ == "__main__":
    tap.main()
