# SPDX-License-Identifier: LGPL-2.1-or-later
"""The middleware: scope["session"] is a Session, which is saved before the response."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .session import Session, is_key, new_key
from .sessions import Sessions
from .store import Row

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# A visit that changes nothing moves the end in steps of this part of the session's length:
# most requests then write nothing.
STEP = 0.01


class SessionMiddleware:
    """
    @sessions: where sessions are, and who is told of their end
    @max_age: seconds from the last visit to the end
    @session_cookie, @path, @same_site, @https_only, @domain: of the cookie, which has the
        key alone
    @size_max: most bytes of a session's JSON
    """

    def __init__(self, app: App, sessions: Sessions, session_cookie: str = "session",
                 max_age: float = 14 * 86400, path: str = "/", same_site: str = "lax",
                 https_only: bool = False, domain: str | None = None,
                 size_max: int = 65536) -> None:
        if not max_age > 0:
            raise ValueError("max_age is %r, not above 0" % max_age)
        self.app = app
        self.sessions = sessions
        self.name = session_cookie
        self.age = round(max_age * 1e9)
        self.size_max = size_max
        self.attributes = "; path=%s; httponly; samesite=%s%s%s" % (
            path, same_site, "; secure" * https_only,
            "; domain=%s" % domain if domain else "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        row = await self._load(scope)
        session = Session(row.key, json.loads(row.data)) if row else Session()
        scope["session"] = session

        async def send_saved(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = await self._save(session, row)
                if cookie:
                    message["headers"] = [*message.get("headers", ()),
                                          (b"set-cookie", cookie.encode("latin-1"))]
            await send(message)

        await self.app(scope, receive, send_saved if scope["type"] == "http" else send)

    async def _load(self, scope: Scope) -> Row | None:
        """Returns the session that the request's cookie names, if it goes on."""
        for name, value in scope["headers"]:
            if name != b"cookie":
                continue
            for part in value.decode("latin-1").split(";"):
                word, _, key = part.strip().partition("=")
                if word == self.name and is_key(key):
                    row = await self.sessions.store.load(key)
                    if row and row.ends > time.time_ns():
                        return row
        return None

    async def _save(self, session: Session, row: Row | None) -> str:
        """Returns the Set-Cookie that the response gets, "" for none."""
        now = time.time_ns()
        if not session:
            if row is None:
                return ""
            await self.sessions.end(row.key)
            return self._cookie("null", 0)
        text = json.dumps(dict(session), separators=(",", ":"))
        if len(text) > self.size_max:
            raise ValueError("the session has %d bytes of at most %d" % (
                len(text), self.size_max))
        ends = now + self.age
        if row is None:
            new = Row(new_key(), ends, text)
            await self.sessions.insert(new)
        elif session.is_renewed:
            new = Row(new_key(), ends, text)
            if not await self.sessions.rename(row.key, new):
                return self._cookie("null", 0)
        elif text != row.data or ends - row.ends > self.age * STEP:
            new = Row(row.key, ends, text)
            if not await self.sessions.update(new, text != row.data):
                # Another request has ended it: saving it would bring it back.
                return self._cookie("null", 0)
        else:
            return ""
        session.key = new.key
        return self._cookie(new.key, self.age // 10**9 or 1)

    def _cookie(self, value: str, age: int) -> str:
        return "%s=%s; max-age=%d%s" % (self.name, value, age,
                                        self.attributes)
