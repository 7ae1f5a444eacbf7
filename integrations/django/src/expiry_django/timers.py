# SPDX-License-Identifier: LGPL-2.1-or-later
"""Timers of this process's sessions, armed by a thread of their own: a request only leaves
a note.

There is one note for each id, the latest. So nothing older can undo it, in whatever order
a batch is sent. A note whose timer was refused, or whose connection broke, stays until it
is armed, unless a later one takes its place. If the daemon is away for so long that there
are PENDING_MAX notes, further ones are dropped and counted: the sweep of the command finds
these sessions in their table.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import expiry
import expiry.sync

from . import conf

log = logging.getLogger("expiry_django")

CANCELLED = 0           # the deadline of a note that says: cancel
GATHER = 0.005          # seconds in which notes gather, to be sent together
PAUSE = 0.1             # seconds before another attempt
PAUSE_MAX = 5.0
TIMEOUT = 5.0           # seconds that a silent daemon is waited for

Notes = dict[int, tuple[int, int]]      # id: deadline in ns, cookie


class Timers:
    """
    @notes: what is to be sent
    @dropped: notes that had no room; @refused: timers that the daemon refused, each time
    """

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self.notes: Notes = {}
        self.dropped = self.refused = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None
        self._queue: expiry.sync.Queue | None = None

    def arm(self, id: int, cookie: int, deadline: int) -> None:
        """Notes that the timer is to be armed. Never waits for the daemon."""
        self._note(id, (deadline, cookie))

    def cancel(self, id: int) -> None:
        self._note(id, (CANCELLED, 0))

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until all notes are sent and answered. Returns whether they are."""
        return self._idle.wait(timeout)

    def _note(self, id: int, note: tuple[int, int]) -> None:
        with self._lock:
            if id not in self.notes and len(self.notes) >= conf.get("PENDING_MAX"):
                self.dropped += 1
                return
            self.notes[id] = note
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True,
                                                name="expiry-sessions")
                self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    # ------------------------------------------------------------------
    # The thread

    def _run(self) -> None:
        pause = 0.0
        while True:
            self._wake.wait()
            time.sleep(GATHER)
            self._wake.clear()
            with self._lock:
                notes, self.notes = self.notes, {}
            failed: Notes = notes
            try:
                failed = self._send(notes)
            except expiry.ExpiryError as error:
                self._drop_queue()
                log.warning("%d timers of sessions wait for the daemon: %s", len(notes), error)
            except BaseException:   # whatever it is: nothing else ends this thread
                self._drop_queue()
                log.exception("%d timers of sessions wait", len(notes))
            pause = min(2 * pause or PAUSE, PAUSE_MAX) if failed else 0.0
            self._put_back(failed)
            time.sleep(pause)

    def _put_back(self, failed: Notes) -> None:
        """Keeps notes for another attempt; later ones of the same id stay."""
        with self._lock:
            for id, note in failed.items():
                if len(self.notes) < conf.get("PENDING_MAX"):
                    self.notes.setdefault(id, note)
                elif id not in self.notes:
                    self.dropped += 1
            if self.notes:
                self._wake.set()
            else:
                self._idle.set()

    def _send(self, notes: Notes) -> Notes:
        """Sends the notes. Returns those that are to be sent again."""
        if not notes:
            return {}
        queue = self._attached()
        armed = [id for id, note in notes.items() if note[0] != CANCELLED]
        cancelled = [id for id, note in notes.items() if note[0] == CANCELLED]
        again = self._refused(armed, lambda: queue.arm_many(
            armed, deadlines=[notes[id][0] for id in armed],
            cookies=[notes[id][1] for id in armed]))
        again += self._refused(cancelled, lambda: queue.cancel_many(cancelled))
        return {id: notes[id] for id in again}

    def _refused(self, ids: list[int], call: Callable[[], object]) -> list[int]:
        """Makes a call for these timers. Returns those that the daemon refused."""
        if not ids:
            return []
        try:
            call()
        except expiry.Refusals as error:
            refused = [ids[index] for index, number in error.replies.refused()
                       if number != errno.ENOENT]
            self.refused += len(refused)
            log.warning("%d timers of sessions were refused, and are sent again: %s",
                        len(refused), error.exceptions[0])
            return refused
        return []

    def _attached(self) -> expiry.sync.Queue:
        if self._queue is None:
            self._queue = expiry.sync.connect(**options(), consume=False, timeout=TIMEOUT)
        return self._queue

    def _drop_queue(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            try:
                queue.close()
            except Exception:
                log.debug("closing a broken connection", exc_info=True)


def options() -> dict[str, Any]:
    """Returns the queue that web processes and the command share."""
    shared: dict[str, Any] = {"queue": conf.get("QUEUE"), "path": conf.get("SOCKET"),
                                 "clock": expiry.REALTIME, "keyed": True, "ack": True}
    if conf.get("DURABLE"):
        shared["durable"] = True
    return shared


timers = Timers()
