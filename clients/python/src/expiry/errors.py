# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors. Each is an OSError with an errno, and a note that says what to do about it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from .explanations import explain

if TYPE_CHECKING:
    from .replies import Replies


class ExpiryError(OSError):
    """Any error of a server or a connection. @op: the request's, HELLO for connecting."""

    def __init__(self, number: int, op: int = 0, text: str = "") -> None:
        super().__init__(number, text or os.strerror(number))
        self.op = op
        self.add_note(explain(number, op))


class NotAttached(ExpiryError):
    """There is no server, or it refused the queue. @path: of a socket without server"""

    def __init__(self, number: int, op: int = 0, path: str | None = None) -> None:
        super().__init__(number, op)
        if path:
            self.filename = path


class UnsupportedVersion(NotAttached):
    """The server speaks another version of the protocol."""


class Refused(ExpiryError):
    """The server refused a request; nothing was done. @id: the timer's; @index: its place
    in a batch."""

    def __init__(self, number: int, op: int = 0, id: int = 0, index: int = 0) -> None:
        super().__init__(number, op)
        self.id = id
        self.index = index


class Refusals(ExceptionGroup[Refused]):
    """Some timers of a batch were refused. The others were carried out.

    @replies: of the whole batch, with the status of each
    @total: how many were refused; the group has an exception for the first hundred
    """

    replies: Replies
    total: int


class ConnectionLost(ExpiryError):
    """The connection ended before all answers came.

    @answered: records of the call that were carried out or refused
    @doubtful: records that may have been carried out
    @unsent: records that were not carried out
    """

    def __init__(self, number: int = errno.ECONNRESET, op: int = 0, answered: int = 0,
                 doubtful: int = 0, unsent: int = 0) -> None:
        super().__init__(number, op, "%s: %d answered, %d may have been carried out, "
                         "%d not sent" % (os.strerror(number), answered, doubtful, unsent))
        self.answered = answered
        self.doubtful = doubtful
        self.unsent = unsent


class ProtocolError(ConnectionLost):
    """What the server sent breaks the protocol."""


class TimedOut(ConnectionLost, TimeoutError):
    """The server was silent for longer than the option timeout."""


class QueueLost(ConnectionLost):
    """The queue was lost, with its timers."""


class Closed(ConnectionLost):
    """The program closed the connection."""


class RestoreFailed(ConnectionLost):
    """The function restore raised what is the cause, or its timers were refused."""


class OutOfRange(ValueError):
    """A number that a record cannot hold."""


class NaiveDatetime(ValueError):
    """A datetime without a time zone."""


class Collision(ExpiryError):
    """Two names have the same id."""


def lost_error(number: int) -> type[ConnectionLost]:
    """Returns the type for a connection that ended by this errno."""
    return {errno.EPROTO: ProtocolError, errno.ETIMEDOUT: TimedOut,
            errno.ESTALE: QueueLost, errno.ESHUTDOWN: Closed}.get(number, ConnectionLost)
