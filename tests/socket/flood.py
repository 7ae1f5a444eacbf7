# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that overload the daemon, in a process of their own, so that they do not slow
the test itself."""

import mmap
import os
import select
import signal
import struct

from client import SIZE, attach, pack, wait_for


class Flood:
    """Keeps connections full of requests and reads the replies, until the with
    statement ends.

    @path: of the daemon's socket
    @requests: a list of records for each connection, sent repeatedly
    @name: name of a shared queue; empty: each has an anonymous one
    """

    def __init__(self, path, requests, name=""):
        self.path, self.requests, self.name = path, requests, name
        self.taken = mmap.mmap(-1, 8 * len(requests))
        self.pid = None

    def counts(self):
        """Returns the bytes sent over each connection so far."""
        return struct.unpack("%dQ" % len(self.requests), self.taken)

    def _run(self):
        poll, all_of_them = select.poll(), {}
        for number, requests in enumerate(self.requests):
            connection = attach(self.path, self.name)
            connection.socket.setblocking(False)
            data = pack(requests)
            data *= (1 << 16) // len(data) + 1
            all_of_them[connection.socket.fileno()] = [
                connection.socket, number, memoryview(data), 0]
            poll.register(connection.socket, select.POLLIN | select.POLLOUT)
        counts = [0] * len(self.requests)
        while True:
            for fd, events in poll.poll():
                one = all_of_them[fd]
                sock, number, data, sent = one
                try:
                    if events & select.POLLIN:
                        counts[number] += len(sock.recv(1 << 18))
                        struct.pack_into("Q", self.taken, 8 * number,
                                         counts[number])
                    if events & select.POLLOUT:
                        one[3] = (sent + sock.send(data[sent:])) % len(data)
                except BlockingIOError:
                    pass

    def __enter__(self):
        self.pid = os.fork()
        if not self.pid:
            try:
                self._run()
            finally:
                os._exit(1)
        assert wait_for(lambda: min(self.counts()) > 4096 * SIZE), \
            "it is not served: %s" % (self.counts(),)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
