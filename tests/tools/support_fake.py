# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fake server with scripted answers, in the protocol of docs/protocol.md. It records
all requests."""

import errno
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))
from client import (ACK, ACKING, ARM, BOOTTIME, CANCEL, CLEAR,  # noqa: E402
                    CLOCK_SET, CREDIT, DROP, DURABLE, EXISTING, EXPIRED, HELLO, KEYED,
                    MONOTONIC, OBSERVE, QUERY, QUEUES, REALTIME, REFRESH,
                    RELATIVE, SCAN, SIZE, STAT, WAIT, Record, pack, unpack)
import support_fields as fields  # noqa: E402

# The fixed time, the same as in fixed-time.c.
NOW = {REALTIME: 2000000000123456789, MONOTONIC: 5000000123456789,
       BOOTTIME: 7000000123456789}
WINDOW = 1000


class Server:
    """A server with one queue. A client must attach with its @clock and @mode.

    @stats: packed (struct expiry_stat, struct expiry_server_stat), one for each
        STAT; the last one repeats
    @queues: lists of (name, stat, daemon) for QUEUES, likewise; by default the one
        queue, under the name of the latest refused HELLO
    @timers: records for SCAN, QUERY and CANCEL
    @expirations: records sent by credit, or all to an observer
    @errors: {op: errno} of refusals; for HELLO only with a name
    @looking: errno for HELLO without a name or queue
    @commit_ms: the queue is durable, with this interval of its journal
    @page: most rows of a SCAN or QUEUES
    @path: path of the socket, else "socket" in a folder of its own
    """

    def __init__(self, clock=REALTIME, mode=0, stats=(), queues=(), timers=(),
                 expirations=(), errors=None, page=1000, name="socket",
                 looking=0, commit_ms=None):
        self.clock, self.mode, self.page = clock, mode, page
        self.stats, self.queues = list(stats), list(queues)
        self.timers, self.expirations = list(timers), list(expirations)
        self.errors, self.looking = errors or {}, looking
        self.commit_ms = commit_ms
        self.asked = []         # every record, in order
        self.hellos = []        # (name, flags, clock) of each connection
        self.sought = ""        # queue of the latest HELLO with a wrong clock or mode
        self.folder = tempfile.mkdtemp(prefix="expiry-test-")
        self.path = os.path.join(os.fsencode(self.folder),
                                 os.fsencode(name))
        self.listener = None
        self.connections = []   # (thread, socket)

    def __enter__(self):
        self.listen()
        return self

    def __exit__(self, *_):
        self.halt()
        shutil.rmtree(self.folder)

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, args=(self.listener,),
                         daemon=True).start()

    def halt(self):
        """Stops listening; existing connections stay."""
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            os.unlink(self.path)
            self.listener = None

    def hang_up(self):
        """Ends the existing connections."""
        for _, connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:     # it has ended
                pass

    def wait_ended(self):
        """Waits until all data of ended connections is read."""
        for thread, _ in self.connections:
            thread.join(WAIT)
            assert not thread.is_alive(), "a client is still there"

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.serve, args=(connection,),
                                      daemon=True)
            self.connections.append((thread, connection))
            thread.start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            try:
                if self.greet(connection, stream.read(SIZE)):
                    while data := stream.read(SIZE):
                        record, = unpack(data)
                        self.asked.append(record)
                        connection.sendall(self.answer(record))
            except OSError:     # the client is gone
                pass

    def refusal(self, name, flags):
        """Returns the errno of a HELLO, or 0."""
        return self.looking if not name and flags == EXISTING else self.errors.get(HELLO, 0)

    def greet(self, connection, data):
        """Answers HELLO. Returns whether the client may go on."""
        if not data:            # it has gone already
            return False
        op, flags, version, clock, name = struct.unpack("=BBhI24s", data)
        assert op == HELLO and version == 1, data
        name = name.rstrip(b"\0").decode()
        self.hellos.append((name, flags, clock))
        status = -self.refusal(name, flags)
        if name and not status and \
                (clock, flags & (ACKING | KEYED)) != (self.clock, self.mode):
            status = -errno.EINVAL
            self.sought = name
        window = WINDOW
        if self.commit_ms is not None and name:
            flags |= DURABLE
            window |= self.commit_ms << 32
        connection.sendall(bytes(Record(HELLO, flags, status, clock,
                                        len(self.timers), NOW[clock],
                                        window)))
        if flags & OBSERVE and not status:
            # Observers need no credit; records after a pause are sent once.
            copies, self.expirations = self.expirations, []
            connection.sendall(pack(copies))
        return not status

    # -----------------------------------------------------------------------

    def answer(self, record):
        """Returns the bytes of the answer."""
        if record.op in self.errors:
            return bytes(record._replace(status=-self.errors[record.op]))
        return {ARM: self.arm, REFRESH: self.refresh, CANCEL: self.find,
                QUERY: self.find, ACK: bytes, CLEAR: bytes, DROP: bytes,
                STAT: self.stat, SCAN: self.scan, QUEUES: self.list_queues,
                CREDIT: self.credit}[record.op](record)

    def absolute(self, record):
        now = NOW[self.clock] if record.flags & RELATIVE else 0
        return min(record.deadline + now, 2**64 - 1)

    def arm(self, record):
        return bytes(record._replace(flags=0, id=record.id or 4294967297,
                                     deadline=self.absolute(record)))

    def refresh(self, record):
        return bytes(record._replace(flags=0, deadline=self.absolute(record),
                                     cookie=7000000000000000007, period=1500))

    def find(self, record):
        for timer in self.timers:
            if timer.id == record.id:
                return bytes(timer._replace(op=record.op, flags=0))
        return bytes(record._replace(status=-errno.ENOENT))

    @staticmethod
    def next_of(answers):
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def stat(self, record):
        stat, server = self.next_of(self.stats)
        return bytes(Record(STAT, period=(len(stat) + len(server)) // SIZE)) \
            + stat + server

    def scan(self, record):
        count = min(record.period, self.page)
        rows = self.timers[record.id:record.id + count]
        end = record.id + count
        return pack([row._replace(op=SCAN) for row in rows]) + bytes(Record(
            SCAN, cookie=end if end < len(self.timers) else 0))

    def list_queues(self, record):
        rows = self.queues[0] if self.queues else [(
            self.sought,
            fields.STAT.pack({"clock_id": self.clock, "mode": self.mode}),
            fields.DAEMON.pack({}))]
        count = min(record.period, self.page)
        end = record.id + count
        data = b""
        for name, stat, daemon in rows[record.id:end]:
            data += struct.pack("=BBhI24s", QUEUES, 0, 0,
                                (len(stat) + len(daemon)) // SIZE,
                                name.encode()) + stat + daemon
        if end >= len(rows):
            end = 0
            if self.queues:
                self.next_of(self.queues)
        return data + bytes(Record(QUEUES, cookie=end))

    def credit(self, record):
        left, now = record.period, []
        while self.expirations and \
                (left or self.expirations[0].op == CLOCK_SET):
            now.append(self.expirations.pop(0))
            left -= now[-1].op == EXPIRED
        return pack(now)

