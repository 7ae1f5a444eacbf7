# SPDX-License-Identifier: LGPL-2.1-or-later
"""The SESSION_ENGINE: that of EXPIRY_SESSION_ENGINE, whose sessions have a timer each."""

from __future__ import annotations

from datetime import datetime, timezone
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends import cached_db, db, signed_cookies
from django.contrib.sessions.backends.base import UpdateError
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, IntegrityError, connections, router, transaction
from django.db.models.signals import post_save, pre_save

from . import conf
from .keys import new_key, timer_of
from .timers import timers

Base: Any = import_module(conf.get("ENGINE")).SessionStore
if issubclass(Base, signed_cookies.SessionStore):
    raise ImproperlyConfigured("EXPIRY_SESSION_ENGINE: a session that is a cookie has no "
                               "end on the server")

# Rows are kept until their end was told, and nobody can load them.
HAS_ROWS = issubclass(Base, db.SessionStore)

AT_ONCE = 1             # the deadline of a session that the program ended, in ns
MARGIN = 1_000_000      # ns: the backend forgets a session before its timer is due


def ended_date() -> datetime:
    """Returns the date of a row that the program ended."""
    epoch = datetime.fromtimestamp(0, timezone.utc)
    return epoch if settings.USE_TZ else epoch.replace(tzinfo=None)


def update(row: Any, connection: Any) -> int:
    """Writes the row of a session that goes on. Returns 0 if it has ended. By a
    queryset a request takes longer than with the stock engine."""
    meta, quote = row._meta, connection.ops.quote_name
    fields = [field for field in meta.concrete_fields if not field.primary_key]
    date = meta.get_field("expire_date")
    values = [field.get_db_prep_save(field.pre_save(row, False), connection)
              for field in fields]
    statement = "UPDATE %s SET %s WHERE %s = %%s AND %s > %%s" % (
        quote(meta.db_table), ", ".join(quote(field.column) + " = %s" for field in fields),
        quote(meta.pk.column), quote(date.column))
    values += [meta.pk.get_db_prep_value(row.pk, connection),
               date.get_db_prep_value(ended_date(), connection)]
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        lives: int = cursor.rowcount
    return lives


class Rows(db.SessionStore):    # type: ignore[misc]
    """A session that goes on is saved by one statement, as by the stock engine. Of one that
    another request has ended, the row is still there: saving it would log its user in
    again. UPDATE locks the row in each database, so delete() waits for it."""

    def save(self, must_create: bool = False) -> None:
        if must_create:
            super().save(must_create)
            return
        row = self.create_model_instance(self._get_session())
        using = router.db_for_write(self.model, instance=row)
        try:
            with transaction.atomic(using=using):
                lives = self._update(row, using)
        except IntegrityError:
            raise
        except DatabaseError as error:
            raise UpdateError from error
        if not lives:
            raise UpdateError

    def _update(self, row: Any, using: str) -> int:
        """As row.save(force_update=True), unless the session has ended."""
        about = {"sender": self.model, "instance": row, "raw": False, "using": using,
                 "update_fields": None}
        pre_save.send(**about)
        lives = update(row, connections[using])
        if lives:
            post_save.send(**about, created=False)
        return lives


# An engine that is made of rows, such as cached_db, saves its row by the class behind it.
BASES = (Base,) if not HAS_ROWS else (Rows,) if Base is db.SessionStore else (Base, Rows)


class SessionStore(*BASES):     # type: ignore[misc]
    _renaming = False

    def _get_new_session_key(self) -> str:
        while True:
            key = new_key()
            if not self.exists(key):
                return key

    async def _aget_new_session_key(self) -> str:
        while True:
            key = new_key()
            if not await self.aexists(key):
                return key

    def save(self, must_create: bool = False) -> None:
        if self.session_key is None:
            self.create()       # which saves
            return
        super().save(must_create)
        self._arm()

    async def asave(self, must_create: bool = False) -> None:
        await sync_to_async(self.save)(must_create)

    def _arm(self) -> None:
        timer = timer_of(self.session_key)
        if timer:
            at = int(self.get_expiry_date().timestamp() * 1e6) * 1000 + MARGIN
            timers.arm(*timer, at)

    def cycle_key(self) -> None:
        """Gives the session another key. It goes on: no end of the old key is told."""
        self._renaming = True
        try:
            super().cycle_key()
        finally:
            self._renaming = False

    async def acycle_key(self) -> None:
        self._renaming = True
        try:
            await super().acycle_key()
        finally:
            self._renaming = False

    def uncache(self, key: str) -> None:
        """Removes the copy of a row that the stock engine keeps in the cache."""
        if isinstance(self, cached_db.SessionStore):
            self._cache.delete(self.cache_key_prefix + key)

    def delete(self, session_key: str | None = None) -> None:
        """Ends a session; the signal follows. With rows, a row that nobody can load stays
        until then."""
        key = session_key or self.session_key
        if key is None:
            return
        timer = timer_of(key)
        if self._renaming:
            super().delete(key)
            if timer:
                timers.cancel(timer[0])
            return
        if HAS_ROWS:
            self.model.objects.filter(session_key=key).update(expire_date=ended_date())
            self.uncache(key)
        else:
            super().delete(key)
        if timer:
            timers.arm(*timer, AT_ONCE)

    async def adelete(self, session_key: str | None = None) -> None:
        await sync_to_async(self.delete)(session_key)

    @classmethod
    def clear_expired(cls) -> None:
        """Removes nothing: `manage.py expiry_sessions` does, when an end was told."""
