# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions of Starlette, or of any other ASGI application, that end with an event."""

from .middleware import SessionMiddleware
from .session import DELETED, EXPIRED, Session
from .sessions import Sessions

__all__ = ["DELETED", "EXPIRED", "Session", "SessionMiddleware", "Sessions"]
