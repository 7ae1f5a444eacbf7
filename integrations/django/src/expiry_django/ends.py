# SPDX-License-Identifier: LGPL-2.1-or-later
"""Telling ends of sessions, each once, though the same end may be reported several times.

With rows, the row is what is not told yet. Signal and removal of the row are one
transaction: what receivers write to the same database is kept exactly if the row is gone.
Other backends forget sessions by themselves; there a marker in the cache says that an end
was told.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends import file
from django.core.cache import caches
from django.db import connections, router, transaction
from django.db.models import F
from django.utils import timezone

from . import conf
from .keys import timer_of
from .session import AT_ONCE, HAS_ROWS, MARGIN, Base, SessionStore, ended_date
from .signals import DELETED, EXPIRED, session_ended

log = logging.getLogger("expiry_django")

GRACE = 10.0            # seconds after which a row is the sweep's, not its timer's
LOOK = 1.0              # seconds until another look at a session without a known date
MARKER = "expiry_django.told."
MARKED = 86400          # seconds for which a marker is kept

Again = dict[str, int]  # session key: when its timer is due again, in ns


class Changed(Exception):
    """A row was changed meanwhile: all is to be done again."""


def ns(date: Any) -> int:
    return int(date.timestamp() * 1e6) * 1000 + MARGIN


class Ends:
    """
    @told: ends that were told
    @failed: signals that a receiver raised an exception for
    """

    def __init__(self) -> None:
        self.told = self.failed = 0
        # Sessions whose receiver failed: not before this time, on time.monotonic().
        self._retry: dict[str, float] = {}

    def tell(self, keys: dict[str, int]) -> Again:
        """Tells those ends that are ends. @keys: with the deadline of the timer. Returns
        sessions that go on, or that a receiver failed for."""
        return self._tell_rows(list(keys)) if HAS_ROWS else self._tell_others(keys)

    def _send(self, key: str, reason: str, data: Any) -> bool:
        try:
            session_ended.send(SessionStore, session_key=key, reason=reason, data=data)
        except Exception:
            log.exception("a receiver failed for session %s...: it is called again in %g s",
                          key[:8], conf.get("RETRY"))
            self.failed += 1
            self._retry[key] = time.monotonic() + conf.get("RETRY")
            return False
        self._retry.pop(key, None)
        return True

    def _failed_at(self) -> int:
        return time.time_ns() + int(conf.get("RETRY") * 1e9)

    # ------------------------------------------------------------------
    # Rows

    def _tell_rows(self, keys: list[str]) -> Again:
        model = SessionStore.get_model_class()
        using = router.db_for_write(model)
        with transaction.atomic(using=using):
            again, told = self._tell_locked(model.objects.using(using).filter(
                session_key__in=keys), using)
        self.told += told
        return again

    def _tell_locked(self, rows: Any, using: str) -> tuple[Again, int]:
        now = timezone.now() if settings.USE_TZ else timezone.datetime.now()
        if connections[using].features.has_select_for_update:
            rows = rows.select_for_update()
        else:
            # A transaction that begins with a read may not write later.
            rows.filter(expire_date__lte=now).update(expire_date=F("expire_date"))
        again: Again = {}
        told = []
        for row in list(rows):
            if row.expire_date > now:
                again[row.session_key] = ns(row.expire_date)
            elif self._tell_row(row, using):
                told.append(row.session_key)
            else:
                again[row.session_key] = self._failed_at()
        if told:
            gone, _ = rows.model.objects.using(using).filter(
                session_key__in=told, expire_date__lte=now).delete()
            if gone != len(told):
                raise Changed
        return again, len(told)

    def _tell_row(self, row: Any, using: str) -> bool:
        # The cache counts its seconds from the time of saving: it may still have this row.
        SessionStore().uncache(row.session_key)
        if not session_ended.has_listeners(SessionStore):
            return True
        reason = DELETED if row.expire_date == ended_date() else EXPIRED
        try:
            with transaction.atomic(using=using):   # what a receiver that fails has written
                if not self._send(row.session_key, reason, row.get_decoded()):
                    raise Changed
        except Changed:
            return False
        return True

    def sweep(self) -> int:
        """Tells ends whose timers are missing: they had no room while the daemon was away,
        or they are of keys of another engine. Returns how many it looked at."""
        if not HAS_ROWS:
            return 0
        model = SessionStore.get_model_class()
        limit = timezone.now() if settings.USE_TZ else timezone.datetime.now()
        limit -= timezone.timedelta(seconds=GRACE)
        rows = model.objects.filter(expire_date__lt=limit).order_by("session_key")
        looked, last = 0, ""
        while True:
            page = list(rows.filter(session_key__gt=last).values_list(
                "session_key", flat=True)[:conf.get("BATCH")])
            if not page:
                return looked
            last = page[-1]
            now = time.monotonic()
            keys = [key for key in page if self._retry.get(key, 0.0) <= now]
            self._tell_rows(keys)
            looked += len(keys)

    def timers(self) -> Iterator[tuple[int, int, int]]:
        """Yields id, deadline and cookie of each session: `restore` of the queue."""
        rows = SessionStore.get_model_class().objects.values_list(
            "session_key", "expire_date")
        for key, date in rows.iterator(chunk_size=2000):
            timer = timer_of(key)
            if timer:
                yield timer[0], max(ns(date), AT_ONCE), timer[1]

    # ------------------------------------------------------------------
    # Cache and files

    def _tell_others(self, keys: dict[str, int]) -> Again:
        cache = caches[settings.SESSION_CACHE_ALIAS]
        again: Again = {}
        for key, deadline in keys.items():
            if lives(key):
                again[key] = time.time_ns() + int(LOOK * 1e9)
            elif cache.get(MARKER + key) is None:
                reason = DELETED if deadline == AT_ONCE else EXPIRED
                if self._send(key, reason, None):
                    cache.set(MARKER + key, 1, MARKED)
                    self.told += 1
                else:
                    again[key] = self._failed_at()
        return again


def lives(key: str) -> bool:
    """Returns whether a session without a row is there. An expired file is removed."""
    plain = Base(key)
    plain.create = lambda: None     # load() would make a new session
    data = plain.load()
    if not plain.exists(key):
        return False
    age = data.get("_session_expiry")
    if issubclass(Base, file.SessionStore) and isinstance(age, int) and \
            plain._last_modification().timestamp() + age <= time.time():
        plain.delete(key)           # the stock engine never ends one with set_expiry(number)
        return False
    return True
