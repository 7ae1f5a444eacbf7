# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fake service manager: a socket for the daemon's messages, and a store for its
descriptors."""

import array
import os
import socket
import threading
import time


class Reader:
    """Reads messages from @socket in a thread of its own, by _run() while
    @reading."""

    def read(self):
        """Begin to read."""
        self.socket.settimeout(0.05)
        self.reading = True
        self.reader = threading.Thread(target=self._run, daemon=True)
        self.reader.start()

    def pause(self):
        """Stops reading, like a manager that hangs."""
        self.reading = False
        self.reader.join()


class Manager(Reader):
    """Reads messages at @path, like systemd, until it is stopped.

    @messages: all of them, as text
    @times: when each came, by time.monotonic()
    @store: descriptors kept, in order: a list of [name, fd]
    """

    def __init__(self, path):
        self.path = path
        self.messages = []
        self.times = []
        self.store = []
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        os.chmod(path, 0o666)
        self.reader = None
        self.read()

    def hang(self):
        """Stops reading, and fills the socket."""
        self.pause()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            try:
                while True:
                    other.sendto(b"X=1", self.path)
            except BlockingIOError:
                pass

    def _run(self):
        while self.reading:
            try:
                data, control, _, _ = self.socket.recvmsg(
                    8192, socket.CMSG_SPACE(4))
            except socket.timeout:
                continue
            self._take(data.decode(), control)

    def _take(self, text, control):
        fds = array.array("i")
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
        lines = dict(line.split("=", 1) for line in text.splitlines())
        name = lines.get("FDNAME")
        with self.lock:
            self.messages.append(text)
            self.times.append(time.monotonic())
            if "FDSTORE" in lines:
                self.store += [[name, fd] for fd in fds]
            elif "FDSTOREREMOVE" in lines:
                for entry in [e for e in self.store if e[0] == name]:
                    os.close(entry[1])
                    self.store.remove(entry)

    def has(self, line):
        """Returns whether a message with that line came."""
        return self.count(line) > 0

    def count(self, line):
        with self.lock:
            return sum(line in text.splitlines() for text in self.messages)

    def when(self, line):
        """The times of the messages with that line."""
        with self.lock:
            return [at for text, at in zip(self.messages, self.times)
                    if line in text.splitlines()]

    def value(self, name):
        """Returns a variable's latest value, or None."""
        with self.lock:
            for text in reversed(self.messages):
                for line in text.splitlines():
                    if line.startswith(name + "="):
                        return line[len(name) + 1:]
        return None

    def names(self):
        with self.lock:
            return sorted(name for name, _ in self.store)

    def take_store(self):
        """Returns the store and leaves it to the caller."""
        with self.lock:
            store, self.store = self.store, []
        return store

    def close(self):
        self.pause()
        self.socket.close()
        for _, fd in self.take_store():
            os.close(fd)
