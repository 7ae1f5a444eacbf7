# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times of Python as nanoseconds of a queue."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta, timezone

from .errors import NaiveDatetime, OutOfRange
from .wire import NEVER, RELATIVE, number

REALTIME, MONOTONIC, BOOTTIME = time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, \
    time.CLOCK_BOOTTIME
CLOCKS = REALTIME, MONOTONIC, BOOTTIME

MOST_SECONDS = NEVER // 10**9

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)

Span = float | timedelta
Instant = int | datetime


def span_ns(span: Span, what: str = "ttl") -> int:
    """Returns seconds, or a timedelta, as nanoseconds."""
    if type(span) is int:
        nanoseconds = span * 10**9
    elif isinstance(span, timedelta):
        nanoseconds = span // MICROSECOND * 1000
    elif isinstance(span, bool) or not isinstance(span, (int, float)):
        raise TypeError("%s must be seconds or a timedelta, not %r" % (what, span))
    elif isinstance(span, int):
        nanoseconds = span * 10**9
    elif math.isfinite(span):
        nanoseconds = round(span * 1e9)
    else:
        raise OutOfRange("%s is %r" % (what, span))
    if not 0 <= nanoseconds <= NEVER:
        raise OutOfRange("%s is %r, not from 0 to 2^64 - 1 nanoseconds" % (what, span))
    return nanoseconds


def instant_ns(at: Instant, clock: int) -> int:
    """Returns an aware datetime, or nanoseconds on the queue's clock, as these."""
    if not isinstance(at, datetime):
        return number(at, "at")
    if at.utcoffset() is None:
        raise NaiveDatetime("%r has no time zone: add tzinfo, as in "
                            "datetime.now(timezone.utc)" % at)
    if clock != REALTIME:
        raise ValueError("a datetime is a time of REALTIME, the queue has another clock")
    return number((at - EPOCH) // MICROSECOND * 1000, "at")


def period_ms(period: Span | None) -> int:
    """Returns a period as milliseconds, 0 for none."""
    if period is None:
        return 0
    milliseconds, rest = divmod(span_ns(period, "period"), 10**6)
    if rest or not 1 <= milliseconds <= 2**32 - 1:
        raise OutOfRange("period is %r, not whole milliseconds from 1 to 2^32 - 1"
                         % period)
    return milliseconds


def deadline_of(ttl: Span | None, at: Instant | None, clock: int) -> tuple[int, int]:
    """Returns nanoseconds, and RELATIVE if they count from now, else 0."""
    if at is None:
        # What most programs give, without another call.
        if isinstance(ttl, int) and ttl is not True and ttl is not False and \
                0 <= ttl <= MOST_SECONDS:
            return ttl * 10**9, RELATIVE
        if ttl is None:
            raise TypeError("ttl or at is needed")
        return span_ns(ttl), RELATIVE
    if ttl is not None:
        raise TypeError("ttl and at exclude each other")
    return instant_ns(at, clock), 0
