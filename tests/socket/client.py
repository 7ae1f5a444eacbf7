# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryd's protocol, implemented from its description. Without libexpiry, a fault of
the library cannot hide one of the daemon."""

import collections
import errno
import os
import socket
import struct
import time

ARM, REFRESH, CANCEL, ACK, QUERY, CLEAR = range(1, 7)
EXPIRED, CLOCK_SET = 16, 17
HELLO, CREDIT, SCAN, STAT, DROP, QUEUES, MISSED = range(64, 71)

RELATIVE, REDELIVERED, NEW, LATER, LATE = 1, 2, 4, 8, 16    # records
CONSUME, ACKING, DURABLE, KEYED = 1, 2, 4, 8            # HELLO
EXISTING, OBSERVE = 16, 64

REALTIME, MONOTONIC, BOOTTIME = 0, 1, 7
NEVER = 2**64 - 1
SECOND = 10**9
HOUR = 3600 * SECOND
VERSION = 1
SIZE = 32

# The factor for smaller numbers on a slow machine, and the time limit in seconds for
# every event.
SCALE = int(os.environ.get("EXPIRY_TEST_SCALE", "1"))
WAIT = 30 if SCALE == 1 else 120
# The factor for times that are measured. An emulated machine is slower in all it does;
# User Mode Linux, where a small SCALE only saves time, is not.
SLOWER = SCALE if SCALE >= 10 else 1
QUIET = 0.3


def scaled(number, least=1):
    return max(number // SCALE, least)


def scaled_beyond_socket(number):
    """So many expirations, scaled, yet more than a socket takes of them."""
    with socket.socket(socket.AF_UNIX) as one:
        size = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    return scaled(number, 2 * size // LAYOUT.size)


LAYOUT = struct.Struct("=BBhIQQQ")


class Record(collections.namedtuple(
        "Record", "op flags status period id deadline cookie",
        defaults=(0, 0, 0, 0, 0, 0))):
    __slots__ = ()

    def __bytes__(self):
        return LAYOUT.pack(*self)

    @property
    def count(self):
        """Of an expiration, in the place of the period."""
        return self.period


def unpack(data):
    return [Record(*fields) for fields in LAYOUT.iter_unpack(data)]


def pack(records):
    return b"".join(bytes(record) for record in records)


def arm(deadline, cookie=0, **more):
    """@deadline: nanoseconds from now unless flags= says otherwise."""
    more.setdefault("flags", RELATIVE)
    return Record(ARM, deadline=deadline, cookie=cookie, **more)


def hello(name=b"", flags=0, clock=MONOTONIC, version=VERSION):
    name = name.encode() if isinstance(name, str) else name
    return struct.pack("=BBhI24s", HELLO, flags, version, clock, name)


# struct expiry_stat up to its lateness histogram, then struct
# expiry_server_stat without what is reserved.
STAT_BODY = struct.Struct("=20QII2Q8x40Q" "4I13QI")
# Newer fields follow it and the histograms.
STAT_TOTALS = struct.Struct("=21Q")
STAT_TOTALS_AT = STAT_BODY.size + 4 + 3 * 40 * 8
Stat = collections.namedtuple("Stat", (
    "now next armed unacked limit nodes pages_heap pages_slots pages_index "
    "pages_resident arms refreshes cancels acks delivered redelivered refused "
    "refused_limit clock_sets lateness_max clock mode past held lateness "
    "engine consumers credit producers uptime queues connections records "
    "expirations refused_connections refused_queues refused_timers "
    "closed_protocol refused_busy refused_credit closed_backlog backlog loop "
    "timers_all next_all lateness_max_all closed_hello log_dropped "
    "log_left_out refused_observers copies_missed durable journal_queues journal_timers "
    "journal_overdue journal_waiting journal_records journal_commits journal_bytes "
    "journal_size journal_checkpoints journal_failures journal_failed "
    "refused_journal"))


def unpack_stat(body):
    fields = STAT_BODY.unpack_from(body) + \
        STAT_TOTALS.unpack_from(body, STAT_TOTALS_AT)
    return Stat(*fields[:24], fields[24:64], *fields[64:])


def is_event(record):
    """Returns whether a record is not a reply. A refused request has a status."""
    return record.op in (EXPIRED, CLOCK_SET, MISSED) and not record.status


class Refused(Exception):
    """A request was refused with this status."""

    def __init__(self, status):
        super().__init__(os.strerror(-status))
        self.status = status


class Closed(Exception):
    """The server ended the connection."""


class Connection:
    """A connection. Expirations that arrive between replies are stored in @expired
    until the test takes them."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(WAIT)
        self.socket.connect(path)
        self.buffer = b""
        self.expired = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, *records):
        data = b"".join(bytes(record) for record in records)
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def fill(self, size):
        """Waits until @size bytes are in the buffer."""
        while len(self.buffer) < size:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionResetError as error:
                raise Closed from error
            except socket.timeout as error:
                raise AssertionError("nothing came for %d s" % WAIT) from error
            if not data:
                raise Closed("%d bytes before the end" % len(self.buffer))
            self.buffer += data

    def take(self, size):
        self.fill(size)
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def record(self):
        """Returns the next record of any kind."""
        return unpack(self.take(SIZE))[0]

    def reply(self):
        """Returns the next reply."""
        while True:
            record = self.record()
            if not is_event(record):
                return record
            self.expired.append(record)

    def replies(self, count):
        return [self.reply() for _ in range(count)]

    def request(self, record):
        self.send(record)
        return self.reply()

    def batch(self, records):
        """Sends many requests at once and takes the replies while sending."""
        data, replies = memoryview(pack(records)), []
        self.socket.settimeout(0)
        deadline = time.monotonic() + WAIT
        while len(replies) < len(records):
            try:
                if data:
                    data = data[self.socket.send(data[:1 << 16]):]
            except BlockingIOError:
                pass
            try:
                self.buffer += self.socket.recv(1 << 20)
            except BlockingIOError:
                time.sleep(0.0005)
            whole = len(self.buffer) // SIZE * SIZE
            for record in unpack(self.buffer[:whole]):
                (self.expired if is_event(record) else
                 replies).append(record)
            self.buffer = self.buffer[whole:]
            assert time.monotonic() < deadline, "%d of %d replies" % (
                len(replies), len(records))
        self.socket.settimeout(WAIT)
        return replies

    def expiration(self):
        """Returns the next expiration; no other record may precede it."""
        if self.expired:
            return self.expired.pop(0)
        record = self.record()
        assert record.op == EXPIRED and not record.status, record
        return record

    def quiet(self, seconds=QUIET):
        """Returns whether nothing arrives for a while."""
        if self.buffer or self.expired:
            return False
        self.socket.settimeout(seconds)
        try:
            self.buffer += self.socket.recv(SIZE)
            return False
        except socket.timeout:
            return True
        finally:
            self.socket.settimeout(WAIT)

    def ended(self):
        """Waits for the server to end the connection. Returns the records before."""
        try:
            while True:
                self.fill(len(self.buffer) + 1)
        except Closed:
            assert len(self.buffer) % SIZE == 0, self.buffer
            return unpack(self.buffer)

    def hello(self, name=b"", flags=0, clock=MONOTONIC, **more):
        self.send(hello(name, flags, clock, **more))
        return self.reply()

    def credit(self, count):
        self.send(Record(CREDIT, period=count))

    def stat(self):
        self.send(Record(STAT))
        return self.stat_reply()

    def stat_reply(self):
        """Returns the next reply, to a STAT."""
        head = self.reply()
        assert head.op == STAT and head.status == 0, head
        return unpack_stat(self.take(head.period * SIZE))

    def scan(self, page):
        """Returns all rows, with as many requests as needed, or raises Refused."""
        rows, cursor = [], 0
        while True:
            self.send(Record(SCAN, id=cursor, period=page))
            count = 0
            row = self.reply()
            while row.id:
                assert row.op == SCAN and row.status == 0, row
                rows.append(row)
                count += 1
                row = self.reply()
            assert row.op == SCAN, row
            if row.status:
                raise Refused(row.status)
            assert count <= page, "%d rows, asked for %d" % (count, page)
            cursor = row.cookie
            if not cursor:
                return rows


def accepted(path):
    """Returns a new connection if the server accepts it, else None."""
    connection = Connection(path)
    try:
        if connection.hello().status == 0:
            return connection
    except Closed:
        pass
    connection.close()
    return None


def attach(path, name=b"", flags=0, clock=MONOTONIC):
    """Returns a connection whose HELLO was accepted."""
    connection = Connection(path)
    reply = connection.hello(name, flags, clock)
    assert reply.op == HELLO and reply.status == 0, reply
    return connection


def error(number):
    """Returns the name of an errno, negative or positive."""
    return errno.errorcode.get(abs(number), str(number))


def wait_for(condition, seconds=None):
    """Waits until @condition() is true. Returns its value."""
    limit = time.monotonic() + (seconds or WAIT)
    while True:
        value = condition()
        if value or time.monotonic() > limit:
            return value
        time.sleep(0.01)
