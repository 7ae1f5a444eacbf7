# SPDX-License-Identifier: LGPL-2.1-or-later
"""The settings, with their defaults. docs/django.md describes them."""

from __future__ import annotations

from typing import Any

from django.conf import settings

DEFAULTS: dict[str, Any] = {
    "ENGINE": "django.contrib.sessions.backends.db",
    "QUEUE": "sessions",
    "SOCKET": None,
    "SWEEP": 60.0,
    "RETRY": 60.0,
    "PENDING_MAX": 100_000,
    "BATCH": 100,
    "DURABLE": False,
}


def get(name: str) -> Any:
    """Returns the setting EXPIRY_SESSION_NAME."""
    return getattr(settings, "EXPIRY_SESSION_" + name, DEFAULTS[name])
