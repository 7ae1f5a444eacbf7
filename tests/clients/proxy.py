# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy of the daemon's socket that cuts one connection after any byte."""

import os
import select
import socket
import tempfile
import threading
import time

UP, DOWN = "up", "down"     # to the daemon, to the client


class Proxy:
    """Forwards each connection, and cuts the first one after cut().

    @seen: bytes of the last connection that its client or the daemon ended
    @carried: what went each way over the connection that was cut
    @kill, @start: called at a cut, while the connection is open and when it is closed
    """

    def __init__(self, target, kill=lambda: None, start=lambda: None):
        self.target = target
        self.kill, self.start = kill, start
        self.folder = tempfile.TemporaryDirectory(prefix="expiry-")
        self.path = os.path.join(self.folder.name, "s")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.direction, self.left = None, None
        self.seen = {UP: 0, DOWN: 0}
        self.carried = {UP: b"", DOWN: b""}
        self.is_cut = False
        self.lock = threading.Lock()    # of the next: running ones, one a connection
        self.threads = []
        self.acceptor = threading.Thread(target=self.accept)
        self.acceptor.start()

    def cut(self, direction, after):
        """The next connection ends after so many bytes of this direction; None: of none."""
        self.direction, self.left = direction, after
        self.is_cut = False

    def accept(self):
        while True:
            select.select([self.listener], [], [])
            # The client goes on meanwhile, and the test may settle: a connection is in
            # the listener's backlog or has its thread.
            with self.lock:
                try:
                    client, _ = self.listener.accept()
                except OSError:
                    return
                direction, left = self.direction, self.left
                self.direction = None
                thread = threading.Thread(target=self.forward,
                                          args=(client, direction, left))
                thread.start()
                self.threads.append(thread)

    def forward(self, client, direction, left):
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        carried = {UP: b"", DOWN: b""}
        ways = {client: (UP, daemon), daemon: (DOWN, client)}
        was_cut = False
        try:
            daemon.connect(self.target)
            while not (direction and left == 0):
                for source in select.select(list(ways), [], [])[0]:
                    way, sink = ways[source]
                    data = source.recv(left if way == direction else 1 << 16)
                    if not data:
                        self.seen = {way: len(data) for way, data in carried.items()}
                        return
                    sink.sendall(data)
                    carried[way] += data
                    if way == direction:
                        left -= len(data)
                        if not left:
                            break
            self.carried = carried
            self.is_cut = was_cut = True
            self.kill()
        except OSError:
            pass
        finally:
            client.close()
            daemon.close()
        if was_cut:
            self.start()

    def settle(self):
        """Waits until all connections are closed, and the hooks done."""
        while True:
            with self.lock:
                if not select.select([self.listener], [], [], 0)[0]:
                    break
            time.sleep(0.001)
        self.join()

    def join(self):
        with self.lock:
            threads, self.threads = self.threads, []
        for thread in threads:
            thread.join()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.listener.close()
        self.join()
        self.folder.cleanup()
