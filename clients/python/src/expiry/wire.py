# SPDX-License-Identifier: LGPL-2.1-or-later
"""The records of docs/protocol.md: numbers, and columns of many records."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable

from .errors import OutOfRange

ARM, REFRESH, CANCEL, ACK, QUERY, CLEAR = range(1, 7)
EXPIRED, CLOCK_SET = 16, 17
HELLO, CREDIT, SCAN, STAT, DROP, QUEUES, MISSED = range(64, 71)

RELATIVE, REDELIVERED, NEW, LATER, LATE = 1, 2, 4, 8, 16
HELLO_CONSUME, HELLO_ACK, HELLO_DURABLE, HELLO_KEYED, HELLO_EXISTING, HELLO_OBSERVE = \
    1, 2, 4, 8, 16, 64

VERSION = 1
SIZE = 32
NAME_MAX = 24
NEVER = 2**64 - 1

# op, flags, status, period_ms, id, deadline_ns, cookie
RECORD = struct.Struct("=BBhIQQQ")
HELLO_RECORD = struct.Struct("=BBhI24s")
# The first 8 bytes: op, flags, status, period_ms.
HEAD = struct.Struct("=BBhI")

Record = tuple[int, ...]
Buffer = bytes | bytearray | memoryview


def number(value: int, what: str, least: int = 0, most: int = NEVER) -> int:
    """Returns @value if it is in range."""
    if value.__class__ is not int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError("%s must be an integer, not %r" % (what, value))
        value = value.__index__()
    if not least <= value <= most:
        raise OutOfRange("%s is %d, not from %d to %d" % (what, value, least, most))
    return value


def column(values: Iterable[int], what: str) -> array[int]:
    """Returns 64-bit numbers as an array; an array of type Q as it is."""
    if isinstance(values, array) and values.typecode == "Q":
        return values
    try:
        return array("Q", values)
    except OverflowError:
        raise OutOfRange("%s: not all are from 0 to 2^64 - 1" % what) from None


def head(op: int, flags: int = 0, period: int = 0) -> int:
    """Returns the first 8 bytes of a request as a number."""
    return int.from_bytes(HEAD.pack(op, flags, 0, period), sys.byteorder)


def low_of(op: int) -> int:
    """Returns the first 4 bytes of a reply that was not refused as a number."""
    return int.from_bytes(bytes((op, 0, 0, 0)), sys.byteorder)


LOW = [low_of(op) for op in range(256)]


def records(first: int, count: int, ids: array[int] | None, deadline: int | array[int],
            cookie: int | array[int]) -> memoryview:
    """Returns @count requests with the same first 8 bytes. Columns are assigned whole,
    which is faster than to pack record by record."""
    out = array("Q", bytes(SIZE * count))
    out[0::4] = array("Q", (first,)) * count
    if ids is not None:
        out[1::4] = ids
    if isinstance(deadline, array):
        out[2::4] = deadline
    elif deadline:
        out[2::4] = array("Q", (deadline,)) * count
    if isinstance(cookie, array):
        out[3::4] = cookie
    elif cookie:
        out[3::4] = array("Q", (cookie,)) * count
    return memoryview(out).cast("B")


def columns(data: Buffer) -> array[int]:
    """Returns records as 64-bit numbers, four a record."""
    out = array("Q")
    out.frombytes(data)
    return out


class Columns:
    """Records as a buffer, and their fields as columns. @data: 32 bytes a record"""

    __slots__ = ("data",)

    def __init__(self, data: Buffer) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data) // SIZE

    @property
    def ids(self) -> array[int]:
        return columns(self.data)[1::4]

    @property
    def deadlines(self) -> array[int]:
        return columns(self.data)[2::4]

    @property
    def cookies(self) -> array[int]:
        return columns(self.data)[3::4]


def lows(data: Buffer) -> array[int]:
    """Returns the first 4 bytes of each record as a number."""
    out = array("I")
    out.frombytes(data)
    return out[::8]


def make_absolute(data: Buffer, now: int) -> memoryview:
    """Returns requests whose deadlines no longer count from now. Sending these again does
    not make them later."""
    out = columns(data)
    relative = int.from_bytes(HEAD.pack(0, RELATIVE, 0, 0), sys.byteorder)
    for at in range(0, len(out), 4):
        if out[at] & relative:
            out[at] &= ~relative
            out[at + 2] = min(out[at + 2] + now, NEVER)
    return memoryview(out).cast("B")
