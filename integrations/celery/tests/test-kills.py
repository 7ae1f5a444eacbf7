#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Relay, daemon and Redis are killed in turn, and each task runs once, never early.
EXPIRY_TEST_KILLS seconds of it (15); EXPIRY_TEST_SEED repeats a run."""

import os
import random
import tempfile
import time
from datetime import datetime, timezone

from setup import Setup, wait_until     # first: it finds Celery

import expiry_celery                    # noqa: E402,F401 - makes expiry:// known
import tap                              # noqa: E402

SECONDS = int(os.environ.get("EXPIRY_TEST_KILLS", "15"))
SEED = int(os.environ.get("EXPIRY_TEST_SEED", time.time_ns() % 10**6))
TASKS = 40      # a second


def publish(on, app, number, due):
    """Publishes a task, again and again while Redis is away."""
    from kombu.exceptions import OperationalError
    import redis
    eta = time.time() + due
    # The id and the ETA are the same each time: one that Redis had done is not doubled.
    options = {"task_id": "task-%d" % number, "eta": datetime.fromtimestamp(eta, timezone.utc)}
    while True:
        try:
            app.send_task("tasks.run", (number,), retry=False, ignore_result=True, **options)
            return eta
        except (OperationalError, redis.RedisError, ConnectionError):
            time.sleep(0.02)


def kill_one(on, dice, relay):
    what = dice.choice(("relay", "daemon", "redis", "all"))
    if what in ("relay", "all"):
        relay.kill()
    if what in ("redis", "all"):
        on.redis.kill()
    if what in ("daemon", "all"):
        on.kill_daemon()
    if what in ("redis", "all"):
        time.sleep(dice.random() / 5)
        on.redis.start()
    if what in ("relay", "all"):
        relay.start()
    return what


def crossed(module, *options):
    """Kills with these options of the daemon: each task is in the workers' list once."""
    from celery import Celery
    dice = random.Random(SEED)
    print("# seed %d" % SEED)
    with Setup(daemon_options=options) as on:
        app = Celery("tasks", broker=on.environment["BROKER"])
        relay = on.relay(module=module)
        end = time.monotonic() + SECONDS
        next_kill, etas, kills = time.monotonic() + 1, {}, {}
        while time.monotonic() < end:
            number = len(etas)
            etas[number] = publish(on, app, number, dice.random() * SECONDS / 2)
            if time.monotonic() > next_kill:
                what = kill_one(on, dice, relay)
                kills[what] = kills.get(what, 0) + 1
                next_kill = time.monotonic() + 0.3 + dice.random() * 1.5
            time.sleep(1 / TASKS)
        assert (", durable," in relay.log()) == bool(options)
        # What Redis hands to a worker whose connection breaks is kombu's own affair: the
        # lists are looked at, without a worker.
        wait_until(lambda: on.client.llen("celery") >= len(etas) or not on.parked(),
                   SECONDS / 2 + 60)
        ran = arrivals(on)
        print("# %d tasks, kills: %s" % (len(etas), kills))
        lost, extra = set(etas) - set(ran), [n for n in ran if ran.count(n) > 1]
        assert not lost, (SEED, sorted(lost))
        assert not extra, (SEED, extra)
        assert on.parked() == 0 and on.client.llen("expiry:inbox") == 0


def arrivals(on):
    """Returns the numbers of the tasks in the workers' list, oldest first."""
    import base64
    import json
    numbers = []
    for text in reversed(on.client.lrange("celery", 0, -1)):
        args, _, _ = json.loads(base64.b64decode(json.loads(text)["body"]))
        numbers.append(args[0])
    return numbers


def test_no_task_is_lost_or_doubled():
    crossed("expiry_celery")


def test_likewise_with_a_durable_queue_that_is_never_compared():
    with tempfile.TemporaryDirectory() as journal:
        crossed("relay_alone", "--journal", journal)


def test_none_is_early_and_each_runs_once_with_a_worker():
    """The worker takes what it gets while relay and daemon are killed."""
    from celery import Celery
    dice = random.Random(SEED + 1)
    with Setup() as on:
        app = Celery("tasks", broker=on.environment["BROKER"])
        relay = on.relay()
        on.worker()
        etas = {number: publish(on, app, number, 0.5 + dice.random() * SECONDS / 2)
                for number in range(10 * SECONDS)}
        while on.parked():
            time.sleep(0.2 + dice.random() / 2)
            if dice.random() < 0.5:
                relay.kill()
                relay.start()
            else:
                on.kill_daemon()
        wait_until(lambda: len(on.notes()) >= len(etas), 60)
        ran = [(int(line[1]), line[0] / 1e9) for line in on.notes()]
        assert sorted(number for number, _ in ran) == sorted(etas), len(ran)
        early = [(number, at - etas[number]) for number, at in ran if at < etas[number] - 1e-6]
        assert not early, early


if __name__ == "__main__":
    tap.main()
