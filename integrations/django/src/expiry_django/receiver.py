# SPDX-License-Identifier: LGPL-2.1-or-later
"""The loop of the command: expirations become signals, whatever fails meanwhile."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterator

import expiry
import expiry.sync
from django.db import close_old_connections

from . import conf
from .ends import Again, Ends
from .keys import key_of, timer_of
from .session import HAS_ROWS
from .timers import PAUSE, PAUSE_MAX, TIMEOUT, options

log = logging.getLogger("expiry_django")

PART = 2000     # timers armed together
TURN = 0.5      # seconds between looks at the clock and at stop


class Receiver:
    """
    @ends: what was told
    @stop: ends run()
    """

    def __init__(self) -> None:
        self.ends = Ends()
        self.stop = threading.Event()
        self._restored = False  # this connection has armed all timers
        self._swept = float("-inf")     # time.monotonic() of the last sweep

    def run(self) -> None:
        pause = 0.0
        while not self.stop.is_set():
            begun = time.monotonic()
            try:
                self._sweep()
                self._connection()
            except Exception as error:
                # Expirations without ACK come again with the next connection.
                log.warning("connecting again: %s", error, exc_info=not isinstance(
                    error, expiry.ExpiryError))
            if time.monotonic() - begun > PAUSE_MAX:
                pause = 0.0
            pause = min(2 * pause or PAUSE, PAUSE_MAX)
            close_old_connections()
            self.stop.wait(pause)

    def _connection(self) -> None:
        self._restored = False
        # A daemon that is away or hangs must not keep the command from its end.
        with expiry.sync.connect(
                **options(), reconnect=True, credit=2 * conf.get("BATCH"), timeout=TIMEOUT,
                restore=self._timers if HAS_ROWS else None) as queue:
            log.info("attached to queue %s", conf.get("QUEUE"))
            if HAS_ROWS and not self._restored:
                self._arm_all(queue)
            while not self.stop.is_set():
                batch = queue.receive(conf.get("BATCH"), TURN)
                if len(batch):
                    self._batch(queue, batch)
                self._sweep()

    def _timers(self) -> Iterator[tuple[int, int, int]]:
        log.info("the queue is empty or lost: arming the timers of the session table")
        self._restored = True
        return self.ends.timers()

    def _arm_all(self, queue: expiry.sync.Queue) -> None:
        """Arms the timers of the table in a queue that has timers. It may have been lost
        before this connection, and a web process was faster. A timer that is older than
        its row only leads to another look at the row."""
        rows = self.ends.timers()
        while part := list(itertools.islice(rows, PART)):
            ids, times, cookies = zip(*part)
            try:
                queue.arm_many(ids, deadlines=times, cookies=cookies)
            except expiry.Refusals as error:
                log.warning("%d timers were refused: the sweep tells these ends: %s",
                            error.total, error.exceptions[0])

    def _batch(self, queue: expiry.sync.Queue, batch: expiry.Batch) -> None:
        keys = {key_of(id, cookie): deadline for id, cookie, deadline in
                zip(batch.ids, batch.cookies, batch.deadlines)}
        again = self.ends.tell(keys)
        self._arm(queue, again)
        done = [timer_of(key) for key in keys if key not in again]
        if done:
            queue.ack_many([timer[0] for timer in done if timer])

    def _arm(self, queue: expiry.sync.Queue, again: Again) -> None:
        """Arms timers again. To arm one is to acknowledge it. If one is refused, all of
        its batch come again with the next connection."""
        if again:
            times = [(timer_of(key), at) for key, at in again.items()]
            queue.arm_many([timer[0] for timer, _ in times if timer],
                           deadlines=[at for _, at in times],
                           cookies=[timer[1] for timer, _ in times if timer])

    def _sweep(self) -> None:
        now = time.monotonic()
        if now - self._swept < conf.get("SWEEP"):
            return
        looked = self.ends.sweep()
        self._swept = now
        if looked:
            log.info("the sweep found %d rows without a timer", looked)
        close_old_connections()
