#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same with each stock backend, and without time zones. Each needs a process of its
own, for Django reads its settings once: this program runs itself."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time

CASES = {"database": {}, "database, local times": {"ENDED_USE_TZ": "0"},
         "cached database": {"ENDED_BACKEND": "cached_db"},
         "cache": {"ENDED_BACKEND": "cache"}, "files": {"ENDED_BACKEND": "file"},
         "a cookie has no end": {"ENDED_BACKEND": "signed_cookies"}}
CASE = os.environ.get("ENDED_CASE")


def main():
    failed = 0
    print("TAP version 13\n1..%d" % len(CASES))
    for number, (name, environment) in enumerate(CASES.items(), 1):
        done = subprocess.run([sys.executable, "-B", *sys.argv], text=True, timeout=120,
                              env=dict(os.environ, ENDED_CASE=name, **environment),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        refused = "ImproperlyConfigured" in done.stdout
        good = refused if "cookie" in environment.get("ENDED_BACKEND", "") else \
            done.returncode == 0
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", number, name))
        lines = done.stdout.splitlines()
        print("".join(line + "\n" for line in lines if line.startswith("# ")), end="")
        if not good:
            print("\n".join("# " + line for line in lines[-60:]))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


def has_rows():
    from expiry_django.session import HAS_ROWS
    return HAS_ROWS


def test_ends_are_told_once():
    lines = [visit(ttl=1, name="n%d" % number) for number in range(30)]
    for client, _ in lines[:10]:
        client.get("/leave")
    keys = [key for _, key in lines]
    for key in keys[:10]:
        assert SessionStore(key).load() == {}, key
    begun = time.monotonic()
    wait_until(lambda: told(session_key__in=keys[:10]).count() == 10)
    assert time.monotonic() - begun < 10
    assert {line.reason for line in told(session_key__in=keys[:10])} == {"deleted"}
    wait_until(lambda: told(session_key__in=keys).count() == 30)
    time.sleep(0.5)
    assert told(session_key__in=keys).count() == 30
    names = {line.name for line in told(session_key__in=keys)}
    assert names == ({"n%d" % number for number in range(30)} if has_rows() else {None})
    assert {line.reason for line in told(session_key__in=keys[10:])} == {"expired"}


def test_a_visit_keeps_a_session():
    client, key = visit(ttl=2)
    for _ in range(3):
        time.sleep(1)
        assert visit(ttl=2, client=client)[1] == key, "it ended"
        assert not told(session_key=key)
    wait_until(lambda: told(session_key=key))


def test_none_is_told_again_after_kills():
    keys = [visit(ttl=1)[1] for _ in range(40)]
    for _ in range(4):
        time.sleep(0.4)
        shared[0].kill()
        shared[0].start()
    wait_until(lambda: told(session_key__in=keys).count() >= 40)
    time.sleep(0.5)
    assert told(session_key__in=keys).count() == 40
    assert len({line.session_key for line in told(session_key__in=keys)}) == 40


def test_a_request_that_ends_after_a_logout_does_not_bring_the_session_back():
    client, key = visit(ttl=3600)
    shared[0].kill()        # the row stays until the end is told
    slow = SessionStore(key)
    assert slow["visits"] == 1
    client.get("/leave")
    slow["name"] = "eve"
    try:
        slow.save()
        saved = True
    except UpdateError:
        saved = False
    shared[0].start()
    assert not saved and SessionStore(key).load() == {}
    wait_until(lambda: told(session_key=key))
    assert told(session_key=key).get().reason == "deleted"


def test_a_session_that_goes_on_is_saved_by_one_statement():
    if not has_rows():
        return
    from django.contrib.sessions.models import Session
    from django.db import connection
    from django.db.models.signals import post_save, pre_save
    from django.test.utils import CaptureQueriesContext
    _, key = visit(ttl=3600)
    store = SessionStore(key)
    store["name"] = "eve"
    sent = []

    def note(signal, instance, **_):
        sent.append((signal, instance.session_key))
    for signal in pre_save, post_save:
        signal.connect(note, sender=Session)
    try:
        with CaptureQueriesContext(connection) as queries:
            store.save()
    finally:
        for signal in pre_save, post_save:
            signal.disconnect(note, sender=Session)
    statements = [query["sql"] for query in queries
                  if query["sql"].split()[0] in ("SELECT", "UPDATE", "INSERT")]
    assert len(statements) == 1, statements
    assert sent == [(pre_save, key), (post_save, key)], sent
    assert SessionStore(key)["name"] == "eve"


def test_a_timer_that_is_early_is_armed_again():
    _, key = visit(ttl=2)
    timers.arm(*timer_of(key), time.time_ns())
    time.sleep(0.5)
    assert not told(session_key=key)
    wait_until(lambda: told(session_key=key))
    assert SessionStore(key).load() == {}


def test_nobody_loads_a_session_whose_end_was_told():
    _, key = visit(ttl=1)
    if hasattr(SessionStore, "cache_key_prefix") and has_rows():
        # A cache that is slow to forget.
        store = SessionStore(key)
        store._cache.set(store.cache_key_prefix + key, {"visits": 1}, 60)
    wait_until(lambda: told(session_key=key))
    assert SessionStore(key).load() == {}


def test_asynchronous_views_do_the_same():
    if not hasattr(SessionStore, "acycle_key") or not hasattr(SessionStore, "aget"):
        print("# asynchronous calls: not before Django 5.1")
        return

    async def use():
        first, second, third = SessionStore(), SessionStore(), SessionStore()
        for session in first, second, third:
            await session.aset("name", "async")
            await session.aset_expiry(1)
            await session.asave()
        keys = [session.session_key for session in (first, second, third)]
        await second.aflush()
        await third.acycle_key()
        await third.asave()
        return keys, third.session_key

    (expires, deleted, renamed), other = asyncio.run(use())
    assert timer_of(expires) and timer_of(other) and other != renamed
    wait_until(lambda: told(session_key__in=[expires, deleted, other]).count() == 3)
    assert told(session_key=deleted).get().reason == "deleted"
    assert told(session_key=expires).get().reason == "expired"
    assert not told(session_key=renamed)


@contextlib.contextmanager
def everything():
    daemon = project.daemon()
    try:
        with Command() as command:
            shared.append(command)
            yield
    finally:
        daemon.remove()


shared = []

if __name__ == "__main__":
    if not CASE:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                        "..", "..", "support"))
        import python
        python.need("django")
        main()
    import project
    from django.contrib.sessions.backends.base import UpdateError
    from expiry_django.keys import timer_of
    from project import Command, SessionStore, timers, told, visit, wait_until
    project.run(globals(), everything)
