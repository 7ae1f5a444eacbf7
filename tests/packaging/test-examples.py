#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of examples/ do what their first lines say, in the normal build and
under the sanitizers, which find leaks."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                              # noqa: E402
from client import (ACKING, DURABLE, KEYED, REALTIME, SCALE, WAIT,   # noqa: E402
                    attach, wait_for)
from daemon import ROOT, Daemon         # noqa: E402

FOLDER = os.path.join(ROOT, "examples")
BUILT = [os.path.join(ROOT, "build", "examples"),
         os.path.join(ROOT, "build", "asan", "examples")]
GONE = "connection"         # a word of ECONNRESET's message


class Program:
    """A running example; its outputs are pipes."""

    def __init__(self, path, program, *arguments, **keywords):
        environment = dict(os.environ, EXPIRY_SOCKET=path,
                           UBSAN_OPTIONS="halt_on_error=1")
        self.process = subprocess.Popen(
            [program, *arguments], env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **keywords)

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def write(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def end(self, status=0):
        """Returns the rest of both outputs."""
        out, err = self.process.communicate(timeout=WAIT)
        assert self.process.returncode == status, \
            (self.process.returncode, out, err)
        assert not err if status == 0 else err.count("\n") == 1, err
        return out.splitlines() if status == 0 else err


def each(name):
    """Yields an example's programs; none if its library is not installed."""
    if name.endswith(".py"):
        return [os.path.join(FOLDER, name)]
    programs = [os.path.join(folder, name) for folder in BUILT]
    if not all(os.path.exists(program) for program in programs):
        raise tap.Skip("%s is not built" % name)
    return programs


def test_first(daemon):
    for program in each("first"):
        before = time.monotonic()
        assert Program(daemon.path, program).end() == \
            ["session 1001 has expired: 42"]
        assert time.monotonic() - before >= 2


def test_durable():
    """The daemon is killed with -9, and a trial ends before the next one starts."""
    seconds = 4 * SCALE
    for program in each("durable"):
        with tempfile.TemporaryDirectory() as folder:
            path, options = os.path.join(folder, "socket"), ["--journal", folder]
            with Daemon() as plain:
                assert "no journal" in Program(plain.path, program).end(1)
            first = Daemon(path=path, options=options)
            assert first.wait_ready(), first.log()
            for number, after in (8, 3600), (8, seconds), (7, 0):
                armed = Program(path, program, "arm", str(number), str(after))
                assert armed.end() == []
            running = Program(path, program, "2")
            assert running.line() == "trial 7 has ended"
            with attach(path, "trials", DURABLE | KEYED | ACKING, REALTIME) as client:
                assert wait_for(lambda: client.stat().acks == 1)
            first.remove()
            time.sleep(seconds)
            with Daemon(path=path, options=options):
                rest = running.end()
            assert len(rest) == 1 and \
                rest[0].startswith("trial 8 has ended, while there was no daemon"), rest


def test_poll(daemon):
    for program in each("poll"):
        running = Program(daemon.path, program)
        # A read may split lines.
        for piece in ("0.2 te", "a\n0.1 toast\n0 now\n"):
            running.write(piece)
        assert running.line() == "now"
        running.process.stdin.close()
        running.process.stdin = None
        assert running.end() == ["toast", "tea"]


class Server(Program):
    """The server of epoll.c with a number of connections."""

    def __init__(self, daemon, program, milliseconds, connections):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        super().__init__(daemon.path, program, self.path, "%d" % milliseconds)
        self.connections = [self.connect() for _ in range(connections)]

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(WAIT)
        assert wait_for(lambda: not connection.connect_ex(self.path))
        return connection

    def echo(self, number):
        self.connections[number].sendall(b"x")
        return self.connections[number].recv(10)

    def end(self, status=0):
        with self.folder:
            return super().end(status)


def test_epoll(daemon):
    for program in each("epoll"):
        server = Server(daemon, program, 3600000, 2)
        assert server.echo(0) == server.echo(1) == b"x"
        server.connections[0].close()
        assert server.line() == "closed"
        assert server.echo(1) == b"x"
        assert server.end() == []


def test_epoll_and_idle_connections(daemon):
    """Input keeps a connection open for another period."""
    limit = 1.0 * SCALE
    for program in each("epoll"):
        server = Server(daemon, program, limit * 1000, 2)
        began = time.monotonic()
        while time.monotonic() - began < limit / 5:
            last = time.monotonic()
            assert server.echo(0) == b"x"
        assert server.connections[1].recv(10) == b""
        assert server.connections[0].recv(10) == b""
        assert time.monotonic() - last >= limit
        assert server.end() == ["idle", "idle"]


def test_sd_event(daemon):
    for program in each("sd-event"):
        assert Program(daemon.path, program, "jobs", "0.2", "second",
                       "0.1", "first").end() == ["first", "second"]
        running = Program(daemon.path, program, "jobs", "0", "now", "3600",
                          "never")
        assert running.line() == "now"
        running.process.terminate()
        assert running.end() == []


def test_sd_event_and_a_daemon_that_is_restarted():
    """The next daemon has lost the jobs; the program arms them again."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        for program in each("sd-event"):
            with Daemon(path=path):
                running = Program(path, program, "jobs", "0", "before",
                                  "1.5", "after")
                assert running.line() == "before"
            assert running.process.poll() is None
            with Daemon(path=path):
                assert running.end() == ["after"]


def test_glib(daemon):
    for program in each("glib"):
        running = Program(daemon.path, program, "%d" % (1000 * SCALE))
        running.write("ann\nbob\nann\n")
        assert running.end() == ["ann is here", "bob is here", "bob has left",
                                 "ann has left"]


def test_libuv(daemon):
    for program in each("libuv"):
        lines = Program(daemon.path, program, "0.1", "exit 3", "0",
                        "echo tea").end()
        assert sorted(lines) == ["echo tea: status 0", "exit 3: status 3",
                                 "tea"], lines


def test_io_uring(daemon):
    for program in each("io_uring"):
        pipes = [os.pipe() for _ in range(2)]
        names = ["/dev/fd/%d" % read for read, _ in pipes]
        running = Program(daemon.path, program, "300", *names,
                          pass_fds=[read for read, _ in pipes])
        os.write(pipes[0][1], b"hello\n")
        os.close(pipes[0][1])
        assert running.end() == [
            "hello", names[0] + ": end", names[1] + ": Operation canceled"]
        for fd in (pipes[0][0], *pipes[1]):
            os.close(fd)


def test_by_hand(daemon):
    for program in each("by-hand.py"):
        assert Program(daemon.path, program, "0.2", "tea", "0.1",
                       "toast").end() == ["toast", "tea"]


# Name, arguments, and the output when it runs.
WAITING = [
    ("poll", [], "0 x\n"),
    ("glib", ["3600000"], "x\n"),
    ("libuv", ["0", "echo x", "3600", "true"], None),
    ("by-hand.py", ["0", "x", "3600", "y"], None),
]


def test_a_daemon_that_ends():
    """One line says so, and the status is 1."""
    for name, arguments, text in WAITING:
        for program in each(name):
            with Daemon() as daemon:
                running = Program(daemon.path, program, *arguments)
                if text:
                    running.write(text)
                assert running.line()
            # The end of its input would be another reason to end.
            running.process.wait(WAIT)
            said = running.end(1)
            assert GONE in said, (name, said)


def test_no_daemon():
    for name, arguments in [(name, arguments) for name, arguments, _ in
                            WAITING] + [("first", []), ("sd-event", ["q", "0", "x"]),
                                        ("io_uring", ["1", "/dev/null"])]:
        for program in each(name):
            said = Program("/nonexistent", program, *arguments).end(1)
            assert "AddressSanitizer" not in said, said


def test_each_is_one_page_and_listed():
    with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
        listed_files = set(re.findall(r"\]\(([a-z_-]+\.(?:c|py))\)", file.read()))
    files = {name for name in os.listdir(FOLDER) if name.endswith((".c", ".py"))}
    assert files == listed_files, files ^ listed_files
    for name in files:
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        assert len(lines) <= 140, (name, len(lines))
        assert max(len(line.expandtabs(8)) for line in lines) <= 84, name


if __name__ == "__main__":
    tap.main()
