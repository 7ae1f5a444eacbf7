#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Redis says `expired` in time: real Redis, and the bridge beside it."""

import os
import time
import urllib.request

from bridge import Listener, Program, Setup, populate, wait_until    # first: finds redis
from bridge import BRIDGE

import tap                              # noqa: E402
from redis_server import free_port      # noqa: E402
from stalls import Stalls               # noqa: E402

OTHERS = int(os.environ.get("EXPIRY_TEST_KEYS", "1000000"))
SOON = 300      # ms


def told(listener, keys, seconds=30):
    """Waits until all keys were told. Returns how late each was, in ms. @keys: with the
    millisecond of their time"""
    wait_until(lambda: all(key in listener.told for key in keys), seconds)
    return {key: listener.told[key] / 1e6 - at for key, at in keys.items()}


def test_all_of_a_thousand_are_told_beside_a_million_others():
    with Setup() as on:
        populate(on.client, OTHERS)
        on.start()
        listener = Listener(on.redis.port)
        at = int(time.time() * 1000) + 2000
        keys = {"probe:%d" % number: at for number in range(1000)}
        pipe = on.client.pipeline(transaction=False)
        for key in keys:
            pipe.set(key, "x", pxat=at)
        pipe.execute()
        with Stalls() as stalls:
            late = sorted(told(listener, keys).values())
            stall = stalls.worst()
        print("# %d others; late ms: p50 %.1f p99 %.1f max %.1f; bridge %d MB, %.1f s" % (
            OTHERS, late[500], late[990], late[-1], on.bridge.resident() >> 20,
            on.bridge.processor()))
        assert late[0] >= 0 and not listener.again
        # expiryd, the bridge, Redis and the listener run in turn: each may be held up so.
        assert late[-1] < 100 + 4 * 1000 * stall, (late[-1], stall)


def test_each_way_to_a_time_is_noticed():
    with Setup() as on:
        on.start()
        client, listener = on.client, Listener(on.redis.port)
        # Each command makes the key `to`, whose time is then asked for.
        ways = {
            "set": lambda to: client.set(to, 1, px=SOON),
            "expire": lambda to: (client.set(to, 1), client.pexpire(to, SOON)),
            "sooner": lambda to: (client.set(to, 1, ex=3600), client.pexpire(to, SOON)),
            "later": lambda to: (client.set(to, 1, px=50), client.pexpire(to, SOON)),
            "getex": lambda to: (client.set(to, 1), client.getex(to, px=SOON)),
            "rename": lambda to: (client.set("from:a", 1, px=SOON),
                                  client.rename("from:a", to)),
            "renamenx": lambda to: (client.set("from:b", 1, px=SOON),
                                    client.renamenx("from:b", to)),
            "copy": lambda to: (client.set("from:c", 1, px=SOON), client.copy("from:c", to)),
            "restore": lambda to: (client.set("from:d", 1),
                                   client.restore(to, SOON, client.dump("from:d"))),
            "move": lambda to: move(on, to),
            "hash": lambda to: (client.hset(to, "a", 1), client.pexpire(to, SOON)),
            "script": lambda to: client.eval(
                "redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])", 1, to, SOON),
            "keepttl": lambda to: (client.set(to, 1, px=SOON), client.set(to, 2,
                                                                          keepttl=True)),
            "a name with spaces and\nlines": lambda to: client.set(to, 1, px=SOON),
        }
        keys = {}
        for name, way in ways.items():
            way(name)
            keys[name] = client.execute_command("PEXPIRETIME", name)
        late = told(listener, keys)
        assert all(0 <= ms < 5000 for ms in late.values()), late


def move(on, to):
    other = on.client.__class__(port=on.redis.port, db=1)
    other.set(to, 1, px=SOON)
    other.move(to, 0)


def test_what_has_no_time_any_more_is_left_alone():
    with Setup() as on:
        on.start()
        client, listener = on.client, Listener(on.redis.port)
        for name in "persist", "set", "del", "rename", "later":
            client.set(name, 1, px=SOON)
        client.persist("persist")
        client.set("set", 2)
        client.delete("del")
        client.rename("rename", "renamed")
        client.persist("renamed")
        client.pexpire("later", 10**6)
        client.set("last", 1, px=2 * SOON)
        wait_until(lambda: "last" in listener.told)
        assert set(listener.told) == {"last"}, listener.told
        assert client.exists("persist", "set", "renamed", "later") == 4


def test_keys_that_no_event_told_are_found_by_the_slow_pass():
    with Setup() as on:
        on.start("-sweep", "500ms")
        client, listener = on.client, Listener(on.redis.port)
        other = client.__class__(port=on.redis.port, db=1)
        other.set("swapped", 1, px=3000)
        at = other.execute_command("PEXPIRETIME", "swapped")
        client.swapdb(0, 1)
        late = told(listener, {"swapped": at})
        assert late["swapped"] >= 0, late


def test_only_keys_with_the_prefix_are_served():
    with Setup() as on:
        populate(on.client, 20000)
        on.client.set("a*b:1", 1, px=SOON)
        on.client.set("axb:1", 1, ex=3600)
        on.start("-prefix", "a*b:,session:", "-metrics", "localhost:%d" % (port := free_port()))
        listener = Listener(on.redis.port)
        on.client.set("session:1", 1, px=SOON)
        on.client.set("a*b:2", 1, px=SOON)
        wait_until(lambda: {"session:1", "a*b:2"} <= set(listener.told))
        with urllib.request.urlopen("http://localhost:%d/metrics" % port, timeout=10) as page:
            values = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines()
                          if not line.startswith("#"))
        assert values["expiry_redis_keys"] == "0", values
        assert 2 <= int(values["expiry_redis_lateness_seconds_count"]) <= 3, values
        assert values["expiry_redis_events_total"] == "2", values
        assert values["expiry_redis_sessions_total"] == "1", values


def test_a_server_without_events_is_an_error_that_says_so():
    with Setup() as on:
        bridge = Program([BRIDGE, "-redis", on.redis.url, "-socket", on.daemon.path,
                          "-configure=false"], dict(os.environ),
                         os.path.join(on.redis.folder, "refused"))
        wait_until(lambda: 'notify-keyspace-events lacks "Egx"' in bridge.log())
        on.client.config_set("notify-keyspace-events", "KEA")
        wait_until(lambda: "keys read" in bridge.log())
        bridge.kill()


def test_settings_of_others_are_kept():
    with Setup(settings=("notify-keyspace-events", "Kl")) as on:
        on.start()
        flags = on.client.config_get("notify-keyspace-events")["notify-keyspace-events"]
        assert set(flags) == set("KlEgx"), flags


def test_a_password_and_another_database():
    with Setup(settings=("requirepass", "secret word")) as on:
        url = "redis://:secret%%20word@127.0.0.1:%d/3" % on.redis.port
        on.redis.__class__.url = property(lambda self: url)
        on.start()
        client = on.client.__class__(port=on.redis.port, db=3, password="secret word")
        client.set("key", 1, px=SOON)
        wait_until(lambda: client.info("stats")["expired_keys"] == 1)


if __name__ == "__main__":
    tap.main()
