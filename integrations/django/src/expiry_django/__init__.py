# SPDX-License-Identifier: LGPL-2.1-or-later
"""Django sessions whose end is an event: a SESSION_ENGINE over a stock one, the signal
session_ended, and the command expiry_sessions, which sends it."""

from .signals import DELETED, EXPIRED, session_ended
from .version import VERSION

__version__ = VERSION
__all__ = ["DELETED", "EXPIRED", "session_ended"]
