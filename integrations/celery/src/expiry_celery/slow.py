# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages whose timers expiry refused: a limit is reached, or its journal fails.

They wait in a sorted set of Redis, by deadline, and the relay looks for those that are
due. So each is in time, as late as a turn of the inbox. Their timers are armed as soon as
expiry takes them, the next due first, with pauses that grow.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import expiry

from .parking import Entry, Parking

if TYPE_CHECKING:
    from .relay import Counters

log = logging.getLogger("expiry_celery")

BATCH = 256
WAIT = 1.0              # most seconds until the relay looks again
PAUSE, PAUSE_MAX = 0.5, 60.0

# What may be otherwise later. After any other errno the queue is of no use.
LATER = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EBUSY, errno.EIO, errno.EFBIG}


class Slow:
    """Arms timers, and keeps those messages whose timers were refused.

    @clock: the time in ns since 1970
    """

    def __init__(self, parking: Parking, counters: Counters,
                 clock: Callable[[], int] = time.time_ns) -> None:
        self._parking = parking
        self._counters = counters
        self._clock = clock
        self._lock = threading.Lock()
        self._is_refusing = False
        self._pause = PAUSE
        self._retry = 0.0

    def arm(self, queue: expiry.sync.Queue, entries: list[Entry]) -> int:
        """Arms timers. Returns how many expiry took; the others are in Redis."""
        refused = self._arm(queue, entries)
        if refused:
            self._parking.refuse(refused)
            self._counters.refused += len(refused)
        return len(entries) - len(refused)

    def _arm(self, queue: expiry.sync.Queue, entries: list[Entry]) -> list[Entry]:
        try:
            queue.arm_many([entry.id for entry in entries],
                           deadlines=[entry.deadline for entry in entries],
                           cookies=[entry.cookie for entry in entries])
            return []
        except expiry.Refusals as error:
            refused = error.replies.refused()
            if any(number not in LATER for _, number in refused):
                raise
        self._begin(refused[0][1])
        return [entries[index] for index, _ in refused]

    def _begin(self, number: int) -> None:
        with self._lock:
            if self._is_refusing:
                return
            self._is_refusing = True
            self._pause = PAUSE
            self._retry = time.monotonic() + PAUSE
        log.warning("expiry refuses timers: %s; their messages wait in Redis",
                    os.strerror(number))

    def turn(self, queue: expiry.sync.Queue) -> float:
        """Moves what is due, and tries to arm the next. Returns for how many seconds
        nothing is to be done here."""
        first = self._parking.first_refused()
        if first is None:
            self._end()
            return WAIT
        if first <= self._clock():
            self._move()
        elif time.monotonic() >= self._retry:
            self._try_again(queue)
        first = self._parking.first_refused()
        due = (first - self._clock()) / 1e9 if first else 0.0
        return max(min(due, self._retry - time.monotonic(), WAIT), 0.001)

    def _end(self) -> None:
        with self._lock:
            was_refusing, self._is_refusing = self._is_refusing, False
        if was_refusing:
            log.info("expiry takes timers again: none waits in Redis alone")

    def _move(self) -> None:
        due = self._parking.refused(BATCH, self._clock())
        moved, _ = self._parking.move((entry.id, entry.cookie, entry.deadline)
                                      for entry in due)
        self._parking.forget(due)
        self._counters.moved += moved

    def _try_again(self, queue: expiry.sync.Queue) -> None:
        entries = self._parking.refused(BATCH)
        # Some were revoked meanwhile, or wait for another time.
        waiting = set(self._parking.parked(entries))
        live = [entry for entry in entries if entry in waiting]
        refused = set(self._arm(queue, live)) if live else set()
        self._parking.forget([entry for entry in entries if entry not in refused])
        self._counters.armed += len(live) - len(refused)
        self._pause = min(2 * self._pause, PAUSE_MAX) if refused else PAUSE
        self._retry = time.monotonic() + (self._pause if refused else 0)
