#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy of the tests for clients."""

import os
import socket
import sys
import tempfile
import threading
import time
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "socket"))

import tap                              # noqa: E402
from proxy import UP, Proxy             # noqa: E402


def start_late(thread, start=threading.Thread.start):
    """Starts a thread as a busy machine may."""
    time.sleep(0.1)
    start(thread)


def accept_late(listener, accept=socket.socket.accept):
    """Accepts a connection, and goes on as late as that."""
    accepted = accept(listener)
    time.sleep(0.1)
    return accepted


def settles(patched, late, after):
    """The proxy settles so many seconds after a client has left, while a call takes its
    time."""
    with tempfile.TemporaryDirectory(prefix="expiry-") as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as target, \
            mock.patch(patched, late):
        target.bind(os.path.join(folder, "s"))
        target.listen(1)
        proxy = Proxy(target.getsockname())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(proxy.path)
                client.sendall(b"x")
                client.close()
                time.sleep(after)
                proxy.settle()
            assert proxy.seen[UP] == 1, proxy.seen
        finally:
            proxy.close()


def test_it_settles_while_a_connection_begins():
    settles("threading.Thread.start", start_late, 0.05)


def test_it_settles_before_a_connection_is_accepted():
    settles("socket.socket.accept", accept_late, 0)
    settles("threading.Thread.start", start_late, 0)


if __name__ == "__main__":
    tap.main(globals())
