# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions with a timer each, and the task that tells their ends.

Each process arms timers. One of them also takes the expirations, and another one when that
has ended. A timer only makes it look at the row: one that is early, late, double or lost
tells nothing wrong. What has no timer, as the daemon was away or refused it, is found by a
sweep.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import expiry

from .session import DELETED, EXPIRED, key_of, timer_of
from .store import DELETED_AT, Row, Store

log = logging.getLogger("expiry_starlette")

AT_ONCE = 1             # the deadline of a session that the application ended, in ns
BATCH = 100
PART = 2000             # timers that are armed at a time
PAUSE, PAUSE_MAX = 0.1, 2.0
GRACE = 10.0            # seconds after which a row is the sweep's, not its timer's
POSTS_MAX = 65536

Ended = Callable[[str, dict[str, Any], str], Awaitable[None] | None]


class Sessions:
    """
    @path: of the file of SQLite
    @session_ended: called for each end with the session's key, what it had, and a reason:
        EXPIRED or DELETED. May be async. One that raises is called again after @retry s
    @queue, @socket: of expiryd; one queue for each file
    @durable: keep the timers in expiryd's journal
    @sweep: seconds between looks for ends whose timer is missing
    @told, @failed: how often session_ended returned and raised; @swept: of these, found by
        the sweep; @refused: timers that expiryd refused, or for which there was no room
    """

    def __init__(self, path: str, session_ended: Ended, queue: str = "sessions",
                 socket: str | None = None, durable: bool = False, sweep: float = 60.0,
                 retry: float = 60.0, grace: float = GRACE) -> None:
        self.store = Store(path)
        self.told = self.failed = self.swept = self.refused = 0
        self._session_ended = session_ended
        self._options: dict[str, Any] = {"queue": queue, "path": socket, "keyed": True,
                                         "ack": True, "durable": durable}
        self._sweep = sweep
        self._retry = retry
        self._grace = round(grace * 1e9)
        self._arming: expiry.Queue | None = None
        self._failed_until: dict[str, float] = {}

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """For Starlette(lifespan=...), or to be used as `async with`."""
        await asyncio.to_thread(self.store.open)
        tasks = [asyncio.create_task(self._again(run))
                 for run in (self._keep_arming, self._take)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.store.close()

    # ------------------------------------------------------------------
    # Requests, which never wait for expiryd

    async def insert(self, row: Row) -> None:
        await self.store.insert(row)
        self._arm(row.key, row.ends)

    async def update(self, row: Row, is_changed: bool) -> bool:
        now = time.time_ns()
        if is_changed:
            saved = await self.store.update(row, now)
        else:
            saved = await self.store.touch(row.key, row.ends, now)
        if saved:
            self._arm(row.key, row.ends)
        return saved

    async def rename(self, key: str, row: Row) -> bool:
        saved = await self.store.rename(key, row, time.time_ns())
        if saved:
            self._arm(row.key, row.ends)        # the old timer finds no row
        return saved

    async def end(self, key: str) -> None:
        if await self.store.end(key, time.time_ns()):
            self._arm(key, AT_ONCE)

    def _arm(self, key: str, ends: int) -> None:
        id, cookie = timer_of(key)
        try:
            if self._arming:
                self._arming.post_arm(id, at=ends, cookie=cookie)
                return
        except (OSError, BufferError) as error:
            if not self.refused:
                log.warning("timers of sessions are left to the sweep: %s", error)
        self.refused += 1

    def _on_refused(self, op: int, id: int, number: int) -> None:
        if not self.refused:
            log.warning("expiryd refuses timers of sessions, errno %d: they are left to "
                        "the sweep", number)
        self.refused += 1

    # ------------------------------------------------------------------
    # Tasks

    async def _again(self, run: Callable[[], Awaitable[None]]) -> None:
        """Calls @run whenever it has failed, after pauses."""
        pause = PAUSE
        while True:
            began = time.monotonic()
            try:
                await run()
            except Exception as error:  # whatever it is: without a task, ends are silent
                if time.monotonic() - began > PAUSE_MAX:
                    pause = PAUSE
                is_busy = isinstance(error, expiry.NotAttached) and \
                    error.errno == errno.EBUSY
                if pause == PAUSE and not is_busy:
                    log.warning("%s; trying again", error,
                                exc_info=not isinstance(error, OSError))
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX)

    async def _keep_arming(self) -> None:
        """Has a connection for this process's requests."""
        async with expiry.connect(**self._options, consume=False, reconnect=True,
                                  posts_max=POSTS_MAX,
                                  on_refused=self._on_refused) as queue:
            self._arming = queue
            try:
                while True:
                    await asyncio.sleep(PAUSE_MAX)
                    await queue.stat()      # raises when the connection has ended for good
            finally:
                self._arming = None

    async def _take(self) -> None:
        """Tells ends until the connection breaks. If another process does, attaching
        fails with EBUSY."""
        async with expiry.connect(**self._options, credit=4 * BATCH) as queue:
            await self._arm_all(queue)
            swept = time.monotonic()
            taking = asyncio.create_task(queue.receive(BATCH))
            try:
                while True:
                    await asyncio.wait({taking}, timeout=min(self._sweep, 1.0))
                    if taking.done():
                        batch = taking.result()
                        taking = asyncio.create_task(queue.receive(BATCH))
                        await self._tell_batch(queue, batch)
                    if time.monotonic() - swept >= self._sweep:
                        await self._sweep_rows()
                        swept = time.monotonic()
            finally:
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)

    async def _arm_all(self, queue: expiry.Queue) -> None:
        """Arms all sessions: the queue may be another one, or a process was killed between
        its row and its timer."""
        key = ""
        while rows := await self.store.after(key, PART):
            timers = [timer_of(row.key) for row in rows]
            try:
                await queue.arm_many([id for id, _ in timers],
                                     deadlines=[row.ends or AT_ONCE for row in rows],
                                     cookies=[cookie for _, cookie in timers])
            except expiry.Refusals as error:
                for index, number in error.replies.refused():
                    self._on_refused(error.replies.op, timers[index][0], number)
            key = rows[-1].key

    async def _tell_batch(self, queue: expiry.Queue, batch: expiry.Batch) -> None:
        for id, cookie in zip(batch.ids, batch.cookies):
            row = await self.store.load(key_of(id, cookie))
            again = await self._tell(row) if row else None
            if again is None:
                await queue.ack(id)
                continue
            # To arm a timer anew acknowledges its expiration.
            try:
                await queue.arm(id, at=again, cookie=cookie)
            except expiry.Refused as error:
                self._on_refused(error.op, id, error.errno or 0)
                await queue.ack(id)

    async def _tell(self, row: Row) -> int | None:
        """Tells a session's end. Returns when it is to be looked at again, in ns; None if
        it is over."""
        if row.ends > time.time_ns():
            return row.ends
        try:
            result = self._session_ended(row.key, json.loads(row.data),
                                         DELETED if row.ends == DELETED_AT else EXPIRED)
            if inspect.isawaitable(result):
                await result
        except Exception:
            log.exception("session_ended failed for session %s...: it is called again in "
                          "%g s", row.key[:8], self._retry)
            self.failed += 1
            self._failed_until[row.key] = time.monotonic() + self._retry
            return time.time_ns() + round(self._retry * 1e9)
        self._failed_until.pop(row.key, None)
        await self.store.remove(row)
        self.told += 1
        return None

    async def _sweep_rows(self) -> None:
        """Tells ends whose timers did not come, the oldest first."""
        now = time.monotonic()
        self._failed_until = {key: at for key, at in self._failed_until.items()
                              if at > now - self._sweep}
        # A row that failed comes first each time: enough are read to get behind these.
        most = BATCH + len(self._failed_until)
        while rows := await self.store.over(time.time_ns() - self._grace, most):
            told = 0
            for row in rows:
                if self._failed_until.get(row.key, 0.0) <= time.monotonic():
                    told += await self._tell(row) is None
            self.swept += told
            if not told:
                break
