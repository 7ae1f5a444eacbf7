# SPDX-License-Identifier: LGPL-2.1-or-later
"""Expirations, one by one or as buffers. They acknowledge themselves."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from .wire import LATE, RECORD, REDELIVERED, Columns, Record

Acknowledge = Callable[["array[int]"], None]


class Delivered:
    """One expiration or several. The end of a `with` or `async with` block acknowledges
    them. After an exception they are left to be delivered again."""

    __slots__ = ()

    def acknowledge(self) -> None:
        """Acknowledges without waiting, gathered with other requests."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is None:
            self.acknowledge()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        if kind is None:
            self.acknowledge()


class Due(Delivered):
    """An expiration.

    @id, @cookie: as armed; @deadline: nanoseconds on the queue's clock
    @count: of a periodic timer the times that it stands for: 1, or more if it came
        late; 0 for a timer without period
    @redelivered: it was delivered before, and not acknowledged
    @late: of a durable queue: the deadline passed before the server started
    """

    __slots__ = ("id", "deadline", "cookie", "count", "_flags", "_acknowledge")

    def __init__(self, record: Record, acknowledge: Acknowledge) -> None:
        _, self._flags, _, self.count, self.id, self.deadline, self.cookie = record
        self._acknowledge = acknowledge

    @property
    def redelivered(self) -> bool:
        return self._flags & REDELIVERED != 0

    @property
    def late(self) -> bool:
        return self._flags & LATE != 0

    def acknowledge(self) -> None:
        self._acknowledge(array("Q", (self.id,)))

    def __repr__(self) -> str:
        return "Due(id=%d, deadline=%d, cookie=%d%s%s)" % (
            self.id, self.deadline, self.cookie, ", redelivered" * self.redelivered,
            ", late" * self.late)


class Batch(Columns, Delivered):
    """Expirations as buffers, in order of their deadlines, acknowledged together."""

    __slots__ = ("_acknowledge",)

    def __init__(self, data: bytes, acknowledge: Acknowledge) -> None:
        super().__init__(data)
        self._acknowledge = acknowledge

    def __iter__(self) -> Iterator[Due]:
        for record in RECORD.iter_unpack(self.data):
            yield Due(record, self._acknowledge)

    @property
    def counts(self) -> array[int]:
        """Of periodic timers the times that each stands for, see Due.count."""
        out = array("I")
        out.frombytes(self.data)
        return out[1::8]

    def acknowledge(self) -> None:
        self._acknowledge(self.ids)
