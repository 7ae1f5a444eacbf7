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


def test_it_settles_while_a_connection_begins():
    with tempfile.TemporaryDirectory(prefix="expiry-") as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as target:
        target.bind(os.path.join(folder, "s"))
        target.listen(1)
        proxy = Proxy(target.getsockname())
        try:
            with mock.patch("threading.Thread.start", start_late), \
                    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(proxy.path)
                client.sendall(b"x")
                client.close()
                time.sleep(0.05)
                proxy.settle()
            assert proxy.seen[UP] == 1, proxy.seen
        finally:
            proxy.close()


if __name__ == "__main__":
    tap.main(globals())
