#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs arm, move, take and acknowledge without a break while the daemon is
killed, reloaded, restarted, upgraded and stopped by its watchdog: none of them
sees an error, and each timer comes, not early, twice only if it says so."""

import os
import random
import shutil
import signal
import subprocess
import time

from packages import built, later
from service import (LATER, LIMIT, PROGRAM, ROOT, SOCKET, UNIT, Cursor, ctl,
                     drop, figure, keep, kept, main, output_of, serves, show,
                     scaled, status, systemctl, tap, wait_for)

KILLS = int(os.environ.get("EXPIRY_TEST_KILLS", scaled(200)))
USERS = "root", "daemon", "nobody"
# What the daemon may write into the journal for each time it starts.
LINES_A_START = 4

moments = random.Random(1)


class Programs:
    """One for each user, at work from the first test on."""

    def __init__(self):
        # Where other users can look.
        program = shutil.copy(os.path.join(ROOT, "build/tests/systemd/load"),
                              "/tmp/load")
        os.chmod(program, 0o755)
        self.running = {
            user: subprocess.Popen([program, SOCKET, "load-" + user], user=user,
                                   stdout=subprocess.PIPE, text=True)
            for user in USERS}
        self.journal = Cursor()
        self.starts = 0

    def work(self):
        """Whether none has given up."""
        return all(p.poll() is None for p in self.running.values())

    def end(self):
        """What each says in the end: by user, (exit status, figures)."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        said = {}
        for user, process in self.running.items():
            text = process.communicate(timeout=4 * LIMIT)[0]
            said[user] = process.returncode, {
                name: int(number) for name, number in
                (word.split("=") for word in text.split())}
        return said


def programs():
    """Those at work."""
    if not hasattr(programs, "one"):
        serves()
        programs.one = Programs()
        assert wait_for(lambda: kept() == len(USERS), LIMIT)
    assert programs.one.work(), "one has ended"
    return programs.one


def test_both_statuses_tell_of_programs_at_work():
    programs()
    text = "%d queues kept over a restart" % len(USERS)
    # The status is brought up to date with the watchdog's answer.
    assert wait_for(lambda: text in show("StatusText"), LIMIT), show("StatusText")
    assert ", %d clients" % len(USERS) in show("StatusText")
    # The one that asks counts neither itself nor a queue.
    told = status()
    assert told["queues"] == told["connections"] == str(len(USERS)), told
    keep("expiryctl-status", ctl("status"))
    keep("expiryctl-top", ctl("top", "load-root", "--count", "3"))
    keep("systemctl-status",
         systemctl("status", "--no-pager", "--full", "--lines=0", UNIT))


def test_killed_at_random_moments():
    at_work, began = programs(), time.monotonic()
    before = kills = int(show("NRestarts"))
    pid = serves()
    while kills < before + KILLS:
        time.sleep(moments.random() * 0.3)
        # Now and then while it reads its settings, or before it is ready.
        if moments.random() < 0.1:
            systemctl("reload", "--no-block", UNIT, check=False)
        systemctl("kill", "--signal=KILL", UNIT, check=False)
        if moments.random() < 0.8:
            pid = serves(pid)
        kills = int(show("NRestarts"))
        assert show("ActiveState") != "failed", systemctl("status", UNIT)
        assert at_work.work(), "a program ended after %d" % (kills - before)
    serves()
    at_work.starts += kills - before
    figure("%d kills in %.0f s" % (kills - before, time.monotonic() - began))
    assert kept() == len(USERS), kept()


def test_reloaded():
    at_work, pid, count = programs(), serves(), scaled(20)
    for _ in range(count):
        systemctl("reload", UNIT)
        time.sleep(moments.random() * 0.2)
    assert serves() == pid and at_work.work()
    figure("%d times" % count)


def test_restarted():
    at_work, pid, count = programs(), serves(), scaled(20)
    for _ in range(count):
        systemctl("restart", UNIT)
        pid = serves(pid)
        time.sleep(moments.random() * 0.2)
    at_work.starts += count
    assert at_work.work()
    figure("%d times" % count)


