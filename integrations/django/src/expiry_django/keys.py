# SPDX-License-Identifier: LGPL-2.1-or-later
"""Session keys that are a timer's id and cookie: 128 random bits in 32 hexadecimal
digits. An expiration says which session it is, and no table is needed for that."""

from __future__ import annotations

import re
import secrets

HEX = re.compile("[0-9a-f]{32}")
NONE = "0" * 16


def new_key() -> str:
    while True:
        key = secrets.token_hex(16)
        if not key.startswith(NONE):        # 0 is no id
            return key


def timer_of(key: str) -> tuple[int, int] | None:
    """Returns id and cookie, or None for a key of another engine."""
    if not HEX.fullmatch(key) or key.startswith(NONE):
        return None
    return int(key[:16], 16), int(key[16:], 16)


def key_of(id: int, cookie: int) -> str:
    return "%016x%016x" % (id, cookie)
