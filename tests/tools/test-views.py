#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl tail, queues and status beside a busy consumer. They take nothing, slow no
client and do not count themselves."""

import json
import os
import re
import signal
import subprocess
import sys

from support_fake import NOW, Server
from support_fields import stats
from support_golden import CTL, WAIT

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))
import tap  # noqa: E402
from client import (ACK, ACKING, CONSUME, DROP, EXPIRED, HOUR,  # noqa: E402
                    REALTIME, Record, arm, attach, wait_for)
from daemon import Daemon  # noqa: E402


def ctl(path, *arguments, status=0):
    process = subprocess.run([CTL, "--socket", path, *arguments], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             timeout=WAIT, check=False)
    assert process.returncode == status, process
    return process.stdout if status == 0 else process.stderr


def start(path, *arguments):
    return subprocess.Popen([CTL, "--socket", path, *arguments], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def row_of(daemon, name):
    row, = [json.loads(line) for line in
            ctl(daemon.path, "queues", "--json", "--queue", name).splitlines()]
    return row


def takes_signals(process):
    """Whether it waits for SIGINT itself. Until it has attached a signal ends it, as
    it must where a server does not answer."""
    with open("/proc/%d/status" % process.pid, encoding="utf-8") as file:
        blocked = re.search(r"^SigBlk:\s*(\w+)$", file.read(), re.MULTILINE)
    return int(blocked[1], 16) & 1 << signal.SIGINT - 1


def tail(daemon, name, *arguments, others=0):
    """Starts tail, and returns when it is attached."""
    process = start(daemon.path, "tail", "--queue", name, *arguments)
    assert wait_for(lambda: row_of(daemon, name)["observers"] == others + 1 and
                    takes_signals(process) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def test_tail_takes_nothing():
    """Two of them print what the consumer gets, in its order; each is still to be
    acknowledged by the consumer."""
    with Daemon() as daemon, attach(daemon.path, "leases", CONSUME | ACKING,
                                    REALTIME) as consumer:
        first = tail(daemon, "leases", "--json", "--count", "100")
        second = tail(daemon, "leases", "--json", "--count", "90", others=1)
        row = row_of(daemon, "leases")
        assert row["connections"] == 1 and row["consumer"], row
        consumer.credit(100)
        consumer.batch([arm(n, cookie=2**63 + n) for n in range(100)])
        got = [consumer.expiration() for _ in range(100)]
        expected = [(str(record.id), str(record.deadline), str(record.cookie))
                    for record in got]
        for process, count in (first, 100), (second, 90):
            out, err = process.communicate(timeout=WAIT)
            rows = [json.loads(line) for line in out.splitlines()]
            assert (process.returncode, err) == (0, ""), err
            assert [(row["id"], row["deadline_ns"], row["cookie"])
                    for row in rows] == expected[:count], rows
            assert {row["event"] for row in rows} == {"expired"}
        row = row_of(daemon, "leases")
        assert (row["unacked"], row["observers"]) == ("100", 0), row
        replies = consumer.batch([Record(ACK, id=record.id) for record in got])
        assert {reply.status for reply in replies} == {0}


def test_tail_that_is_not_read_slows_nobody():
    """The consumer gets everything; tail says afterwards how many it missed, and
    together with what it shows that is all."""
    count = 20000
    with Daemon("observer_memory = 131072\n") as daemon, \
            attach(daemon.path, "busy", CONSUME, REALTIME) as consumer:
        process = tail(daemon, "busy")
        os.kill(process.pid, signal.SIGSTOP)
        for _ in range(count // 500):
            consumer.credit(500)
            consumer.batch([arm(0)] * 500)
            while len(consumer.expired) < 500:
                consumer.expired.append(consumer.record())
            consumer.expired.clear()
        os.kill(process.pid, signal.SIGCONT)
        shown = missed = 0
        while shown + missed < count:
            line = process.stdout.readline()
            match = re.fullmatch(r"missed (\d+)\n", line)
            if match:
                missed += int(match[1])
            else:
                assert " late " in line, line
                shown += 1
        assert shown + missed == count and missed > 0 and shown > 1000, \
            (shown, missed)
        process.terminate()
        assert process.communicate(timeout=WAIT) == ("", "")
        assert process.returncode == 0


def test_tail_ends_well():
    with Daemon() as daemon, attach(daemon.path, "one", CONSUME,
                                    REALTIME) as one:
        for number in signal.SIGINT, signal.SIGTERM:
            process = tail(daemon, "one")
            process.send_signal(number)
            assert process.communicate(timeout=WAIT) == ("", "")
            assert process.returncode == 0
            assert wait_for(lambda: not row_of(daemon, "one")["observers"])
        # It makes no queue.
        err = ctl(daemon.path, "tail", "--queue", "absent", status=1)
        assert "no queue absent" in err, err
        process = tail(daemon, "one")
        assert one.request(Record(DROP)).status == 0
        out, err = process.communicate(timeout=WAIT)
        assert process.returncode == 1 and not out, out
        assert err.startswith("expiryctl: one: ") and "lost" in err, err


def test_tail_ends_among_many():
    """It ends although there are more records, here while nobody reads its output."""
    with Daemon() as daemon, attach(daemon.path, "busy", CONSUME,
                                    REALTIME) as consumer:
        process = tail(daemon, "busy")
        for _ in range(20):
            consumer.credit(500)
            consumer.batch([arm(0)] * 500)
            while len(consumer.expired) < 500:
                consumer.expired.append(consumer.record())
            consumer.expired.clear()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT)
        # A full pipe, and what was received at once.
        assert (process.returncode, err) == (0, ""), err
        assert len(out.splitlines()) < 2000, len(out.splitlines())


def test_tail_outlives_the_daemon():
    """It reports that deliveries meanwhile are not shown."""
    def copy(id):
        return Record(EXPIRED, id=id, deadline=NOW[REALTIME], cookie=id)
    with Server(stats=[stats({"mode": 0}, {"durable": 0})],
                expirations=[copy(1)]) as fake:
        process = start(os.fsdecode(fake.path), "tail", "--count", "2")
        line = process.stdout.readline()
        assert line.startswith("1 "), line
        fake.expirations = [copy(2)]
        fake.hang_up()
        out, err = process.communicate(timeout=WAIT)
        lines = out.splitlines()
        assert (process.returncode, err) == (0, ""), err
        assert len(lines) == 2 and "connected again" in lines[0], lines
        assert lines[1].startswith("2 "), lines


def test_status_does_not_count_itself():
    """It counts neither its connection nor a queue, and makes none."""
    def counted():
        status = json.loads(ctl(daemon.path, "status", "--json"))
        return int(status["connections"]), int(status["queues"])
    with Daemon() as daemon:
        assert wait_for(lambda: counted() == (0, 0)), counted()
        with attach(daemon.path, "one", CONSUME, REALTIME):
            assert wait_for(lambda: counted() == (1, 1)), counted()
        assert wait_for(lambda: counted() == (0, 1)), counted()


def test_queues_shows_consumers_that_go():
    with Daemon() as daemon, attach(daemon.path, "one", 0, REALTIME) as one:
        one.batch([arm(HOUR)] * 3)
        assert not row_of(daemon, "one")["consumer"]
        with attach(daemon.path, "one", CONSUME, REALTIME):
            row = row_of(daemon, "one")
            assert row["consumer_pid"] == os.getpid(), row
            assert row["connections"] == 2, row
        assert wait_for(lambda: not row_of(daemon, "one")["consumer"])
        err = ctl(daemon.path, "queues", "--queue", "two", status=1)
        assert "two" in err, err


if __name__ == "__main__":
    tap.main()
