#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl metrics --http: one request, one answer, with untrusted clients. Limits hold
for the request's size and for the time."""

import http.client
import os
import select
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "socket"))
import tap  # noqa: E402
from client import HOUR, SCALE, WAIT, arm, attach  # noqa: E402
from daemon import ROOT, Daemon  # noqa: E402

CTL = os.path.join(ROOT, "build", "expiryctl")
HEAD_MAX = 8192
LIMIT = 5           # seconds for a request, again for the daemon, the answer
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Exchange:
    """A connection as systemd passes it: both outputs of the tool."""

    def __init__(self, path, room=None):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(WAIT)
        if room:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [CTL, "--socket", path, "metrics", "--http"], stdin=theirs,
            stdout=theirs, stderr=subprocess.PIPE, text=True)
        theirs.close()

    def send(self, data):
        """Returns whether the tool took the bytes."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def answer(self):
        """Status, {header: value} and body; all None if there was nothing."""
        data = b""
        # Read to the end: an answer before a reset does not count.
        while more := self.socket.recv(1 << 16):
            data += more
        if not data:
            return None, None, None
        head, body = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        version, status, reason = first.split(" ", 2)
        assert version == "HTTP/1.1", first
        assert reason == http.client.responses[int(status)], first
        return int(status), dict(line.split(": ", 1) for line in lines), body

    def end(self):
        """Returns the tool's exit status, its standard error, and its duration."""
        self.socket.close()
        err = self.process.communicate(timeout=WAIT)[1]
        return self.process.returncode, err, time.monotonic() - self.begun


def ask(path, request, shut=False):
    """Returns the answer to a request; the tool must succeed."""
    exchange = Exchange(path)
    exchange.send(request)
    if shut:
        exchange.socket.shutdown(socket.SHUT_WR)
    answer = exchange.answer()
    status, err, _ = exchange.end()
    assert status == 0 and err == "", (status, err)
    return answer


def test_answers(daemon):
    with attach(daemon.path, "leases") as queue:
        queue.batch([arm(HOUR)] * 3)
        for request in (GET, GET.replace(b"\r\n", b"\n"),
                        GET.replace(b"1.1", b"1.0"),
                        GET.replace(b" HTTP", b"?a=b HTTP")):
            status, headers, body = ask(daemon.path, request)
            assert status == 200, (request, status)
            assert int(headers["Content-Length"]) == len(body), headers
            assert headers["Content-Type"] == ("application/openmetrics-text; "
                                               "version=1.0.0; charset=utf-8")
            assert headers["Connection"] == "close", headers
            assert body.startswith(b"# TYPE ") and \
                body.endswith(b"\n# EOF\n"), body
            assert b'\nexpiry_queue_armed{queue="leases"} 3\n' in body
        status, headers, body = ask(daemon.path, GET.replace(b"GET", b"HEAD"))
        assert status == 200 and body == b"", body
        assert int(headers["Content-Length"]) > 1000, headers


def test_request_in_pieces(daemon):
    exchange = Exchange(daemon.path)
    for i in range(len(GET)):
        exchange.send(GET[i:i + 1])
    assert exchange.answer()[0] == 200
    assert exchange.end()[0] == 0


def test_pipes_will_do(daemon):
    """The tool works in `printf ... | expiryctl metrics --http`."""
    out = subprocess.run([CTL, "--socket", daemon.path, "metrics", "--http"],
                         input=GET, stdout=subprocess.PIPE, check=True).stdout
    assert out.startswith(b"HTTP/1.1 200 OK\r\n") and \
        out.endswith(b"# EOF\n"), out


def test_what_is_no_such_request(daemon):
    long = b"GET /metrics HTTP/1.1\r\nX: " + b"x" * HEAD_MAX
    for request, expected in (
            (GET.replace(b"GET", b"POST"), 405),
            (GET.replace(b"GET", b"get"), 405),
            (GET.replace(b"/metrics", b"/"), 404),
            (GET.replace(b"/metrics", b"/metrics/"), 404),
            (GET.replace(b"/metrics", b"/metrics\x01"), 404),
            (GET.replace(b"HTTP/1.1", b"HTTP/2.0"), 400),
            (GET.replace(b" HTTP/1.1", b""), 400),
            (GET.replace(b"HTTP/1.1", b"HTTP/1.1 x"), 400),
            (GET.replace(b"Host", b"Ho\0st"), 400),
            (b"\r\n\r\n", 400), (b"\n", 400), (b" \n\n", 400),
            (b"\xff" * 100 + b"\n\n", 400),
            (b"x" * (HEAD_MAX + 1), 431),
            (b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 3000, 431),
            (long + b"\r\n\r\n", 431),
            # The longest allowed request.
            (long[:HEAD_MAX - 4] + b"\r\n\r\n", 200)):
        status, headers, body = ask(daemon.path, request)
        assert status == expected, (request[:60], status)
        assert int(headers["Content-Length"]) == len(body), headers
        assert ("Allow" in headers) == (status == 405), headers


def test_one_that_ends_early(daemon):
    assert ask(daemon.path, b"", shut=True) == (None, None, None)
    assert ask(daemon.path, GET[:-2], shut=True)[0] == 400
    # Neither is an empty line, so the head has not ended.
    for line in b"x\n", b"\rx\n":
        request = b"GET /metrics HTTP/1.1\r\n" + line
        assert ask(daemon.path, request, shut=True)[0] == 400, line
    exchange = Exchange(daemon.path)
    exchange.send(GET[:10])
    assert exchange.end()[0] == 0


def test_one_that_takes_its_time(daemon):
    """Slow clients run together, which takes as long as one."""
    silent, slow = Exchange(daemon.path), Exchange(daemon.path)
    deaf, endless = Exchange(daemon.path, 4096), Exchange(daemon.path)
    deaf.send(GET)
    endless.send(GET)
    while time.monotonic() - endless.begun < LIMIT + 1:
        slow.send(b"x")
        # The client has its answer, and still sends.
        endless.send(b"x" * 1000)
        time.sleep(0.1)
    # More bytes do not give it more time.
    while not select.select([slow.socket], [], [], 0.1)[0]:
        assert time.monotonic() - slow.begun < 2 * LIMIT * SCALE
        slow.send(b"x")
    assert silent.answer()[0] == 408
    assert LIMIT <= time.monotonic() - silent.begun < 2 * LIMIT * SCALE
    assert slow.answer()[0] == 408
    assert deaf.process.wait(WAIT) == 1
    assert endless.process.wait(WAIT) == 0
    for exchange in silent, slow, deaf, endless:
        exchange.end()


def test_no_daemon():
    exchange = Exchange("/nonexistent/socket")
    exchange.send(GET)
    status, _, body = exchange.answer()
    assert status == 503 and body == b"Service Unavailable\n", (status, body)
    status, err, _ = exchange.end()
    assert status == 1 and "/nonexistent/socket" in err, err


def test_a_daemon_that_hangs():
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.path.join(folder, "socket"))
        listener.listen()
        exchange = Exchange(listener.getsockname())
        exchange.send(GET)
        assert exchange.answer()[0] == 503
        status, _, seconds = exchange.end()
        assert status == 1 and seconds < 3 * LIMIT * SCALE, seconds


def test_not_without_its_option(daemon):
    run = subprocess.run([CTL, "--socket", daemon.path, "status", "--http"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, check=False)
    assert run.returncode == 2 and "--http" in run.stderr, run


if __name__ == "__main__":
    tap.main()
