# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records as buffers: the replies to a batch, and timers."""

from __future__ import annotations

import errno
import struct
from array import array
from dataclasses import dataclass
from typing import NamedTuple

from .errors import Refusals, Refused
from .wire import RECORD, SIZE, Buffer, Columns

SHOWN = 100     # exceptions of a group


class Replies(Columns):
    """The replies to a batch, in the order of the requests. @op: of all of them; @done:
    how many were not refused"""

    def __init__(self, op: int, data: Buffer, done: int) -> None:
        super().__init__(data)
        self.op = op
        self._done = done

    @property
    def done(self) -> int:
        """How many were not refused."""
        return self._done

    @property
    def statuses(self) -> array[int]:
        """0, or a negative errno."""
        out = array("h")
        out.frombytes(self.data)
        return out[1::SIZE // 2]

    def refused(self) -> list[tuple[int, int]]:
        """Returns index and errno of each that was refused."""
        if self._done == len(self):
            return []
        return [(index, -status) for index, status in enumerate(self.statuses) if status]

    def check(self, allowed: int = 0) -> Replies:
        """Raises Refusals if a request was refused, but with the errno @allowed."""
        if self._done == len(self):
            return self
        refused = [pair for pair in self.refused() if pair[1] != allowed]
        if refused:
            ids = self.ids
            group = Refusals("%d of %d timers" % (len(refused), len(self)),
                             [Refused(number, self.op, ids[index], index)
                              for index, number in refused[:SHOWN]])
            group.replies = self
            group.total = len(refused)
            raise group
        return self


class Timer(NamedTuple):
    """A timer that is armed, or delivered and not acknowledged. Times are nanoseconds on
    the queue's clock, the period milliseconds."""

    id: int
    deadline: int
    cookie: int
    period_ms: int = 0
    redelivered: bool = False


def timers_of(data: Buffer) -> list[Timer]:
    return [Timer(id, deadline, cookie, period, bool(flags & 2))
            for _, flags, _, period, id, deadline, cookie in RECORD.iter_unpack(data)]


# The fields of struct expiry_stat and struct expiry_server_stat by which it begins.
QUEUE_FIELDS = ("now_ns next_ns armed unacked limit nodes pages_heap pages_slots "
                "pages_index pages_resident arms refreshes cancels acks delivered "
                "redelivered refused refused_limit clock_sets lateness_max_ns clock_id "
                "mode past held").split()
QUEUE_STAT = struct.Struct("=20QII2Q")
QUEUE_STAT_SIZE = 512
SERVER_FIELDS = ("engine consumers credit producers uptime_ns queues connections records "
                 "expirations refused_connections refused_queues refused_timers "
                 "closed_protocol refused_busy refused_credit closed_backlog "
                 "backlog").split()
SERVER_STAT = struct.Struct("=4I13Q")
# A later field: the number of a durable queue, which no other one ever has.
SERVER_DURABLE = struct.Struct("=Q")
SERVER_DURABLE_AT = 1152
LISTED_FIELDS = ("number uid connections consumers credit consumer_pid observers access "
                 "gid").split()
LISTED_STAT = struct.Struct("=Q8I")


def fields_of(names: list[str], layout: struct.Struct, data: Buffer) -> dict[str, int]:
    """Returns the fields that are known; what is missing is 0."""
    part = bytes(data[:layout.size]).ljust(layout.size, b"\0")
    return dict(zip(names, layout.unpack(part)))


@dataclass(frozen=True)
class Stat:
    """Counters of the queue and of the server, named as in struct expiry_stat and struct
    expiry_server_stat. A counter that this server does not have is 0."""

    queue: dict[str, int]
    server: dict[str, int]


def stat_of(body: Buffer) -> Stat:
    server = body[QUEUE_STAT_SIZE:]
    return Stat(fields_of(QUEUE_FIELDS, QUEUE_STAT, body),
                fields_of(SERVER_FIELDS, SERVER_STAT, server) |
                fields_of(["durable"], SERVER_DURABLE, server[SERVER_DURABLE_AT:]))


@dataclass(frozen=True)
class Listed:
    """A queue of the server. @daemon: the fields of struct expiry_queue_stat."""

    name: str
    queue: dict[str, int]
    daemon: dict[str, int]


def listed_of(name: bytes, body: Buffer) -> Listed:
    return Listed(name.rstrip(b"\0").decode("ascii", "replace"),
                  fields_of(QUEUE_FIELDS, QUEUE_STAT, body),
                  fields_of(LISTED_FIELDS, LISTED_STAT, body[QUEUE_STAT_SIZE:]))


GONE = errno.ENOENT
