# SPDX-License-Identifier: LGPL-2.1-or-later
"""Timers in the queues of expiryd: expiry.connect() for asyncio, expiry.sync.connect()
for programs that block."""

from . import sync
from .aio import Queue, connect
from .due import Batch, Due
from .errors import (Closed, Collision, ConnectionLost, ExpiryError, NaiveDatetime,
                     NotAttached, OutOfRange, ProtocolError, QueueLost, Refusals, Refused,
                     RestoreFailed, TimedOut, UnsupportedVersion)
from .explanations import explain
from .names import MemoryStore, Names, SqliteStore, Store, id_of
from .options import default_path
from .replies import Listed, Replies, Stat, Timer
from .times import BOOTTIME, MONOTONIC, REALTIME
from .version import VERSION
from .wire import NEVER

__version__ = VERSION

__all__ = [
    "BOOTTIME", "Batch", "Closed", "Collision", "ConnectionLost", "Due", "ExpiryError",
    "Listed", "MONOTONIC", "MemoryStore", "NEVER", "NaiveDatetime", "Names", "NotAttached",
    "OutOfRange", "ProtocolError", "Queue", "QueueLost", "REALTIME", "Refusals", "Refused",
    "Replies", "RestoreFailed", "SqliteStore", "Stat", "Store", "TimedOut", "Timer",
    "UnsupportedVersion", "connect", "default_path", "explain", "id_of", "sync",
]
