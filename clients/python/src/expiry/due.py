# SPDX-License-Identifier: LGPL-2.1-or-later
"""Expirations, one by one or as buffers. They acknowledge themselves."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from types import TracebackType

from .wire import RECORD, REDELIVERED, SIZE, Record, columns

Acknowledge = Callable[["array[int]"], None]


class Due:
    """An expiration. In a `with` or `async with` block it is acknowledged when the block
    ends without an exception. After one it is left to be delivered again.

    @id, @cookie: as armed; @deadline: nanoseconds on the queue's clock
    @count: of a periodic timer the times that it stands for: 1, or more if it came
        late; 0 for a timer without period
    @redelivered: it was delivered before, and not acknowledged
    """

    __slots__ = ("id", "deadline", "cookie", "count", "redelivered", "_acknowledge")

    def __init__(self, record: Record, acknowledge: Acknowledge) -> None:
        _, flags, _, self.count, self.id, self.deadline, self.cookie = record
        self.redelivered = bool(flags & REDELIVERED)
        self._acknowledge = acknowledge

    def acknowledge(self) -> None:
        """Acknowledges it without waiting, gathered with other requests."""
        self._acknowledge(array("Q", (self.id,)))

    def __enter__(self) -> Due:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is None:
            self.acknowledge()

    async def __aenter__(self) -> Due:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        if kind is None:
            self.acknowledge()

    def __repr__(self) -> str:
        return "Due(id=%d, deadline=%d, cookie=%d%s)" % (
            self.id, self.deadline, self.cookie, ", redelivered" * self.redelivered)


class Batch:
    """Expirations as buffers, in order of their deadlines. In a `with` or `async with`
    block they are acknowledged together when the block ends without an exception."""

    __slots__ = ("data", "_acknowledge")

    def __init__(self, data: bytes, acknowledge: Acknowledge) -> None:
        self.data = data
        self._acknowledge = acknowledge

    def __len__(self) -> int:
        return len(self.data) // SIZE

    def __iter__(self) -> Iterator[Due]:
        for record in RECORD.iter_unpack(self.data):
            yield Due(record, self._acknowledge)

    @property
    def counts(self) -> array[int]:
        """Of periodic timers the times that each stands for, see Due.count."""
        out = array("I")
        out.frombytes(self.data)
        return out[1::8]

    @property
    def ids(self) -> array[int]:
        return columns(self.data)[1::4]

    @property
    def deadlines(self) -> array[int]:
        return columns(self.data)[2::4]

    @property
    def cookies(self) -> array[int]:
        return columns(self.data)[3::4]

    def acknowledge(self) -> None:
        self._acknowledge(self.ids)

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is None:
            self.acknowledge()

    async def __aenter__(self) -> Batch:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        if kind is None:
            self.acknowledge()
