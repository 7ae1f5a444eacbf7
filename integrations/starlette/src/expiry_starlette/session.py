# SPDX-License-Identifier: LGPL-2.1-or-later
"""A session as the application sees it, and its key: 128 random bits in 32 hexadecimal
digits, which are id and cookie of its timer. An expiration says which session it is."""

from __future__ import annotations

import re
import secrets
from typing import Any

HEX = re.compile("[0-9a-f]{32}", re.ASCII)
NONE = "0" * 16

EXPIRED = "expired"     # nobody came before the session's end
DELETED = "deleted"     # the application ended it


class Session(dict[str, Any]):
    """What the application keeps for a client. Empty is none: clear() ends a session.

    @key: of the store; "" as long as nothing was kept
    """

    def __init__(self, key: str = "", data: dict[str, Any] | None = None) -> None:
        super().__init__(data or {})
        self.key = key
        self.is_renewed = False

    def renew_key(self) -> None:
        """Gives the session another key at the end of the request, as after a login. It
        goes on: no end of the old key is told."""
        self.is_renewed = True


def new_key() -> str:
    while True:
        key = secrets.token_hex(16)
        if not key.startswith(NONE):        # 0 is no id
            return key


def is_key(text: str) -> bool:
    return HEX.fullmatch(text) is not None and not text.startswith(NONE)


def timer_of(key: str) -> tuple[int, int]:
    """Returns id and cookie."""
    return int(key[:16], 16), int(key[16:], 16)


def key_of(id: int, cookie: int) -> str:
    return "%016x%016x" % (id, cookie)
