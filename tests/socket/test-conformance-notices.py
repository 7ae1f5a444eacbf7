#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/conformance notices when a server is wrong: one that changes the daemon's
records on their way. That is about the client, and the same whatever the daemon is."""

import os
import select
import socket
import tempfile
import threading

import tap
from client import ARM, HOUR, QUERY, SIZE, unpack
from conformance import SEED, run


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
