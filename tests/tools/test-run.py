#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl run: the command runs when it is due, not before, even if the daemon
restarts."""

import contextlib
import errno
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                                      # noqa: E402
from client import (ARM, BOOTTIME, EXPIRED, HELLO, REALTIME,    # noqa: E402
                    SCALE, SIZE, WAIT, Record, attach, unpack, wait_for)
from daemon import ROOT, Daemon                                 # noqa: E402
from stepper import told                                        # noqa: E402

CTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build", "expiryctl"))


def start(path, *arguments, **more):
    return subprocess.Popen([CTL, "--socket", path, "run", *arguments],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **more)


def end(process):
    """Returns output and exit status."""
    output, _ = process.communicate(timeout=WAIT)
    return output, process.returncode


def test_command_runs_when_it_is_due():
    with Daemon() as daemon:
        before = time.monotonic()
        said = end(start(daemon.path, "--in", "700ms", "--", "echo", "--json",
                         "tea"))
        assert said == ("--json tea\n", 0), said
        assert 0.7 <= time.monotonic() - before < WAIT


def test_exit_status_is_the_commands():
    with Daemon() as daemon:
        assert end(start(daemon.path, "--in", "1ms", "--", "sh", "-c",
                         "exit 42")) == ("", 42)
        said, status = end(start(daemon.path, "--in", "1ms", "--",
                                 "/nonexistent/command"))
        assert status == 127 and "/nonexistent/command" in said, said
        assert end(start(daemon.path, "--in", "1ms", "--", "/etc"))[1] == 126


def test_time_of_day():
    with Daemon() as daemon:
        at = time.time() + 2
        environment = dict(os.environ, TZ="MSK-3")
        text = time.strftime("%H:%M:%S", time.gmtime(at + 3 * 3600))
        said = end(start(daemon.path, "--at", text, "--", "date", "+%s",
                         env=environment))
        assert said[1] == 0 and int(said[0]) >= int(at), said
        assert int(said[0]) - at < WAIT, said


def test_a_clock_that_is_set_does_not_end_it():
    with told() as (daemon, step), attach(daemon.path) as watch:
        at = time.time() + 3
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        process = start(daemon.path, "--at", text, "--", "date", "+%s")
        assert wait_for(lambda: watch.stat().queues > 1)
        for _ in range(3):
            step()
        said = end(process)
        assert said[1] == 0 and int(said[0]) >= int(at), said


def test_time_that_has_passed_is_due_at_once():
    with Daemon() as daemon:
        said = end(start(daemon.path, "--at", "2020-01-01T00:00:00Z", "--",
                         "echo", "late"))
        assert said == ("late\n", 0), said


def test_runs_although_the_daemon_is_killed():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "socket")
        first = Daemon(path=path)
        assert first.wait_ready(), first.log()
        before = time.monotonic()
        # Both are armed before the first is due, in a busy guest, too.
        seconds = 1 if SCALE == 1 else 10
        soon = start(path, "--in", "%ds" % seconds, "--", "echo", "soon")
        later = start(path, "--in", "%ds" % (seconds + 2), "--", "echo", "later")
        with attach(path) as queue:
            assert wait_for(lambda: queue.stat().queues == 3)
        first.process.kill()
        first.process.wait()
        first.remove()
        # The first is due while no daemon runs.
        time.sleep(seconds + 0.2)
        assert soon.poll() is None
        with Daemon(path=path):
            assert end(soon) == ("soon\n", 0)
            assert end(later) == ("later\n", 0)
            assert time.monotonic() - before >= seconds + 2


class Script(contextlib.ExitStack):
    """A daemon of the test, with one run as its client."""

    def __init__(self):
        super().__init__()
        folder = self.enter_context(tempfile.TemporaryDirectory())
        self.listener = self.enter_context(
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self.listener.settimeout(WAIT)
        self.listener.bind(os.path.join(folder, "socket"))
        self.listener.listen()
        self.process = start(self.listener.getsockname(), "--in", "1h", "--",
                             "echo", "tea")
        self.callback(self.process.kill)

    def connect(self, hello=0, arm=0, is_due=False):
        """Serves a connection. @hello, @arm: errno of their refusals."""
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(WAIT)
            first, = unpack(connection.recv(SIZE, socket.MSG_WAITALL))
            assert first.op == HELLO, first
            connection.sendall(bytes(Record(HELLO, first.flags, -hello, first.period,
                                            cookie=0 if hello else 1000)))
            if hello:
                return
            request = first
            while request.op != ARM:    # there is credit, too
                request, = unpack(connection.recv(SIZE, socket.MSG_WAITALL))
            connection.sendall(bytes(request._replace(status=-arm, id=1)))
            if is_due:
                connection.sendall(bytes(request._replace(op=EXPIRED, id=1)))
                self.process.wait(WAIT)


def test_refusals_after_a_restart_may_pass():
    errnos = (errno.EBUSY, errno.EDQUOT, errno.ENOSPC, errno.ENOMEM,
              errno.EMFILE, errno.ENFILE, errno.EAGAIN)
    with contextlib.ExitStack() as stack:
        scripts = [stack.enter_context(Script()) for _ in errnos]
        for script in scripts:
            script.connect()
        for script, error in zip(scripts, errnos):
            script.connect(hello=error)
        for script, error in zip(scripts, errnos):
            script.connect(arm=error)
        for script in scripts:
            script.connect(is_due=True)
        for script, error in zip(scripts, errnos):
            assert end(script.process) == ("tea\n", 0), error


def test_other_refusals_are_of_their_request():
    """The first ones, too: a user waits for them."""
    for connections, text in (
            ([{"arm": errno.EDQUOT}], "as many timers as one user may"),
            ([{"hello": errno.EBUSY}], "as many connections as it allows"),
            ([{}, {"arm": errno.EIO}], "engine or the journal failed")):
        with Script() as script:
            for refusals in connections:
                script.connect(**refusals)
            said, status = end(script.process)
            assert status == 1 and text in said, said


def clock_asked_for(*arguments):
    """Returns the clock in the HELLO of a run."""
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.settimeout(WAIT)
        listener.bind(os.path.join(folder, "socket"))
        listener.listen()
        process = start(listener.getsockname(), *arguments, "--", "true")
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(WAIT)
            hello = connection.recv(SIZE, socket.MSG_WAITALL)
        process.kill()
        process.communicate()
        return struct.unpack_from("=BBhI", hello)[3]


def test_clock_is_the_walls_for_a_date_alone():
    """A duration is on the clock that includes suspend."""
    assert clock_asked_for("--in", "1h") == BOOTTIME
    assert clock_asked_for("--at", "+1h") == BOOTTIME
    assert clock_asked_for("--at", "2096-01-01T00:00:00Z") == REALTIME
    assert clock_asked_for("--at", "12:00") == REALTIME


def test_no_daemon_at_the_start_is_an_error():
    said, status = end(start("/nonexistent/socket", "--in", "1s", "--", "true"))
    assert status == 1 and "no daemon answers" in said, said
    assert said.count("\n") == 1, said


def test_wrong_calls():
    for arguments in (["--", "true"], ["--in", "1s"], ["--in", "soon", "true"],
                      ["--in", "1s", "--at", "12:00", "true"],
                      ["--at", "25:00", "true"],
                      ["--in", "1s", "--queue", "q", "true"]):
        said, status = end(start("/nonexistent/socket", *arguments))
        assert status == 2 and said.startswith("expiryctl: "), (arguments, said)


if __name__ == "__main__":
    tap.main()
