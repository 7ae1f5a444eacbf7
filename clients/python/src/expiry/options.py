# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a program asks for when it connects."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass

from .times import CLOCKS, REALTIME, Instant
from .wire import (HELLO, HELLO_ACK, HELLO_CONSUME, HELLO_DURABLE, HELLO_EXISTING,
                   HELLO_KEYED, HELLO_OBSERVE, HELLO_RECORD, NAME_MAX, VERSION, number)

CREDIT_MAX = 1048576
SYSTEM_SOCKET = "/run/expiryd/socket"

Row = tuple[int, Instant, int]
Restore = Callable[[], Iterable[Row]]
AsyncRestore = Callable[[], Iterable[Row] | AsyncIterable[Row]]


def default_path() -> str:
    """Returns the socket that libexpiry takes: $EXPIRY_SOCKET, the system's, or that of
    the user's own daemon. A program with more rights than its caller ignores both
    variables."""
    if os.geteuid() == os.getuid() and os.getegid() == os.getgid():
        given = os.environ.get("EXPIRY_SOCKET")
        if given:
            return given
        directory = os.environ.get("XDG_RUNTIME_DIR", "")
        if os.geteuid() and directory.startswith("/") and not is_there(SYSTEM_SOCKET):
            return os.path.join(directory, "expiry/socket")
    return SYSTEM_SOCKET


def is_there(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


@dataclass(frozen=True)
class Options:
    """See connect() for what each means."""

    queue: str
    clock: int
    consume: bool
    keyed: bool
    ack: bool
    durable: bool
    existing: bool
    observe: bool
    reconnect: bool
    credit: int
    timeout: float | None
    restore: AsyncRestore | None
    posts_max: int
    on_refused: Callable[[int, int, int], None] | None
    on_clock_set: Callable[[int], None] | None
    on_missed: Callable[[int], None] | None

    def __post_init__(self) -> None:
        if not re.fullmatch("[A-Za-z0-9._-]{0,%d}" % NAME_MAX, self.queue, re.ASCII):
            raise ValueError("queue %r is not of at most 24 characters A-Z a-z 0-9 . _ -"
                             % self.queue)
        if self.clock not in CLOCKS:
            raise ValueError("clock %r is not REALTIME, MONOTONIC or BOOTTIME" % self.clock)
        number(self.credit, "credit", 1, CREDIT_MAX)
        number(self.posts_max, "posts_max", 1)
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError("timeout is %r, not above 0" % self.timeout)
        if self.observe and (self.consume or not self.queue):
            raise ValueError("an observer needs a queue with a name, and does not consume")
        if self.existing and not self.queue and (self.consume or self.ack or self.keyed):
            raise ValueError("existing without a name has no queue")
        if self.durable and not (self.queue and self.ack and self.keyed):
            raise ValueError("a durable queue has a name, and is keyed and acknowledging: "
                             "keyed=True, ack=True")
        if self.reconnect and not self.queue:
            raise ValueError("reconnect needs a queue with a name: others end with their "
                             "connection")
        if self.reconnect and self.consume and not self.ack:
            raise ValueError("reconnect loses expirations without ack")
        if self.restore and not self.keyed:
            raise ValueError("restore needs a keyed queue")

    def hello(self) -> bytes:
        flags = HELLO_CONSUME * self.consume | HELLO_ACK * self.ack | \
            HELLO_KEYED * self.keyed | HELLO_EXISTING * self.existing | \
            HELLO_OBSERVE * self.observe | HELLO_DURABLE * self.durable
        return HELLO_RECORD.pack(HELLO, flags, VERSION, self.clock, self.queue.encode())


def make_options(queue: str = "", *, clock: int = REALTIME, consume: bool = True,
                 keyed: bool = False, ack: bool = False, durable: bool = False,
                 existing: bool = False, observe: bool = False, reconnect: bool = False,
                 credit: int = 1024, timeout: float | None = None, restore: AsyncRestore | None = None,
                 posts_max: int = 65536,
                 on_refused: Callable[[int, int, int], None] | None = None,
                 on_clock_set: Callable[[int], None] | None = None,
                 on_missed: Callable[[int], None] | None = None) -> Options:
    """Checks what connect() was given."""
    if observe:
        consume = False
    return Options(queue, clock, consume, keyed, ack, durable, existing, observe, reconnect,
                   credit, timeout, restore, posts_max, on_refused, on_clock_set, on_missed)
