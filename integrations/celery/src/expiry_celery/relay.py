# SPDX-License-Identifier: LGPL-2.1-or-later
"""The relay between Redis, where messages are parked, and expiry, which knows when.

Two threads. The due one takes expirations, moves their messages to the lists of the
workers, and then acknowledges. The inbox one arms and cancels what publishers asked for,
and then removes their requests. So a request is in Redis until expiry has answered it,
and an expiration is in expiry until Redis has the message. What a thread did last before
the relay ended is done again, and changes nothing.

What expiry refuses to arm waits in Redis alone, and the inbox's thread moves it
(slow.py).

The inbox's thread also compares: it arms all that is parked when the relay starts, when
expiryd or Redis have started anew, and each hour.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from array import array
from collections.abc import Callable

import expiry

from .parking import Entry, Parking
from .slow import Slow

log = logging.getLogger("expiry_celery")

BATCH = 256             # messages that a script moves
TAKE = 512              # requests of publishers, and timers that are compared, at a time
LEASE = 3.0             # seconds until another relay takes over
PAUSE, PAUSE_MAX = 0.01, 1.0
COMPARE = 3600.0        # seconds between two comparisons

Revoked = Callable[[bytes], None]


class Counters:
    """What the relay has done. @late_ns: since take_late_ns()"""

    def __init__(self) -> None:
        self.armed = self.cancelled = self.moved = self.compared = self.refused = 0
        self.late_ns = 0

    def totals(self) -> str:
        return "armed %d, cancelled %d, compared %d, moved %d, refused %d" % (
            self.armed, self.cancelled, self.compared, self.moved, self.refused)

    def take_late_ns(self) -> int:
        late, self.late_ns = self.late_ns, 0
        return late


class Inbox:
    """What publishers ask for.

    @connect: returns a connection to the queue, which does not consume
    @revoked: gets the message of each task that was revoked while it was parked
    """

    def __init__(self, parking: Parking, connect: Callable[[], expiry.sync.Queue],
                 revoked: Revoked, counters: Counters) -> None:
        self._parking = parking
        self._connect = connect
        self._revoked = revoked
        self._counters = counters
        self._slow = Slow(parking, counters)
        self._server = ""
        self._compared = 0.0
        self._cursor: int | None = None     # of the comparison that is under way

    def run(self) -> None:
        """Serves the inbox until a connection breaks."""
        server = self._parking.server()
        with self._connect() as queue:
            # The queue may be another one, and Redis may have lost its last writes.
            self._cursor = 0
            if server != self._server:
                log.info("Redis %s: %d messages parked", server, self._parking.count())
                self._server = server
            while True:
                self._turn(queue)

    def _turn(self, queue: expiry.sync.Queue) -> None:
        if not self._parking.hold(LEASE):
            # When this relay takes over, its queue may have none of the timers.
            self._cursor = 0
            time.sleep(PAUSE_MAX)
            return
        if self._cursor is None and time.monotonic() - self._compared > COMPARE:
            self._cursor = 0
        pause = self._slow.turn(queue)
        if self._cursor is None:
            self._parking.wait(pause)
        entries = self._parking.take(TAKE)
        if entries:
            self._carry_out(queue, entries)
            self._parking.finish(len(entries))
        if self._cursor is not None:
            self._compare(queue, self._cursor)

    def _carry_out(self, queue: expiry.sync.Queue, entries: list[Entry]) -> None:
        """Arms and cancels. Of several requests about a timer the last one counts."""
        last = {entry.id: entry for entry in entries}
        arms = [entry for entry in last.values() if entry.deadline]
        cancels = [entry for entry in last.values() if not entry.deadline]
        if arms:
            self._counters.armed += self._slow.arm(queue, arms)
        if cancels:
            queue.cancel_many([entry.id for entry in cancels])
            # If this relay has stood still, another one may have armed the next message of
            # such a timer.
            again = self._parking.parked(cancels)
            if again:
                self._slow.arm(queue, again)
        for entry in entries:
            if not entry.deadline:
                self._revoked(entry.message)
        self._counters.cancelled += len(cancels)

    def _compare(self, queue: expiry.sync.Queue, cursor: int) -> None:
        cursor, entries = self._parking.look(cursor, TAKE)
        if entries:
            self._slow.arm(queue, entries)
        self._counters.compared += len(entries)
        self._cursor = cursor or None
        if not cursor:
            self._compared = time.monotonic()


class Due:
    """Expirations: their messages go to the lists of the workers."""

    def __init__(self, parking: Parking, queue: expiry.sync.Queue,
                 counters: Counters) -> None:
        self._parking = parking
        self._queue = queue
        self._counters = counters
        self._slow = Slow(parking, counters)

    def run(self) -> None:
        """Moves messages until a connection breaks."""
        for batch in self._queue.batches(BATCH):
            moved, other = self._parking.move(zip(batch.ids, batch.cookies,
                                                  batch.deadlines))
            # Acknowledging such a timer could acknowledge the message's later time.
            # Arming it anew acknowledges the expiration alone.
            if other:
                # These have their timers: no limit refuses them.
                self._slow.arm(self._queue, other)
                again = {entry.id for entry in other}
                self._queue.post_ack(array("Q", (id for id in batch.ids
                                                 if id not in again)))
            else:
                batch.acknowledge()
            self._counters.moved += moved
            self._counters.late_ns = max(self._counters.late_ns,
                                         time.time_ns() - batch.deadlines[0])


class Relay:
    """Both threads.

    @open_parking: returns a connection to Redis
    @errors: what a connection to Redis raises
    @path: expiryd's socket
    @durable: "yes", "no", or "auto": if the daemon has a journal
    """

    def __init__(self, open_parking: Callable[[], Parking], queue: str, revoked: Revoked,
                 errors: tuple[type[BaseException], ...], path: str | None = None,
                 durable: str = "auto") -> None:
        self._open = open_parking
        self._queue = queue
        self._path = path
        self._durable = durable
        self._errors: tuple[type[BaseException], ...] = (*errors, OSError, ExceptionGroup)
        self._parking = open_parking()
        self.counters = Counters()
        self._inbox = Inbox(self._parking, self._connect, revoked, self.counters)

    def _connect(self, consume: bool = False) -> expiry.sync.Queue:
        def attach(durable: bool) -> expiry.sync.Queue:
            return expiry.sync.connect(self._queue, path=self._path, consume=consume,
                                       keyed=True, ack=True, durable=durable)
        if self._durable == "no":
            return attach(False)
        try:
            return attach(True)
        except expiry.NotAttached as error:
            # No journal; or the queue was made without one, and was kept.
            if self._durable == "yes" or error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        return attach(False)

    def run(self) -> None:
        """Runs until an exception such as SystemExit ends it. No step of either thread
        needs an end of its own."""
        threading.Thread(target=self._again, args=("inbox", self._inbox.run),
                         daemon=True).start()
        try:
            self._again("due", self._serve_due)
        finally:
            self._parking.release()

    def _serve_due(self) -> None:
        # A second relay of this machine waits here: a queue has one consumer.
        with self._connect(consume=True) as queue:
            log.info("serving queue %s%s with %d timers", self._queue,
                     ", durable," * queue.durable, queue.timers)
            Due(self._open(), queue, self.counters).run()

    def _again(self, what: str, run: Callable[[], None]) -> None:
        """Calls @run whenever it has failed, after pauses."""
        pause = PAUSE
        while True:
            began = time.monotonic()
            try:
                run()
            except Exception as error:  # whatever it is: without a thread, messages stay
                if time.monotonic() - began > PAUSE_MAX:
                    pause = PAUSE
                if pause == PAUSE:
                    log.warning("%s: %s; trying again", what, error,
                                exc_info=not isinstance(error, self._errors))
            time.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX)
