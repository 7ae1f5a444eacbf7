#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/run: alone, because it measures when the watchdog is answered.
"""The service manager's watchdog: how often the daemon answers it, under load, too."""

import time

import tap
from client import QUERY, SCAN, SLOWER, Record, arm, wait_for
from daemon import THREADS, Daemon
from flood import Flood
from stalls import Stalls


TRIES = 5       # of a machine that may be busy with other things


def check_watchdog(daemon, period, count):
    """That it is answered each half @period, in seconds: not more often, and
    less often only by what a busy machine makes of it: in one of these tries that is
    next to nothing."""
    for left in reversed(range(TRIES)):
        try:
            check_answers(daemon, period, count)
            return
        except AssertionError:
            if not left:
                raise


def check_answers(daemon, period, count):
    """Judges the next @count answers."""
    begun = time.monotonic()

    def answers():
        return [at for at in daemon.manager.when("WATCHDOG=1") if at > begun]
    with Stalls() as stalls:
        assert wait_for(lambda: len(answers()) > count), daemon.manager.messages
        stall = stalls.worst()
    times = answers()[:count + 1]
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert gaps[-1] < period * SLOWER + stall, \
        "too late for the manager: %s, beside a stall of %.3f s" % (gaps, stall)
    assert gaps[count // 2] < period / 2 * 1.2, "too seldom: %s" % gaps
    assert times[-1] - times[0] > count * period / 2 * 0.9, \
        "too often: %s" % gaps


def test_watchdog_is_answered_each_half_of_its_time():
    for threads in (1, 3):
        for period, count in ((0.4, 8), (1, 4)):
            with Daemon(threads=threads, environment={
                    "WATCHDOG_USEC": "%d" % (period * 10**6)}) as daemon:
                check_watchdog(daemon, period, count)


def test_watchdog_is_answered_under_load():
    for threads in (1, 3):
        with Daemon(threads=threads,
                    environment={"WATCHDOG_USEC": "400000"}) as daemon:
            with Flood(daemon.path, [[arm(0, flags=0), Record(QUERY, id=77)]] * 2 +
                       [[Record(SCAN, period=100)]] * 2):
                check_watchdog(daemon, 0.4, 8)


def test_watchdog_is_not_answered_by_one_that_is_stuck():
    with Daemon(environment={"WATCHDOG_USEC": "200000"}) as daemon:
        with daemon.halted():
            # What was sent before is there.
            time.sleep(0.1)
            before = daemon.manager.count("WATCHDOG=1")
            time.sleep(0.5)
            assert daemon.manager.count("WATCHDOG=1") == before
        assert wait_for(lambda: daemon.manager.count("WATCHDOG=1") > before)


def test_watchdog_of_another_process_is_not_ours():
    with Daemon(environment={"WATCHDOG_USEC": "100000",
                             "WATCHDOG_PID": "1"}) as daemon:
        time.sleep(0.5)
        assert not daemon.manager.has("WATCHDOG=1")


def wakeups(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        for line in file:
            if line.startswith("voluntary_ctxt_switches"):
                return int(line.split()[1])
    return 0


def test_idle_daemon_wakes_for_the_watchdog_alone():
    with Daemon(environment={"WATCHDOG_USEC": "1000000"}) as daemon:
        time.sleep(0.7)
        begun = time.monotonic()
        before = wakeups(daemon.process.pid)
        messages = len(daemon.manager.messages)
        wait_for(lambda: len(daemon.manager.messages) >= messages + 4)
        woken = wakeups(daemon.process.pid) - before
        told = daemon.manager.messages[messages:]
        # Every 500 ms; each may take a turn more, and other threads' answers
        # one each.
        most = 2 * (time.monotonic() - begun) + 1
        assert 4 <= len(told) <= most, (told, most)
        assert woken <= (THREADS + 0.5) * most, (woken, most)
        # What has not changed is not told again.
        assert not [text for text in told if "STATUS" in text], told


if __name__ == "__main__":
    tap.main()
