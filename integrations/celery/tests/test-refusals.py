#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryd refuses timers, or is away: tasks run in time or as soon as it is back, and no
task holds up another."""

import os
import tempfile
import time
from datetime import datetime, timezone

from setup import Setup, wait_until     # first: it finds Celery

import expiry_celery                    # noqa: E402,F401 - makes expiry:// known
import tap                              # noqa: E402

LIMIT = 10


class Small(Setup):
    """With a daemon that has few timers."""

    def __init__(self, **more):
        with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as file:
            file.write("timers_per_queue = %d\n" % LIMIT)
        self.config = file.name
        super().__init__(daemon_options=("--config", self.config), **more)

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        os.unlink(self.config)

    def app(self):
        from celery import Celery
        return Celery("tasks", broker=self.environment["BROKER"], backend=self.redis.url)

    def send(self, app, numbers, seconds, step=0.0):
        """Returns when each is due, by number."""
        now, etas = time.time(), {}
        for index, number in enumerate(numbers):
            etas[number] = now + seconds + step * index
            app.send_task("tasks.run", (number,), task_id="task-%d" % number,
                          ignore_result=True,
                          eta=datetime.fromtimestamp(etas[number], timezone.utc))
        return etas

    def asked(self):
        """Returns how many requests of publishers the relay has not carried out."""
        return self.client.llen("expiry:inbox") + self.client.llen("expiry:taken")


def check_ran(on, etas):
    wait_until(lambda: len(on.notes()) >= len(etas), 40)
    ran = {int(line[1]): line[0] / 1e9 for line in on.notes()}
    late = {number: ran[number] - at for number, at in etas.items()}
    assert len(on.notes()) == len(etas) and set(ran) == set(etas), on.notes()
    assert all(0 <= seconds < 5 for seconds in late.values()), late
    assert sorted(ran, key=ran.get) == sorted(etas, key=etas.get), on.notes()


def test_tasks_above_a_limit_run_in_time_and_order():
    with Small() as on:
        app, relay = on.app(), on.relay()
        on.worker()
        on.send(app, range(1000, 1000 + LIMIT), 3600)
        wait_until(lambda: "armed %d," % LIMIT in relay.log())
        # The last of them is sent first.
        etas = {}
        for part in range(3):
            etas.update(on.send(app, range(10 * part, 10 * part + 10), 5 - part, 0.05))
        wait_until(lambda: not on.asked(), 3)
        assert on.client.zcard("expiry:refused") == 30
        check_ran(on, etas)
        assert on.parked() == LIMIT and on.client.zcard("expiry:refused") == 0
        assert relay.log().count("expiry refuses timers") == 1, relay.log()
        wait_until(lambda: "refused 30" in relay.log())


def test_they_are_armed_when_there_is_room_and_revoked_ones_are_not():
    with Small() as on:
        app, relay = on.app(), on.relay()
        on.send(app, range(LIMIT), 3600)
        wait_until(lambda: "armed %d," % LIMIT in relay.log())
        on.send(app, range(100, 104), 1800)
        wait_until(lambda: on.client.zcard("expiry:refused") == 4)
        app.control.revoke(["task-100", "task-0", "task-1", "task-2", "task-3"])
        wait_until(lambda: "none waits in Redis alone" in relay.log())
        wait_until(lambda: "armed %d, cancelled 5," % (LIMIT + 3) in relay.log())
        assert on.parked() == LIMIT - 4 + 3


def test_a_relay_that_starts_again_finds_those_that_were_refused():
    with Small() as on:
        app, relay = on.app(), on.relay()
        on.send(app, range(1000, 1000 + LIMIT), 3600)
        wait_until(lambda: "armed %d," % LIMIT in relay.log())
        etas = on.send(app, range(20), 6, 0.05)
        wait_until(lambda: on.client.zcard("expiry:refused") == 20)
        relay.kill()
        # The daemon has forgotten its timers: the relay arms as many as it can.
        on.kill_daemon()
        on.worker()
        relay.start()
        check_ran(on, etas)
        assert on.parked() == LIMIT


def test_a_relay_that_starts_without_a_daemon_waits_for_it():
    with Small() as on:
        on.daemon.stop()
        app, relay = on.app(), on.relay()
        on.worker()
        etas = on.send(app, range(5), 4, 0.05)
        wait_until(lambda: "trying again" in relay.log())
        time.sleep(1.5)
        on.daemon.start()
        check_ran(on, etas)
        # A line for each thread, however often it tried.
        assert relay.log().count("trying again") <= 2, relay.log()


def test_a_daemon_that_was_away_gets_what_came_meanwhile():
    with Small() as on:
        app, relay = on.app(), on.relay()
        on.worker()
        etas = on.send(app, range(5), 5, 0.05)
        wait_until(lambda: "armed 5," in relay.log())
        on.daemon.stop()
        etas.update(on.send(app, range(5, 10), 5, 0.05))
        time.sleep(2)
        on.daemon.start()
        check_ran(on, etas)
        assert relay.process.poll() is None


if __name__ == "__main__":
    tap.main()
