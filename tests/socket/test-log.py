#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A log without a reader, and users who fill it. No thread waits for the log, no user
hides lines about another, and missing lines are counted."""

import fcntl
import os
import re
import resource
import signal
import subprocess
import termios
import threading
import time

import tap
from client import (CONSUME, HOUR, WAIT, Closed, Connection, Record, arm,
                    attach, wait_for)
from daemon import ENGINE, PROGRAM, ROOT, Daemon, as_user

# Lines that may wait to be written, those that may be about clients, and how
# many about one user there may be at once.
QUEUED = 128
QUEUED_CLIENTS = 96
BURST = 20

# How long the daemon may take to end when nobody reads, with much to spare.
END = WAIT / 2

FIRST, SECOND = 54321, 54322    # users without a name


class Pipe:
    """A pipe for standard error; the text that came through it is @text."""

    def __init__(self, pair=None):
        self.out, self.into = pair or os.pipe()
        self.text = b""
        self.reader = None

    def fill(self, daemon=None):
        """Leave no place in it, once the lines of the daemon's start are in it. By
        a description of our own: the daemon's, which is that of others too, is as
        it was."""
        if daemon:
            daemon.wait_logged()
        fd = os.open("/proc/self/fd/%d" % self.into,
                     os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1):
            try:
                while True:
                    os.write(fd, b"." * (size - 1) + b"\n")
            except BlockingIOError:
                pass
        os.close(fd)

    def read(self):
        """Begin to read, to the end."""
        self.reader = threading.Thread(target=self._run, daemon=True)
        self.reader.start()

    def _run(self):
        try:
            while True:
                data = os.read(self.out, 65536)
                if not data:
                    return
                self.text += data
        except OSError:     # the last one left the terminal
            pass

    def lines(self):
        """What the daemon wrote."""
        text = self.text.decode().replace("\r\n", "\n")
        return [line for line in text.split("\n") if line.strip(".")]

    def close_write(self):
        if self.into >= 0:
            os.close(self.into)
        self.into = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close_write()
        if self.reader:
            self.reader.join(WAIT)
        os.close(self.out)


def misbehave(path, count=1):
    for _ in range(count):
        with Connection(path) as one:
            one.send(Record(99))
            try:
                one.record()
            except Closed:
                pass


def listed(lines, uid=None):
    """How many lines are about a client of @uid that was ended."""
    who = "uid %d ended" % (os.getuid() if uid is None else uid)
    return sum(who in line for line in lines)


def noted(lines, words):
    """The numbers that lines with @words in them say."""
    return [int(re.search(r"(\d+) lines ", line)[1])
            for line in lines if words in line]


def left_out(lines, uid=None):
    uid = os.getuid() if uid is None else uid
    return sum(noted(lines, "clients of uid %d were left out" % uid))


def trips(queue, count):
    """Returns the longest of @count round trips, in seconds."""
    longest = 0
    for _ in range(count):
        begun = time.monotonic()
        assert queue.request(arm(HOUR)).status == 0
        longest = max(longest, time.monotonic() - begun)
    return longest


def reload(daemon):
    """Has one line written that no client caused."""
    ready = daemon.manager.count("READY=1")
    daemon.process.send_signal(signal.SIGHUP)
    assert wait_for(lambda: daemon.manager.count("READY=1") > ready)


def check_storm(daemon):
    """An honest client is served as before while others misbehave; the daemon
    ends in time."""
    with attach(daemon.path, "honest", CONSUME) as honest:
        before = trips(honest, 200)
        storm = threading.Thread(target=misbehave, args=(daemon.path, 200))
        begun = time.monotonic()
        storm.start()
        during = trips(honest, 200)
        honest.credit(1)
        assert honest.request(arm(0, 77)).status == 0
        assert honest.expiration().cookie == 77
        storm.join(WAIT)
        assert not storm.is_alive()
        seconds = time.monotonic() - begun
        during = max(during, trips(honest, 200))
        assert during < 10 * before + WAIT / 10, (before, during)
        stat = honest.stat()
        assert stat.closed_protocol == 200, stat
        # The rest is waiting.
        most = 200 - BURST
        assert most - 2 * (seconds + 1) <= stat.log_left_out <= most, stat
    begun = time.monotonic()
    assert daemon.end() == 0
    assert time.monotonic() - begun < END, time.monotonic() - begun
    # The end of the with statement would end it once more.
    daemon.end = lambda: 0


# ------------------------------------------------------------------------
# Nobody reads


def test_a_pipe_that_nobody_reads_holds_nobody_up():
    with Pipe() as pipe, Daemon("", stderr=pipe.into) as daemon:
        pipe.fill(daemon)
        reload(daemon)
        check_storm(daemon)


def stop_terminal(pipe):
    """Once the daemon has said something on it."""
    pipe.read()
    assert wait_for(lambda: "engine" in str(pipe.text))
    termios.tcflow(pipe.into, termios.TCOOFF)


def test_a_terminal_that_is_stopped_holds_nobody_up():
    with Pipe(os.openpty()) as pipe, Daemon("", stderr=pipe.into) as daemon:
        stop_terminal(pipe)
        reload(daemon)
        check_storm(daemon)


def test_a_terminal_that_goes_on_shows_whole_lines():
    with Pipe(os.openpty()) as pipe, Daemon("", stderr=pipe.into) as daemon:
        stop_terminal(pipe)
        misbehave(daemon.path, 100)
        termios.tcflow(pipe.into, termios.TCOON)
        assert wait_for(lambda: listed(pipe.lines()) +
                        left_out(pipe.lines()) == 100), pipe.text
        for line in pipe.lines():
            assert re.fullmatch(r"expiryd: (engine .*|memory: .*|client of .*|"
                                r"\d+ lines about .*)", line), line


def test_who_never_reads_does_not_keep_it_from_failing():
    with Pipe() as pipe:
        pipe.fill()
        begun = time.monotonic()
        done = subprocess.run([PROGRAM, "--threads", "0"], timeout=WAIT,
                              stderr=pipe.into, check=False)
        assert done.returncode == 2, done
        assert time.monotonic() - begun < END, time.monotonic() - begun


# ------------------------------------------------------------------------
# Read again


def test_dropped_lines_are_counted_and_said_once():
    more = 20
    with Pipe() as pipe, Daemon("", stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        flags = fcntl.fcntl(pipe.into, fcntl.F_GETFL)
        assert not flags & os.O_NONBLOCK, "others write to it, too"
        pipe.fill(daemon)
        for _ in range(QUEUED):
            reload(daemon)
        assert watch.stat().log_dropped == 0, watch.stat()
        for _ in range(more):
            reload(daemon)
        assert watch.stat().log_dropped == more, watch.stat()
        pipe.read()
        # At once, though nothing else is logged any more.
        assert wait_for(lambda: noted(pipe.lines(), "dropped")), pipe.text
        reload(daemon)
        assert wait_for(lambda: "reloaded" in pipe.lines()[-1]), pipe.text
        lines = pipe.lines()
        assert noted(lines, "dropped") == [more], lines
        # Where they are missing, and nowhere else.
        assert "dropped" in lines[-2], lines
        assert sum("reloaded" in line for line in lines) == QUEUED + 1
        assert watch.stat().log_dropped == more, watch.stat()


def test_lines_of_its_own_have_places_that_clients_do_not_take():
    tap.need_root()
    users = QUEUED_CLIENTS // BURST + 1
    with Pipe() as pipe, Daemon("", stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        pipe.fill(daemon)
        reload(daemon)
        for i in range(users):
            as_user(FIRST + i, misbehave, daemon.path, BURST)
        dropped = watch.stat().log_dropped
        # One of the daemon's waits, too.
        assert dropped == users * BURST - QUEUED_CLIENTS + 1, watch.stat()
        reload(daemon)
        assert watch.stat().log_dropped == dropped, watch.stat()
        pipe.read()
        # The first reload's line is read before those of the clients.
        assert wait_for(lambda: noted(pipe.lines(), "dropped") and
                        "reloaded" in pipe.lines()[-1]), pipe.text
        assert noted(pipe.lines(), "dropped") == [dropped], pipe.lines()
        # Before the line that came after them.
        assert "dropped" in pipe.lines()[-2], pipe.lines()


def test_others_may_have_made_it_not_block():
    with Pipe() as pipe, Daemon(stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        fcntl.fcntl(pipe.into, fcntl.F_SETFL, os.O_NONBLOCK)
        pipe.fill(daemon)
        misbehave(daemon.path, BURST)
        assert watch.stat().closed_protocol == BURST, watch.stat()
        pipe.read()
        assert wait_for(lambda: listed(pipe.lines()) == BURST), pipe.text
        assert watch.stat().log_dropped == 0, watch.stat()


def test_listed_and_left_out_are_all_there_were():
    clients = 100
    with Pipe() as pipe, Daemon(stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        pipe.fill(daemon)
        misbehave(daemon.path, clients)
        count = watch.stat().log_left_out
        assert 0 < count <= clients - BURST, watch.stat()
        pipe.read()
        # Some seconds later, though nothing else is logged any more.
        assert wait_for(lambda: left_out(pipe.lines()) == count), pipe.text
        assert listed(pipe.lines()) == clients - count, pipe.lines()
        assert watch.stat().log_dropped == 0, watch.stat()


def test_what_is_counted_is_shown():
    with Pipe() as pipe, Daemon("", stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        pipe.fill(daemon)
        for _ in range(QUEUED + 3):
            reload(daemon)
        misbehave(daemon.path, 100)
        stat = watch.stat()
        # No place is left for a single one of them.
        assert stat.log_dropped + stat.log_left_out == 103, stat

        def said(*command):
            return subprocess.run(
                [os.path.join(ROOT, "build", "expiryctl"), "--socket",
                 daemon.path, *command], stdout=subprocess.PIPE, check=True,
                text=True).stdout
        counts = stat.log_dropped, stat.log_left_out
        assert "  log          %d lines lost, %d about clients left out\n" \
            % counts in said("status"), said("status")
        assert '"log_dropped": "%d", "log_left_out": "%d"' % counts \
            in said("status", "--json"), said("status", "--json")
        lines = said("metrics").splitlines()
        assert "expiry_log_dropped_total %d" % counts[0] in lines, lines
        assert "expiry_log_left_out_total %d" % counts[1] in lines, lines


def test_what_was_left_out_is_said_at_the_end():
    with Pipe() as pipe, Daemon(stderr=pipe.into) as daemon:
        pipe.read()
        misbehave(daemon.path, 100)
        assert daemon.end() == 0
        daemon.end = lambda: 0
        pipe.close_write()
        pipe.reader.join(WAIT)
        lines = pipe.lines()
        assert listed(lines) + left_out(lines) == 100, lines


def test_a_line_that_was_cut_is_not_joined_with_the_next():
    limit = 200
    with Daemon("") as daemon:
        limits = (limit, resource.RLIM_INFINITY)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, limits)
        with attach(daemon.path) as watch:
            for _ in range(limit):
                if watch.stat().log_dropped:
                    break
                reload(daemon)
            assert os.path.getsize(daemon.log_path) == limit
            resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE,
                             (resource.RLIM_INFINITY,) * 2)
            dropped = watch.stat().log_dropped
            assert dropped, watch.stat()
            reload(daemon)
            lines = daemon.log().splitlines()
            assert noted(lines, "dropped") == [dropped], lines
            cut = [line for line in lines if not re.fullmatch(
                r"expiryd: (engine .*|memory: .*|settings reloaded|"
                r"\d+ lines were dropped.* in time)", line)]
            assert len(cut) <= 1, lines
            assert lines[-1] == "expiryd: settings reloaded", lines


# ------------------------------------------------------------------------
# The ordinary case


def test_an_error_at_the_start_is_said_wherever_that_goes():
    said = re.compile(rb"(expiryd: )?--threads: '0' .*\r?\n")
    for pair in (os.pipe(), os.openpty()):
        with Pipe(pair) as pipe:
            pipe.read()
            for _ in range(20):
                done = subprocess.run([PROGRAM, "--threads", "0"],
                                      timeout=WAIT, stderr=pipe.into,
                                      check=False)
                assert done.returncode == 2, done
            assert wait_for(lambda: len(said.findall(pipe.text)) == 20), \
                pipe.text


def test_lines_of_all_threads_are_whole():
    tap.need_root()
    with Pipe() as pipe, Daemon(stderr=pipe.into, threads=4) as daemon:
        pipe.read()

        def spoil(path):
            for i in range(40):
                with attach(path, "%d-%d" % (os.getuid(), i)) as queue:
                    queue.send(Record(65, period=1, id=7))
                    queue.ended()

        storms = [threading.Thread(target=as_user,
                                   args=(FIRST + i, spoil, daemon.path))
                  for i in range(4)]
        for storm in storms:
            storm.start()
        for storm in storms:
            storm.join(WAIT)
        assert wait_for(lambda: sum(
            listed(pipe.lines(), FIRST + i) + left_out(pipe.lines(), FIRST + i)
            for i in range(4)) == 160), pipe.lines()
        for line in pipe.lines():
            assert re.fullmatch(
                r"expiryd: (engine " + ENGINE + ".*|memory: .*|"
                r"client of pid \d+, uid \d+ ended: CREDIT with .* fields|"
                r"\d+ lines about clients of uid \d+ were left out)",
                line), line


# ------------------------------------------------------------------------
# Users


def test_one_user_does_not_hide_what_is_said_about_another():
    tap.need_root()
    with Pipe() as pipe, Daemon(stderr=pipe.into) as daemon:
        pipe.read()
        as_user(FIRST, misbehave, daemon.path, 200)
        as_user(SECOND, misbehave, daemon.path)
        assert wait_for(lambda: listed(pipe.lines(), SECOND)), pipe.lines()
        assert wait_for(lambda: listed(pipe.lines(), FIRST) +
                        left_out(pipe.lines(), FIRST) == 200), pipe.lines()
        assert left_out(pipe.lines(), SECOND) == 0, pipe.lines()


def test_nor_while_nobody_reads():
    """Lines of the first one may wait no longer than it takes for many to be
    there, and they are no more than a part of the queue."""
    tap.need_root()
    with Pipe() as pipe, Daemon(stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        pipe.fill(daemon)

        def both_left_out_and_dropped():
            as_user(FIRST, misbehave, daemon.path, 10)
            stat = watch.stat()
            return stat.log_left_out and stat.log_dropped
        assert wait_for(both_left_out_and_dropped), watch.stat()
        as_user(SECOND, misbehave, daemon.path)
        pipe.read()
        assert wait_for(lambda: listed(pipe.lines(), SECOND)), pipe.lines()


def test_many_users_have_a_bound_together():
    tap.need_root()
    users, each = 70, BURST
    with Pipe() as pipe, Daemon(stderr=pipe.into) as daemon, \
            attach(daemon.path) as watch:
        pipe.read()
        begun = time.monotonic()
        for i in range(users):
            as_user(FIRST + i, misbehave, daemon.path, each)
        seconds = time.monotonic() - begun
        count = watch.stat().log_left_out
        assert users * each - 100 - 10 * (seconds + 2) <= count \
            <= users * each - 100, (count, seconds)

        def all_noted():
            lines = pipe.lines()
            return sum(noted(lines, "were left out")) == count
        assert wait_for(all_noted), pipe.lines()
        # Who has no bucket left is left out without a name; ten seconds fill
        # the first ones again, which then have place for others.
        assert noted(pipe.lines(), "about clients were left out") or \
            seconds > 8, seconds


if __name__ == "__main__":
    tap.main()
