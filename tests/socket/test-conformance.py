#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/conformance, a client with a model, against this daemon: it finds
nothing wrong, and notices when something is.

EXPIRY_TEST_OPERATIONS: how many requests (default: 200000, a quarter where the
engine is slow); EXPIRY_TEST_SEED: what chance draws (default: 12)."""

import os
import select
import socket
import subprocess
import tempfile
import threading

import tap
from client import ARM, HOUR, QUERY, SIZE, SLOWER, WAIT, scaled, unpack
from daemon import PROGRAM, ROOT

CONFORMANCE = os.path.join(ROOT, "tests", "conformance", "conformance")
IS_SLOW = os.path.realpath(PROGRAM) == os.path.realpath(tap.SLOW)
OPERATIONS = os.environ.get("EXPIRY_TEST_OPERATIONS") or \
    str(scaled(50000 if IS_SLOW else 200000))
SEED = os.environ.get("EXPIRY_TEST_SEED", "12")


def run(path, *arguments):
    """The exit status and what it prints."""
    # On an emulated machine a turn of the daemon takes as many times longer.
    slack = 250 * SLOWER
    done = subprocess.run(
        [CONFORMANCE, "--socket", path, "--seed", SEED, "--slack-ms",
         str(slack), "--patience", str(WAIT), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    return done.returncode, done.stdout


class Forger:
    """A server between client and daemon that changes records on their way:
    change(record) returns what the client gets, as bytes."""

    def __init__(self, daemon, change):
        self.folder = tempfile.TemporaryDirectory(prefix="forger-")
        self.path = os.path.join(self.folder.name, "socket")
        self.daemon, self.change = daemon, change
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        self.folder.cleanup()

    def serve(self):
        peers, rest = {}, {}
        while True:
            ready = select.select([self.listener, *peers], [], [])[0]
            if self.listener in ready:
                try:
                    client = self.listener.accept()[0]
                except OSError:
                    break
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.daemon.path)
                peers[client], peers[server] = server, client
                rest[server] = b""
            for one in ready:
                if one in peers and not self.pass_on(one, peers[one], rest):
                    for end in (one, peers[one]):
                        del peers[end]
                        end.close()
        for one in peers:
            one.close()

    def pass_on(self, one, other, rest):
        """Whether there may be more."""
        try:
            data = one.recv(1 << 16)
            if one in rest:
                data = rest[one] + data
                whole = len(data) // SIZE * SIZE
                rest[one] = data[whole:]
                data = b"".join(self.change(record)
                                for record in unpack(data[:whole]))
                other.sendall(data)
                return bool(data or rest[one])
            other.sendall(data)
            return bool(data)
        except OSError:
            return False


def forge(daemon, change, operations="2000"):
    """What conformance says when records are changed; it must end by 1."""
    with Forger(daemon, change) as forger:
        status, text = run(forger.path, "--operations", operations, "--queues",
                           "3")
    assert status == 1, (status, text)
    for word in ("seed " + SEED, "step", "queue", "wrong:", "sent:",
                 "received:", "allowed:", "failed:"):
        assert word in text, (word, text)
    return text


def test_random_requests_find_nothing_wrong(daemon):
    status, text = run(daemon.path, "--operations", OPERATIONS)
    assert status == 0, text
    assert text.startswith("ok: "), text
    numbers = dict(zip(("operations", "expirations"),
                       (int(word) for word in text.split() if word.isdigit())))
    assert numbers["operations"] >= int(OPERATIONS), text
    assert numbers["expirations"] > 0, text


def test_several_processes_share_the_operations(daemon):
    status, text = run(daemon.path, "--quick", "--operations",
                       str(scaled(8000)), "--processes", "2")
    assert status == 0, text
    assert text.count("ok: ") == 2, text


def test_changed_cookie_is_noticed(daemon):
    def change(record):
        if record.op == QUERY and record.status == 0:
            record = record._replace(cookie=record.cookie ^ 1)
        return bytes(record)

    assert "QUERY" in forge(daemon, change)


def test_wrong_errno_is_noticed(daemon):
    def change(record):
        if record.status == -2:
            record = record._replace(status=-22)
        return bytes(record)

    forge(daemon, change)


def test_missing_reply_is_noticed(daemon):
    left = [20]

    def change(record):
        if record.op == ARM:
            left[0] -= 1
        return b"" if record.op == ARM and not left[0] else bytes(record)

    forge(daemon, change)


def test_doubled_expiration_is_noticed(daemon):
    def change(record):
        once = bytes(record)
        return once * 2 if record.op == 16 and not record.status else once

    forge(daemon, change)


def test_lost_expiration_is_noticed(daemon):
    left = [3]

    def change(record):
        if record.op == 16 and not record.status and \
                record.deadline < HOUR * 10**6:
            left[0] -= 1
            if not left[0]:
                return b""
        return bytes(record)

    forge(daemon, change)


def test_changed_copy_is_noticed(daemon):
    seen = set()

    def change(record):
        if record.op != 16 or record.status:
            return bytes(record)
        if record in seen:
            record = record._replace(period=record.period ^ 1)
        seen.add(record)
        return bytes(record)

    forge(daemon, change, "200000")


def test_wrong_call_and_no_server_end_by_2():
    assert run("/nonexistent/socket")[0] == 2
    assert run("/nonexistent/socket", "--operations", "0")[0] == 2


if __name__ == "__main__":
    tap.main()
