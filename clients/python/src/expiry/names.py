# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of timers that are no integers, and what belongs to them.

A record has 64 bits for the id and 64 for the cookie. An integer primary key is an id as
it is. Others become ids by a keyed hash, so that no client can aim at another's id. Two
of n names have the same id with a probability of n^2 / 2^65. A collision is seen: put()
compares the names.
"""

from __future__ import annotations

import errno
import hashlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from typing import Protocol

from .errors import Collision, OutOfRange

KEY_MIN, KEY_MAX = 16, 64
TWO = struct.Struct("<QQ")


def id_of(name: bytes | str, key: bytes) -> tuple[int, int]:
    """Returns the id of a name, and a check that a program may use as cookie: the two
    halves of keyed BLAKE2b, 128 bits. @key: 16 to 64 bytes, secret, the same for ever."""
    if not KEY_MIN <= len(key) <= KEY_MAX:
        raise OutOfRange("a key of %d bytes, not of 16 to 64" % len(key))
    if isinstance(name, str):
        name = name.encode()
    first, second = TWO.unpack(hashlib.blake2b(name, key=key, digest_size=16).digest())
    return first or 1, second


class Store(Protocol):
    """Where Names keeps names and values. Ids are any 64-bit numbers."""

    def put(self, id: int, name: bytes, value: bytes) -> bytes:
        """Keeps both, and returns the name that the id has now: another one if it was
        there before. Then nothing is changed."""

    def get(self, id: int) -> tuple[bytes, bytes] | None:
        """Returns name and value."""

    def delete(self, ids: Iterable[int]) -> None: ...

    def ids(self) -> Iterator[int]: ...

    def close(self) -> None: ...


class MemoryStore:
    """Names that end with the program."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[bytes, bytes]] = {}

    def put(self, id: int, name: bytes, value: bytes) -> bytes:
        there = self._rows.get(id)
        if there is not None and there[0] != name:
            return there[0]
        self._rows[id] = name, value
        return name

    def get(self, id: int) -> tuple[bytes, bytes] | None:
        return self._rows.get(id)

    def delete(self, ids: Iterable[int]) -> None:
        for id in ids:
            self._rows.pop(id, None)

    def ids(self) -> Iterator[int]:
        return iter(list(self._rows))

    def close(self) -> None:
        self._rows.clear()


def signed(id: int) -> int:
    """SQLite's integers have a sign."""
    return id - 2**64 if id >= 2**63 else id


class SqliteStore:
    """Names in a file of SQLite, which outlive the program and the machine's crash. A
    thread at a time."""

    def __init__(self, path: str, table: str = "expiry_names") -> None:
        if not table.isidentifier():
            raise ValueError("table %r is not an identifier" % table)
        self._table = table
        # Each call is a transaction of its own.
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS %s (id INTEGER PRIMARY KEY, "
                         "name BLOB NOT NULL, value BLOB NOT NULL)" % table)

    def put(self, id: int, name: bytes, value: bytes) -> bytes:
        row = self._db.execute(
            "INSERT INTO %s VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET value = "
            "CASE WHEN name = excluded.name THEN excluded.value ELSE value END "
            "RETURNING name" % self._table, (signed(id), name, value)).fetchone()
        return bytes(row[0])

    def get(self, id: int) -> tuple[bytes, bytes] | None:
        row = self._db.execute("SELECT name, value FROM %s WHERE id = ?" % self._table,
                               (signed(id),)).fetchone()
        return None if row is None else (bytes(row[0]), bytes(row[1]))

    def delete(self, ids: Iterable[int]) -> None:
        self._db.execute("BEGIN")
        with self._db:
            self._db.executemany("DELETE FROM %s WHERE id = ?" % self._table,
                                 [(signed(id),) for id in ids])

    def ids(self) -> Iterator[int]:
        last = None
        while True:
            rows = self._db.execute(
                "SELECT id FROM %s WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT 1000"
                % self._table, (last,)).fetchall()
            if not rows:
                return
            for (last,) in rows:
                yield last % 2**64

    def close(self) -> None:
        self._db.close()


class Names:
    """Names and values beside the timers of a keyed queue.

    The order of steps loses nothing: put() and then arm; at an expiration act, delete(),
    then acknowledge. After a crash, compare() says what to do with what is left.
    """

    def __init__(self, key: bytes, store: Store | None = None) -> None:
        id_of(b"", key)
        self._key = key
        self._store: Store = MemoryStore() if store is None else store

    def id(self, name: bytes | str) -> int:
        return id_of(name, self._key)[0]

    def put(self, name: bytes | str, value: bytes = b"") -> int:
        """Keeps name and value; returns the id to arm. Raises Collision if another name
        has this id: the program changes one of the names."""
        if isinstance(name, str):
            name = name.encode()
        id = self.id(name)
        there = self._store.put(id, name, value)
        if there != name:
            raise Collision(errno.EEXIST, 0, "%r and %r have the same id" % (name, there))
        return id

    def get(self, id: int) -> tuple[bytes, bytes] | None:
        """Returns the name and value of an id, None if it is not known."""
        return self._store.get(id)

    def delete(self, *ids: int) -> None:
        self._store.delete(ids)

    def compare(self, timers: Iterable[int]) -> tuple[list[int], list[int]]:
        """Compares with the ids of a scan. Returns ids without a timer, which are to be
        armed or deleted, and timers without a name, which are to be cancelled."""
        there = set(timers)
        without_timer = [id for id in self._store.ids() if id not in there]
        return without_timer, [id for id in there if self._store.get(id) is None]

    def close(self) -> None:
        self._store.close()
