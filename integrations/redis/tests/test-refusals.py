#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryd refuses timers, or is away: Redis says `expired` in time, or as soon as it is
back, and the bridge's session goes on."""

import contextlib
import os
import tempfile
import time

from bridge import Listener, Setup, populate, wait_until    # first: it finds redis

import tap                              # noqa: E402
from redis_server import free_port      # noqa: E402

LIMIT = 100


@contextlib.contextmanager
def small():
    """A bridge whose daemon has few timers, and the port of its metrics."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write("timers_per_queue = %d\n" % LIMIT)
        config.flush()
        with Setup(daemon_options=("--config", config.name)) as on:
            port = free_port()
            on.options = ("-metrics", "localhost:%d" % port)
            yield on, port


def set_keys(on, names, at, step=0):
    """Returns the millisecond of each key's time, by name."""
    keys = {name: at + step * number for number, name in enumerate(names)}
    pipe = on.client.pipeline(transaction=False)
    for name, pxat in keys.items():
        pipe.set(name, "x", pxat=pxat)
    pipe.execute()
    return keys


def check_told(listener, keys):
    wait_until(lambda: all(name in listener.told for name in keys))
    late = {name: listener.told[name] / 1e6 - at for name, at in keys.items()}
    assert all(0 <= ms < 2000 for ms in late.values()), late
    assert not listener.again


def test_keys_above_a_limit_are_told_in_time():
    with small() as (on, port):
        populate(on.client, 20 * LIMIT)
        on.start(*on.options)
        listener = Listener(on.redis.port)
        wait_until(lambda: on.metrics(port)["refused"] == 19 * LIMIT)
        now = int(time.time() * 1000)
        keys = set_keys(on, ["far:%d" % n for n in range(200)], now + 4000, 5)
        keys.update(set_keys(on, ["near:%d" % n for n in range(200)], now + 2000, 5))
        # One that is sooner or later than it was, and one without a time, are known.
        on.client.pexpire("far:0", 1000)
        on.client.pexpire("far:1", 10**7)
        on.client.persist("far:2")
        keys["far:0"] = on.client.execute_command("PEXPIRETIME", "far:0")
        check_told(listener, {name: at for name, at in keys.items()
                              if name not in ("far:1", "far:2")})
        assert on.client.exists("far:1", "far:2") == 2
        values = on.metrics(port)
        assert values["sessions_total"] == 1 and values["failures_total"] == 0, values
        assert values["refusals_total"] >= 19 * LIMIT + 400, values
        assert values["refused"] == 19 * LIMIT + 1, values
        # Each key is asked for twice; and a batch at each try, of which there are few.
        assert values["asked_total"] < 20 * LIMIT + 5 * 400 + 6 * 512, values
        assert on.bridge.log().count("refuses timers") == 1, on.bridge.log()


def test_they_are_armed_when_there_is_room():
    with small() as (on, port):
        populate(on.client, LIMIT)
        on.start(*on.options)
        at = int(time.time() * 1000) + 3600 * 1000
        names = list(set_keys(on, ["more:%d" % n for n in range(50)], at))
        wait_until(lambda: on.metrics(port)["refused"] == 50)
        on.client.delete(*names[:10])
        wait_until(lambda: on.metrics(port)["refused"] == 40)
        on.client.delete(*["other:%d" % n for n in range(1, LIMIT + 1)])
        wait_until(lambda: on.metrics(port)["refused"] == 0)
        assert on.metrics(port)["keys"] == 40, on.metrics(port)
        wait_until(lambda: "takes timers again" in on.bridge.log())
        listener = Listener(on.redis.port)
        check_told(listener, set_keys(on, ["last"], int(time.time() * 1000) + 300))


def test_a_bridge_that_starts_without_a_daemon_waits_for_it():
    with Setup() as on:
        on.daemon.stop()
        listener = Listener(on.redis.port)
        on.begin()
        at = int(time.time() * 1000) + 4000
        keys = set_keys(on, ["key:%d" % n for n in range(20)], at)
        wait_until(lambda: "trying again" in on.bridge.log())
        time.sleep(1.5)
        on.daemon.start()
        check_told(listener, keys)
        assert on.bridge.log().count("\n") < 10, on.bridge.log()


def test_a_daemon_that_was_away_gets_what_came_meanwhile():
    with Setup() as on:
        on.start()
        listener = Listener(on.redis.port)
        at = int(time.time() * 1000) + 5000
        keys = set_keys(on, ["before:%d" % n for n in range(20)], at)
        on.daemon.stop()
        keys.update(set_keys(on, ["after:%d" % n for n in range(20)], at))
        time.sleep(2)
        on.daemon.start()
        check_told(listener, keys)
        assert on.bridge.process.poll() is None


if __name__ == "__main__":
    tap.main()
