# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests on their way: one, a batch of one op, or one whose reply is a list."""

from __future__ import annotations

import errno
import struct
from array import array
from collections.abc import Callable, Iterator
from typing import Protocol

from .errors import ConnectionLost, lost_error
from .replies import (QUEUE_STAT_SIZE, Listed, Stat, listed_of, stat_of, timers_of, Timer)
from .wire import (ARM, CLEAR, LOW, NEW, QUEUES, RECORD, RELATIVE, SCAN, SIZE, STAT,
                   Buffer, Record, columns, lows, make_absolute)

UNITS_MAX = 4096    # of a body: 128 KiB; today's have 64 at most


class Broken(Exception):
    """The server broke the protocol."""


class Waiter(Protocol):
    """What waits for a request: an asyncio.Future, for example."""

    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def set_result(self, request: Request, /) -> None: ...


class Callback:
    """A waiter that calls a function."""

    __slots__ = ("set_result",)

    def __init__(self, function: Callable[[Request], None]) -> None:
        self.set_result = function

    def done(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False


class Request:
    """Requests of one op, and their replies.

    @data: the records; their owner does not change them until they are answered
    @named: each reply has the id of its request
    @ids: these ids, if the caller of Request() had them as a column
    @good: how many replies refuse nothing, once all have come
    @sent, @answered: how many of @count
    @replies: those that came
    @waiter: gets its result once, when all replies came or the connection failed; None if
        nothing waits. A cancelled call keeps its place
    @error: why there are no more replies
    @begun: when it was called, on the queue's clock, if @data is relative
    @again: it was sent before, on a connection that broke
    @posted: nothing waits, but a refusal is reported
    """

    __slots__ = ("op", "data", "count", "sent", "answered", "replies", "waiter", "error",
                 "begun", "again", "named", "posted", "ids", "good")

    is_list = False
    is_single = False

    def __init__(self, op: int, data: Buffer, count: int, named: bool = True,
                 begun: int = 0, ids: array[int] | None = None) -> None:
        self.op = op
        self.data = data
        self.count = count
        self.sent = self.answered = 0
        self.replies: Buffer = b""
        self.waiter: Waiter | None = None
        self.error: ConnectionLost | None = None
        self.begun = begun
        self.again = False
        self.named = named
        self.ids = ids
        self.good = 0
        self.posted = False

    def take(self, data: Buffer, count: int) -> None:
        """Takes the next replies, which have the right op."""
        self.answered += count
        if self.count == count:
            self.replies = bytes(data)
        else:
            if not self.replies:
                self.replies = bytearray()
            assert isinstance(self.replies, bytearray)
            self.replies += data

    def check(self) -> None:
        """Raises Broken if these are no replies to these requests."""
        data = self.replies
        if self.named:
            ids = columns(self.data)[1::4] if self.ids is None else self.ids
            if columns(data)[1::4] != ids:
                raise Broken("a reply about another timer")
        self.good = lows(data).count(LOW[self.op])
        if self.good != self.count:
            for record in RECORD.iter_unpack(data):
                if record[2] > 0:
                    raise Broken("a positive status")

    def is_wanted(self) -> bool:
        """Returns whether its caller still waits, or wants it carried out anyway."""
        return self.posted or self.waiter is not None and not self.waiter.cancelled()

    def refusals(self) -> Iterator[Record]:
        """Yields the replies that refuse a request."""
        if self.good != self.count:
            for record in RECORD.iter_unpack(self.replies):
                if record[2]:
                    yield record

    def is_idempotent(self) -> bool:
        """Returns whether it may be sent again. On a plain queue ARM would leave a second
        timer, NEW would find its own, CLEAR would remove what others have armed since."""
        if self.op == ARM:
            return self.named and not self.data[1] & NEW
        return self.op != CLEAR

    def send_again(self) -> None:
        """Prepares those without reply for another connection."""
        self.sent = self.answered
        self.again = True

    def count_from_call(self) -> None:
        """Has relative deadlines count from the call, whenever they are sent."""
        if self.data[1] & RELATIVE:
            self.data = make_absolute(self.data, self.begun)

    def reject(self) -> None:
        """Answers those in doubt: they may have been carried out."""
        doubt = bytearray(self.data[self.answered * SIZE:self.sent * SIZE])
        status = struct.pack("=h", -errno.ECONNRESET)
        for at in range(0, len(doubt), SIZE):
            doubt[at + 2:at + 4] = status
        self.take(memoryview(doubt), self.sent - self.answered)

    def finish(self) -> None:
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(self)

    def fail(self, number: int, kind: type[ConnectionLost] | None = None,
             cause: BaseException | None = None) -> None:
        """Ends it without its replies."""
        error = (kind or lost_error(number))(
            number, self.op, answered=self.answered, doubtful=self.sent - self.answered,
            unsent=self.count - self.sent)
        error.__cause__ = cause
        self.error = error
        self.finish()


class Single(Request):
    """One request, whose reply is one record: @reply. @id: of its timer, 0 where the
    server chooses it"""

    __slots__ = ("id", "reply")

    is_single = True

    def __init__(self, data: bytes, id: int, begun: int) -> None:
        # Most programs make more of these than of anything else: no super().__init__().
        self.op = op = data[0]
        self.data = data
        self.count = 1
        self.sent = self.answered = 0
        self.waiter = self.error = None
        self.begun = begun
        self.again = self.posted = False
        self.named = id != 0 or op != ARM
        self.id = id
        self.reply: Record = ()

    def take(self, data: Buffer, count: int) -> None:
        self.answered = 1
        self.reply = RECORD.unpack(data)

    def refusals(self) -> Iterator[Record]:
        if self.reply[2]:
            yield self.reply

    def check(self) -> None:
        pass


class ListRequest(Request):
    """SCAN, STAT, QUEUES: one request, a reply of several records.

    @rows: most rows
    @units: how many are to come of a body
    """

    __slots__ = ("rows", "units", "status", "cursor", "timers", "queues", "stat", "_body",
                 "_name", "begins")

    is_list = True

    def __init__(self, op: int, cursor: int = 0, rows: int = 0) -> None:
        super().__init__(op, RECORD.pack(op, 0, 0, rows, cursor, 0, 0), 1, named=False)
        self.rows = rows
        self.restart()

    def restart(self) -> None:
        self.units = self.status = self.cursor = 0
        self.begins = True
        self.timers: list[Timer] = []
        self.queues: list[Listed] = []
        self.stat: Stat | None = None
        self._body = bytearray()
        self._name = b""

    def send_again(self) -> None:
        super().send_again()
        self.restart()

    def reject(self) -> None:
        """Begins anew instead: it leaves no trace."""
        self.send_again()

    def head(self, data: bytes) -> None:
        """Takes a record of the list that is no unit of a body."""
        op, flags, status, period, id, _, cookie = RECORD.unpack(data)
        if op != self.op or status > 0 or status and not self.begins:
            raise Broken("not a record of this list")
        self.begins = False
        if status:
            self.status = status
            self.answered = 1
        elif op == SCAN and id or op == QUEUES and period:
            if len(self.timers) + len(self.queues) >= self.rows:
                raise Broken("more rows than wanted")
        elif op != STAT:
            self.cursor = cookie
            self.answered = 1
        if self.answered:
            return
        if op == SCAN:
            self.timers += timers_of(data)
            return
        if not QUEUE_STAT_SIZE // SIZE <= period <= UNITS_MAX:
            raise Broken("a body of %d units" % period)
        self.units = period
        self._name = data[8:]
        self._body.clear()

    def body(self, data: bytes) -> None:
        """Takes units of the body, no more than are to come."""
        self._body += data
        self.units -= len(data) // SIZE
        if self.units:
            return
        if self.op == QUEUES:
            self.queues.append(listed_of(self._name, self._body))
        else:
            self.stat = stat_of(self._body)
            self.answered = 1

    def check(self) -> None:
        pass

    def is_idempotent(self) -> bool:
        return True