def version(pid):
    """Of the program that runs as @pid."""
    return output_of("/proc/%d/exe" % pid, "--version").split()[1]


def test_upgraded_to_another_build_and_back():
    at_work, pid = programs(), serves()
    first = version(pid)
    shutil.copy(PROGRAM, "/tmp/expiryd-first")
    for build in LATER, "/tmp/expiryd-first":
        # As install(1) does: the file that runs is another one.
        output_of("install", build, PROGRAM)
        systemctl("restart", UNIT)
        pid = serves(pid)
        wanted = output_of(build, "--version").split()[1]
        assert version(pid) == wanted, (version(pid), wanted)
        time.sleep(1)
        assert at_work.work()
        if build == LATER:
            assert wanted != first
            figure("%s, %s, and back" % (first, wanted))
    at_work.starts += 2


def test_upgraded_as_a_package_and_back():
    at_work, pid = programs(), serves()
    packages = built()
    # Over what `make install` brought: the service runs and is left alone.
    output_of("dpkg", "-i", *packages)
    assert serves() == pid and at_work.work()
    versions = []
    for wanted in [later(path) for path in packages], packages:
        output_of("dpkg", "-i", *wanted)
        pid = serves(pid)
        for path in wanted:
            name = output_of("dpkg-deb", "-f", path, "Package")
            number = output_of("dpkg-deb", "-f", path, "Version")
            assert output_of("dpkg-query", "-W", "-f", "${Status} ${Version}",
                             name) == "install ok installed " + number
        versions.append((number, version(pid)))
        assert show("ActiveState", "expiryd.socket") == "active"
        assert kept() == len(USERS), kept()
        time.sleep(1)
        assert at_work.work()
    second, first = versions
    assert second == tuple(number + "+later" for number in first), versions
    figure("%s, %s, and back" % (first[0], second[0]))
    at_work.starts += 2


def ended_well(killed):
    """End the programs and see that nothing is amiss: a figure of it all. @killed:
    often enough for something to have come twice."""
    said = programs.one.end()
    del programs.one
    sums = {}
    for user, (code, figures) in said.items():
        assert code == 0, (user, code, figures)
        assert figures["moved"] and figures["reconnects"], (user, figures)
        for name, number in figures.items():
            sums[name] = max(sums.get(name, 0), number) \
                if name == "pause_ms" else sums.get(name, 0) + number
    for user in USERS:
        drop("load-" + user, user=user)
    # Else nothing was there to be marked.
    assert sums["again"] or not killed, sums
    figure("%(armed)d armed, %(moved)d moved, %(delivered)d delivered, "
           "%(redelivered)d redelivered, %(again)d of them a second time, "
           "%(lost)d lost, %(early)d early, %(duplicate)d twice unmarked, "
           "%(reconnects)d reconnections, longest pause %(pause_ms)d ms" % sums)


def need_programs():
    if not hasattr(programs, "one"):
        raise tap.Skip("nothing was at work")


def test_journal_is_not_filled():
    need_programs()
    own = [e for e in programs.one.journal.entries()
           if e.get("SYSLOG_IDENTIFIER") == "expiryd"]
    figure("%d lines in %d starts" % (len(own), programs.one.starts))
    assert len(own) >= programs.one.starts
    assert len(own) <= programs.one.starts * LINES_A_START, own[-20:]
    bad = [e for e in own if int(e["PRIORITY"]) < 4]
    assert not bad, bad


def test_nothing_was_lost_early_or_twice_without_a_mark():
    need_programs()
    ended_well(killed=KILLS >= 100)


def test_stuck_daemon_is_ended_by_the_watchdog():
    at_work, pid = programs(), serves()
    time.sleep(1)
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    assert wait_for(lambda: int(show("MainPID")) != pid, LIMIT)
    figure("after %.0f s" % (time.monotonic() - began))
    serves(pid)
    told = [e["MESSAGE"] for e in at_work.journal.entries()
            if "atchdog" in str(e["MESSAGE"])]
    assert told, "no word of a watchdog"


def test_nothing_was_lost_by_that_either():
    need_programs()
    ended_well(killed=False)


if __name__ == "__main__":
    main()
