# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the blocking client and that for asyncio have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import Calls
from .options import default_path, make_options
from .session import Session

READ = 1 << 18          # bytes read at a time
RESTORE_BATCH = 512     # timers of restore that are armed at a time
CLOSE = 1.0             # seconds that closing waits for answers to what was posted


class Handle:
    """A queue of the server, without any I/O. @wakes: see Session"""

    def __init__(self, path: str | None, wakes: Callable[[], None], **options: Any) -> None:
        self._options = make_options(**options)
        self._path = path or default_path()
        self._calls = Calls(self._options)
        self._session = Session(self._options, wakes)

    @property
    def timers(self) -> int:
        """Timers in the queue when the connection was made."""
        return self._session.timers

    @property
    def connections(self) -> int:
        """Connections made so far."""
        return self._session.connections

    @property
    def durable(self) -> bool:
        """Whether the queue outlives the server and the machine."""
        return self._session.durable

    @property
    def commit_ms(self) -> int:
        """Milliseconds between flushes of a durable queue's journal. 0: requests are
        answered once they are on the disk."""
        return self._session.commit_ms
