# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions in a file of SQLite, for all processes of a machine.

A row is what is not told yet. One whose end has come, or that the application ended, can
be loaded by nobody, and stays until its end was told.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

TABLE = """
CREATE TABLE IF NOT EXISTS sessions (
    key TEXT PRIMARY KEY, ends INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_ends ON sessions (ends);
"""
BUSY = 10.0             # seconds that a call waits for another process
DELETED_AT = 0          # the end of a session that the application ended


class Row(NamedTuple):
    """@ends: ns since 1970; @data: JSON"""

    key: str
    ends: int
    data: str


class Store:
    """A connection, which one thread uses at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        self._connection = sqlite3.connect(self._path, timeout=BUSY, isolation_level=None,
                                           check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(TABLE)

    def close(self) -> None:
        with self._lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    async def _run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        def call() -> T:
            with self._lock:
                if not self._connection:
                    raise RuntimeError("Sessions are not open: use their lifespan")
                return function(self._connection)
        return await asyncio.to_thread(call)

    async def _change(self, statement: str, *values: Any) -> bool:
        """Returns whether a row was changed."""
        return await self._run(lambda c: c.execute(statement, values).rowcount > 0)

    async def _rows(self, statement: str, *values: Any) -> list[Row]:
        found = await self._run(lambda c: c.execute(statement, values).fetchall())
        return [Row(*row) for row in found]

    async def load(self, key: str) -> Row | None:
        rows = await self._rows("SELECT key, ends, data FROM sessions WHERE key = ?", key)
        return rows[0] if rows else None

    async def insert(self, row: Row) -> None:
        await self._change("INSERT INTO sessions (key, ends, data) VALUES (?, ?, ?)", *row)

    async def update(self, row: Row, now: int) -> bool:
        """Saves a session that goes on. Returns False if it has ended meanwhile."""
        return await self._change("UPDATE sessions SET ends = ?, data = ? "
                                  "WHERE key = ? AND ends > ?",
                                  row.ends, row.data, row.key, now)

    async def touch(self, key: str, ends: int, now: int) -> bool:
        """Moves the end of a session that goes on, and leaves what it has."""
        return await self._change("UPDATE sessions SET ends = ? WHERE key = ? AND ends > ?",
                                  ends, key, now)

    async def rename(self, key: str, row: Row, now: int) -> bool:
        """Replaces a session that goes on by one with another key."""
        return await self._change("UPDATE sessions SET key = ?, ends = ?, data = ? "
                                  "WHERE key = ? AND ends > ?",
                                  row.key, row.ends, row.data, key, now)

    async def end(self, key: str, now: int) -> bool:
        """Ends a session. Returns False if it has ended before."""
        return await self._change("UPDATE sessions SET ends = ? WHERE key = ? AND ends > ?",
                                  DELETED_AT, key, now)

    async def remove(self, row: Row) -> None:
        """Removes a session whose end was told."""
        await self._change("DELETE FROM sessions WHERE key = ? AND ends = ?",
                           row.key, row.ends)

    async def after(self, key: str, most: int) -> list[Row]:
        """Returns some sessions behind a key, in order, without their data."""
        return await self._rows("SELECT key, ends, '' FROM sessions WHERE key > ? "
                                "ORDER BY key LIMIT ?", key, most)

    async def over(self, before: int, most: int) -> list[Row]:
        """Returns some sessions that ended before a time."""
        return await self._rows("SELECT key, ends, data FROM sessions WHERE ends < ? "
                                "ORDER BY ends LIMIT ?", before, most)
