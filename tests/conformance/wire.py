# SPDX-License-Identifier: LGPL-2.1-or-later
"""The socket protocol, version 1: numbers, records and their text. Written from
docs/protocol.md alone; nothing else of the project is used here."""

import ctypes
import errno
import os
import struct
import time

ARM, REFRESH, CANCEL, ACK, QUERY, CLEAR = range(1, 7)
EXPIRED, CLOCK_SET = 16, 17
HELLO, CREDIT, SCAN, STAT, DROP, QUEUES, MISSED = range(64, 71)

RELATIVE, REDELIVERED, NEW, LATER = 1, 2, 4, 8          # records
CONSUME, ACKING, DURABLE, KEYED = 1, 2, 4, 8            # HELLO
EXISTING, OBSERVE = 16, 64

REALTIME, MONOTONIC, BOOTTIME = 0, 1, 7
CLOCKS = (REALTIME, MONOTONIC, BOOTTIME)
CLOCK_NAMES = {REALTIME: "REALTIME", MONOTONIC: "MONOTONIC",
               BOOTTIME: "BOOTTIME"}

NEVER = 2**64 - 1
MS = 10**6
SECOND = 10**9
HOUR = 3600 * SECOND
VERSION = 1
SIZE = 32

EACCES, EBUSY, EDQUOT, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, EPROTO, EPROTONOSUPPORT = (
    -errno.EACCES, -errno.EBUSY, -errno.EDQUOT, -errno.EEXIST, -errno.EINVAL, -errno.ENOENT,
    -errno.EOPNOTSUPP, -errno.EPROTO, -errno.EPROTONOSUPPORT)

# op, flags, status, period, id, deadline, cookie
RECORD = struct.Struct("=BBhIQQQ")
HELLO_RECORD = struct.Struct("=BBhI24s")
# QUEUES: op, flags, status, units, name
QUEUES_ROW = struct.Struct("=BBhI24s")
# struct expiry_stat as far as the model looks at it.
QUEUE_STAT = struct.Struct("=20QII")
QUEUE_STAT_SIZE = 512
# The first fields of struct expiry_server_stat, and of struct expiry_queue_stat.
SERVER_STAT = struct.Struct("=4I3Q")
LISTED_STAT = struct.Struct("=Q5I")

OP_NAMES = {ARM: "ARM", REFRESH: "REFRESH", CANCEL: "CANCEL", ACK: "ACK",
            QUERY: "QUERY", CLEAR: "CLEAR", EXPIRED: "EXPIRED",
            CLOCK_SET: "CLOCK_SET", HELLO: "HELLO", CREDIT: "CREDIT",
            SCAN: "SCAN", STAT: "STAT", DROP: "DROP", QUEUES: "QUEUES",
            MISSED: "MISSED"}


def add(a, b):
    """The sum of two times; one that is too large is never."""
    return min(a + b, NEVER)


def status_name(status):
    if status == 0:
        return "0"
    return "-" + errno.errorcode.get(-status, str(-status))


def text(record):
    """A record (bytes or a tuple) as a line."""
    if record is None:
        return "nothing"
    if isinstance(record, (bytes, bytearray, memoryview)):
        record = RECORD.unpack(record)
    op, flags, status, period, timer, deadline, cookie = record
    return ("%s flags %d status %s period %d id %#x deadline %d cookie %#x"
            % (OP_NAMES.get(op, "op %d" % op), flags, status_name(status),
               period, timer, deadline, cookie))


class TimerFd:
    """A periodic timer of the kernel on one of the clocks: how late may a
    program on this machine be? @worst is the most so far, in nanoseconds,
    @recent that of the last two to four seconds."""

    PERIOD = 10 * MS

    class Spec(ctypes.Structure):
        _fields_ = [("period_s", ctypes.c_long), ("period_ns", ctypes.c_long),
                    ("value_s", ctypes.c_long), ("value_ns", ctypes.c_long)]

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, clock):
        # TFD_NONBLOCK | TFD_CLOEXEC
        self.fd = self.libc.timerfd_create(clock, 0o4000 | 0o2000000)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self.worst = self.recent = self.before = self.now = 0
        self.turned = time.monotonic_ns()
        spec = self.Spec(0, self.PERIOD, 0, self.PERIOD)
        if self.libc.timerfd_settime(self.fd, 0, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def read(self):
        """Note how late this program comes to read it."""
        left = self.Spec()
        try:
            count = int.from_bytes(os.read(self.fd, 8), "little")
        except BlockingIOError:
            return
        self.libc.timerfd_gettime(self.fd, ctypes.byref(left))
        late = (count - 1) * self.PERIOD + self.PERIOD - \
            left.value_s * SECOND - left.value_ns
        if time.monotonic_ns() - self.turned > 2 * SECOND:
            self.turned = time.monotonic_ns()
            self.before, self.now = self.now, 0
        self.now = max(self.now, late)
        self.recent = max(self.before, self.now)
        self.worst = max(self.worst, late)
