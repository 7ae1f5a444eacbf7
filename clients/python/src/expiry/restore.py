# SPDX-License-Identifier: LGPL-2.1-or-later
"""What restore yielded, on its way to a server that may be held up."""

from __future__ import annotations

import errno
import time

from .calls import replies_of
from .request import Request
from .session import PAUSE, PAUSE_MAX, REFUSED
from .wire import SIZE


class Part:
    """Some timers of restore. A server that is held up refuses them with EBUSY and does
    nothing: these are sent again, after pauses like those between attempts to connect.

    @request: what is to be sent next; None when all are armed
    @pause: seconds until the next attempt, if it is refused again
    @refused_since: since when the server armed none of them; 0 if it was not busy
    """

    def __init__(self, request: Request) -> None:
        self.request: Request | None = request
        self.pause = PAUSE
        self.refused_since = 0.0

    def answered(self) -> float:
        """Takes the replies. Returns for how many seconds to wait before what is left is
        sent. Raises Refusals for another errno, and after REFUSED seconds in which the
        server armed none."""
        request = self.request
        assert request
        replies = replies_of(request, errno.EBUSY)
        busy = [index for index, _ in replies.refused()]
        if not busy:
            self.request = None
            return 0.0
        now = time.monotonic()
        if replies.done or not self.refused_since:
            self.pause, self.refused_since = PAUSE, now
        elif now - self.refused_since >= REFUSED:
            replies.check()
        data = memoryview(request.data).cast("B")
        self.request = Request(request.op, b"".join(
            data[index * SIZE:(index + 1) * SIZE] for index in busy), len(busy))
        pause, self.pause = self.pause, min(2 * self.pause, PAUSE_MAX)
        return pause
