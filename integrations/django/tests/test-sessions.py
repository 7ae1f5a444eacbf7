#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions of Django, with real requests: each end is told once and in time."""

import contextlib
import random
import time

import project                          # first: it finds Django
from project import Command, SessionStore, told, visit, wait_until

from django.contrib.auth.models import User                     # noqa: E402
from django.contrib.sessions.backends import db                 # noqa: E402
from django.contrib.sessions.models import Session              # noqa: E402
from django.utils import timezone                               # noqa: E402
import expiry_django.ends                                       # noqa: E402
from expiry_django.keys import key_of, new_key, timer_of        # noqa: E402

S = 10**9


def test_a_session_that_expires_is_told_once():
    _, key = visit(ttl=1, name="alice")
    ends = Session.objects.get(session_key=key).expire_date.timestamp() * S
    wait_until(lambda: told(session_key=key))
    (line,) = told(session_key=key)
    assert (line.reason, line.name) == ("expired", "alice"), vars(line)
    assert 0 <= line.at_ns - ends < 5 * S, line.at_ns - ends
    assert not Session.objects.filter(session_key=key).exists()


def test_a_visit_keeps_a_session():
    client, key = visit(ttl=1)
    for _ in range(4):
        time.sleep(0.5)
        assert visit(ttl=1, client=client)[1] == key
        assert not told(session_key=key)
    wait_until(lambda: told(session_key=key))
    assert told(session_key=key).count() == 1


def test_logout_is_told_at_once_with_its_reason():
    client, key = visit(ttl=3600, name="bob")
    client.get("/leave")
    assert SessionStore(key).load() == {}
    wait_until(lambda: told(session_key=key))
    (line,) = told(session_key=key)
    assert (line.reason, line.name) == ("deleted", "bob"), vars(line)
    assert not Session.objects.filter(session_key=key).exists()


def test_a_login_changes_the_key_and_ends_nothing():
    client, key = visit(ttl=2, name="carol")
    client.get("/enter")
    other = client.cookies["sessionid"].value
    assert other != key
    wait_until(lambda: told(session_key=other))
    assert not told(session_key=key) and told(session_key=other).get().name == "carol"


def test_a_receiver_that_fails_is_called_again_and_what_it_wrote_is_undone():
    from ended.models import Failing
    keys = [visit(ttl=1)[1] for _ in range(5)]
    for key in keys[1:3]:
        Failing.objects.create(session_key=key)
    wait_until(lambda: told(session_key__in=keys).count() == 3)
    time.sleep(0.8)
    assert {line.session_key for line in told(session_key__in=keys)} == {keys[0], *keys[3:]}
    Failing.objects.all().delete()
    wait_until(lambda: told(session_key__in=keys).count() == 5)
    assert len({line.session_key for line in told(session_key__in=keys)}) == 5


def test_a_key_of_another_engine_is_told_by_the_sweep():
    stock = db.SessionStore()
    stock["name"] = "dave"
    stock.set_expiry(-60)
    stock.save()
    assert timer_of(stock.session_key) is None
    ends = expiry_django.ends.Ends()
    assert ends.sweep() >= 1 and ends.told >= 1
    assert told(session_key=stock.session_key).get().name == "dave"
    assert ends.sweep() == 0


def test_clearsessions_takes_no_end_away():
    key = new_key()
    past = timezone.now() - timezone.timedelta(hours=1)
    Session.objects.create(session_key=key, session_data=SessionStore().encode({}),
                           expire_date=past)
    SessionStore.clear_expired()
    assert Session.objects.filter(session_key=key).exists()
    expiry_django.ends.Ends().sweep()
    assert told(session_key=key).count() == 1


def test_an_end_that_is_reported_again_is_told_once():
    _, key = visit(ttl=3600)
    Session.objects.filter(session_key=key).update(
        expire_date=timezone.now() - timezone.timedelta(seconds=1))
    ends = expiry_django.ends.Ends()
    assert ends.tell({key: 1}) == {} and ends.tell({key: 1}) == {}
    assert told(session_key=key).count() == 1


def test_an_end_that_is_none_is_not_told():
    _, key = visit(ttl=3600)
    again = expiry_django.ends.Ends().tell({key: 1})
    assert not told(session_key=key)
    assert 3500 < again[key] / S - time.time() < 3700


def test_keys_and_timers_are_the_same_numbers():
    for _ in range(1000):
        key = new_key()
        assert key_of(*timer_of(key)) == key
    for other in "0" * 32, "g" * 32, "A" * 32, "a" * 31, "0" * 16 + "f" * 16:
        assert timer_of(other) is None, other


def test_each_end_is_told_once_though_all_are_killed_in_turn():
    """Random sessions, visits and logouts, while daemon and command are killed."""
    choose = random.Random(11)
    begun = time.monotonic()
    live, ended, kills = {}, set(), 0

    def is_enough():
        """On a busy machine a time alone is few sessions."""
        return kills > 3 and len(ended) + len(live) > 150
    while time.monotonic() - begun < (8 if is_enough() else 120):
        act = choose.random()
        if act < 0.6 or not live:
            client, key = visit(ttl=choose.choice((1, 2, 3)))
            live[key] = client
        else:
            key = choose.choice(list(live))
            if act < 0.8:
                _, now = visit(ttl=choose.choice((1, 2)), client=live[key])
                if now != key:      # it had ended before
                    ended.add(key)
                    live[now] = live.pop(key)
            else:
                live.pop(key).get("/leave")
                ended.add(key)
        if choose.random() < 0.02:
            kills += 1
            if kills % 2:
                shared[1].kill()
                shared[1].start()
            else:
                project.kill(shared[0])
                removed.append(shared[0])
                shared[0] = project.daemon()
        time.sleep(0.005)
    everyone = ended | set(live)
    wait_until(lambda: told(session_key__in=everyone).count() >= len(everyone), 60)
    time.sleep(0.5)
    counts = {key: told(session_key=key).count() for key in everyone}
    assert set(counts.values()) == {1}, [pair for pair in counts.items() if pair[1] != 1]
    assert not Session.objects.filter(session_key__in=everyone).exists()
    print("# %d sessions, %d kills" % (len(everyone), kills))
    assert kills > 3 and len(everyone) > 100


shared = []
removed = []


@contextlib.contextmanager
def everything():
    User.objects.create(username="user")
    shared.append(project.daemon())
    try:
        with Command() as command:
            shared.append(command)
            yield
    finally:
        for daemon in [shared[0], *removed]:
            daemon.remove()


if __name__ == "__main__":
    project.run(globals(), everything)
