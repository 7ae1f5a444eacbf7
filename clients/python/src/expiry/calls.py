# SPDX-License-Identifier: LGPL-2.1-or-later
"""The calls of a program as requests, and replies as what calls return."""

from __future__ import annotations

import errno
import time
from array import array
from collections.abc import Iterable, Sized

from .errors import Refused
from .options import Options
from .replies import Listed, Replies, Stat, Timer
from .request import ListRequest, Request, Single
from .times import Instant, Span, deadline_of, instant_ns, period_ms
from .wire import (ARM, LATER, NEVER, NEW, QUEUES, RECORD, REDELIVERED, REFRESH, RELATIVE,
                   SCAN, Record, column, head, number, records)

ROWS_MAX = 2**32 - 1

# One request, the id that is to be in its reply, 0 where the server chooses it, and when
# the call began, see Request.
Asked = tuple[bytes, int, int]

pack = RECORD.pack


class Calls:
    """Makes requests for a queue with these options."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def arm(self, id: int | None, ttl: Span | None, at: Instant | None, cookie: int,
            period: Span | None, new: bool, later: bool) -> Asked:
        # number() is called for what is not plainly right: most calls do without.
        deadline, flags = deadline_of(ttl, at, self.options.clock)
        if not self.options.keyed:
            if id is not None:
                raise TypeError("a plain queue chooses the id")
            id = 0
        elif id is None:
            raise TypeError("a keyed queue needs an id")
        elif id.__class__ is not int or not 0 < id <= NEVER:
            id = number(id, "id", 1)
        if cookie.__class__ is not int or not 0 <= cookie <= NEVER:
            cookie = number(cookie, "cookie")
        if new:
            flags |= NEW
        if later:
            flags |= LATER
        return pack(ARM, flags, 0, period_ms(period) if period else 0, id, deadline,
                    cookie), id, self._now(flags) if self.options.reconnect else 0

    def refresh(self, id: int, ttl: Span | None, at: Instant | None,
                later: bool) -> Asked:
        deadline, flags = deadline_of(ttl, at, self.options.clock)
        if later:
            flags |= LATER
        if id.__class__ is not int or not 0 < id <= NEVER:
            id = number(id, "id", 1)
        return pack(REFRESH, flags, 0, 0, id, deadline, 0), id, \
            self._now(flags) if self.options.reconnect else 0

    def one(self, op: int, id: int) -> Asked:
        """CANCEL, ACK or QUERY."""
        if id.__class__ is not int or not 0 < id <= NEVER:
            id = number(id, "id", 1)
        return pack(op, 0, 0, 0, id, 0, 0), id, 0

    def plain(self, op: int) -> Asked:
        """CLEAR or DROP."""
        return pack(op, 0, 0, 0, 0, 0, 0), 0, 0

    def arm_many(self, ids: Iterable[int] | None, count: int | None, ttl: Span | None,
                 at: Instant | None, deadlines: Iterable[int] | None, cookie: int,
                 cookies: Iterable[int] | None, period: Span | None, new: bool,
                 later: bool) -> Request:
        named = None
        if self.options.keyed:
            if ids is None:
                raise TypeError("a keyed queue needs ids")
            named = self._ids(ids)
            count = len(named)
        elif ids is not None or count is None:
            raise TypeError("a plain queue chooses the ids: count is needed")
        else:
            count = number(count, "count", 0, 2**31)
        deadline, flags = self._deadline(ttl, at, deadlines, count)
        flags |= NEW * new | LATER * later
        cookie_column: int | array[int] = number(cookie, "cookie")
        if cookies is not None:
            cookie_column = same_length(column(cookies, "cookies"), count, "cookies")
        data = records(head(ARM, flags, period_ms(period) if period else 0), count, named,
                       deadline, cookie_column)
        return Request(ARM, data, count, self.options.keyed, self._now(flags),
                       named[:] if named else None)

    def refresh_many(self, ids: Iterable[int], ttl: Span | None, at: Instant | None,
                     deadlines: Iterable[int] | None, later: bool) -> Request:
        named = self._ids(ids)
        deadline, flags = self._deadline(ttl, at, deadlines, len(named))
        data = records(head(REFRESH, flags | LATER * later), len(named), named, deadline, 0)
        return Request(REFRESH, data, len(named), True, self._now(flags), named[:])

    def many(self, op: int, ids: Iterable[int]) -> Request:
        """CANCEL or ACK of many."""
        named = self._ids(ids)
        return Request(op, records(head(op), len(named), named, 0, 0), len(named),
                       ids=named[:])

    def restore(self, rows: list[tuple[int, Instant, int]]) -> Request:
        clock = self.options.clock
        named = self._ids([row[0] for row in rows])
        deadlines = array("Q", [instant_ns(row[1], clock) for row in rows])
        cookies = column([row[2] for row in rows], "cookies")
        data = records(head(ARM), len(rows), named, deadlines, cookies)
        return Request(ARM, data, len(rows))

    def scan(self, cursor: int, most: int) -> ListRequest:
        return ListRequest(SCAN, number(cursor, "cursor"),
                           number(most, "most", 1, ROWS_MAX))

    def queues(self, cursor: int, most: int) -> ListRequest:
        return ListRequest(QUEUES, number(cursor, "cursor"),
                           number(most, "most", 1, ROWS_MAX))

    def _ids(self, ids: Iterable[int]) -> array[int]:
        named = column(ids, "ids")
        if named.count(0):
            number(0, "id %d of the batch" % named.index(0), 1)
        return named

    def _deadline(self, ttl: Span | None, at: Instant | None,
                  deadlines: Iterable[int] | None,
                  count: int) -> tuple[int | array[int], int]:
        if deadlines is None:
            return deadline_of(ttl, at, self.options.clock)
        if ttl is not None or at is not None:
            raise TypeError("ttl, at and deadlines exclude each other")
        return same_length(column(deadlines, "deadlines"), count, "deadlines"), 0

    def _now(self, flags: int) -> int:
        """Returns when a call began, if that is needed to send it again."""
        if flags & RELATIVE and self.options.reconnect:
            return time.clock_gettime_ns(self.options.clock)
        return 0


def same_length(values: Sized, count: int, what: str) -> array[int]:
    assert isinstance(values, array)
    if len(values) != count:
        raise ValueError("%d %s for %d timers" % (len(values), what, count))
    return values


def reply_of(request: Single) -> Record:
    """Returns the reply to a request, which may be a refusal. Raises why there is none."""
    if not request.error:
        if request.reply[2] != -errno.ECONNRESET:
            return request.reply
        request.sent, request.answered = 1, 0
        request.fail(errno.ECONNRESET)
    assert request.error
    raise request.error


def refused(reply: Record) -> Refused:
    return Refused(-reply[2], reply[0], reply[4])


def accepted(reply: Record) -> Record:
    """Returns a reply. Raises a refusal."""
    if reply[2]:
        raise refused(reply)
    return reply


def is_done(reply: Record) -> bool:
    """Returns False if there is no such timer. Raises another refusal."""
    if reply[2] and reply[2] != -errno.ENOENT:
        raise refused(reply)
    return not reply[2]


def replies_of(request: Request, allowed: int = 0) -> Replies:
    if request.error:
        raise request.error
    return Replies(request.op, request.replies, request.good).check(allowed)


def listed(request: ListRequest) -> tuple[list[Timer], list[Listed], int]:
    if request.error:
        raise request.error
    if request.status:
        raise Refused(-request.status, request.op)
    return request.timers, request.queues, request.cursor


def stat_reply(request: ListRequest) -> Stat:
    listed(request)
    assert request.stat
    return request.stat


def timer_of(reply: Record) -> Timer:
    # Timer() itself takes twice as long.
    return tuple.__new__(Timer, (reply[4], reply[5], reply[6], reply[3],
                                 reply[1] & REDELIVERED != 0))
