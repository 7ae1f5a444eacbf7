#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Celery's tasks with an ETA wait in expiry, and run in time: real Redis, worker and
relay."""

import gc
import time
from datetime import datetime, timedelta, timezone

from setup import Setup, wait_until     # first: it finds Celery

import expiry.sync                      # noqa: E402
import tap                              # noqa: E402
from expiry_celery.parking import PARK, Entry, Parking, field_of   # noqa: E402
from expiry_celery.relay import Counters, Inbox, Relay             # noqa: E402

shared = None


def setup():
    """Returns what most tests share. The application is imported for its broker."""
    global shared
    if not shared:
        shared = Setup()
        shared.relay()
        shared.worker()
    import tasks
    shared.client.delete("notes")
    return shared, tasks


def test_a_countdown_is_parked_and_runs_in_time():
    on, tasks = setup()
    sent = time.time_ns()
    results = [tasks.run.apply_async((number,), countdown=8 + number % 10 / 10)
               for number in range(100)]
    assert on.parked() == 100 and on.client.llen("celery") == 0
    assert on.client.zcard("unacked_index") == 0
    wait_until(lambda: len(on.notes()) == 100)
    for ran, number, task, eta in on.notes():
        assert ran - sent >= (8 + int(number) % 10 / 10) * 1e9, (ran - sent, number)
        assert results[int(number)].id == task and eta == "None", (task, eta)
    assert max(ran for ran, *_ in on.notes()) - sent < 20e9
    assert on.parked() == 0 and on.client.exists("expiry:inbox", "expiry:taken") == 0
    wait_until(lambda: on.client.zcard("unacked_index") == 0)


def test_an_eta_with_any_time_zone_is_the_same_instant():
    on, tasks = setup()
    eta = datetime.now(timezone(timedelta(hours=5, minutes=30))) + timedelta(seconds=3)
    tasks.run.apply_async((1,), eta=eta)
    assert on.parked() == 1
    (line,) = wait_until(on.notes)
    assert 0 <= line[0] / 1e9 - eta.timestamp() < 5, line


def test_a_task_without_eta_or_with_a_past_one_is_not_parked():
    on, tasks = setup()
    tasks.run.delay(1)
    tasks.run.apply_async((2,), eta=datetime.now(timezone.utc) - timedelta(seconds=9))
    tasks.run.apply_async((3,), countdown=0)
    wait_until(lambda: len(on.notes()) == 3)
    assert on.parked() == 0


def test_retries_wait_in_expiry():
    on, tasks = setup()
    result = tasks.fail_twice.delay(1.0)
    wait_until(lambda: on.parked() == 1)
    assert result.get(timeout=30) == "done"
    times = [line[0] for line in on.notes("try")]
    assert len(times) == 3
    assert all(later - earlier >= 1e9 for earlier, later in zip(times, times[1:])), times


def test_a_revoked_task_is_cancelled_and_has_its_state():
    on, tasks = setup()
    results = [tasks.run.apply_async((number,), countdown=6) for number in range(20)]
    last = tasks.run.apply_async((99,), countdown=6.5)
    results[0].revoke()
    tasks.app.control.revoke([result.id for result in results[1:10]])
    assert on.parked() == 11
    wait_until(lambda: all(result.state == "REVOKED" for result in results[:10]))
    last.get(timeout=30)
    ran = {int(line[1]) for line in on.notes()}
    wait_until(lambda: {int(line[1]) for line in on.notes()} == {*range(10, 20), 99})
    assert not ran & set(range(10)), ran
    # The timers are gone as well: a relay's count of cancelled ones says so.
    relay = on.programs[0]
    wait_until(lambda: "cancelled 10" in relay.log())


def test_a_revoke_for_some_workers_leaves_the_task_parked():
    on, tasks = setup()
    tasks.run.apply_async((5,), countdown=3, task_id="only-elsewhere")
    tasks.app.control.revoke("only-elsewhere", destination=["nobody@nowhere"])
    assert on.parked() == 1
    wait_until(on.notes)


def test_a_revoked_id_can_be_sent_again():
    on, tasks = setup()
    # A worker remembers a revoked id and drops its messages, so this one goes to a list
    # that no worker reads.
    for number in range(3):
        tasks.run.apply_async((number,), countdown=60, task_id="again", queue="unread")
        tasks.app.control.revoke("again")
    assert on.parked() == 0
    tasks.run.apply_async((7,), countdown=3, task_id="again", queue="unread")
    assert on.parked() == 1
    wait_until(lambda: on.client.llen("unread") == 1)
    assert on.parked() == 0
    on.client.delete("unread")


def test_messages_with_the_same_task_id_all_run():
    on, tasks = setup()
    for number in range(12):
        tasks.run.apply_async((number,), countdown=4 + number / 100, task_id="twelve")
    assert on.parked() == 12
    wait_until(lambda: len(on.notes()) == 12)
    assert sorted(int(line[1]) for line in on.notes()) == list(range(12))


def test_revoking_removes_each_place_of_an_id():
    on, tasks = setup()
    for number in range(5):
        tasks.run.apply_async((number,), countdown=4 + number / 100, task_id="five")
    tasks.app.control.revoke("five")
    assert on.parked() == 0
    time.sleep(5)
    assert on.notes() == []


def test_the_same_message_published_twice_is_one():
    on, tasks = setup()
    eta = datetime.now(timezone.utc) + timedelta(seconds=3)
    for _ in range(2):
        tasks.run.apply_async((1,), eta=eta, task_id="once")
    assert on.parked() == 1
    wait_until(on.notes)
    time.sleep(0.5)
    assert len(on.notes()) == 1


def test_priorities_keep_their_lists():
    on, tasks = setup()
    tasks.run.apply_async((1,), countdown=0.5, priority=9, queue="unread")
    wait_until(lambda: on.client.llen("unread\x06\x169") == 1)
    on.client.delete("unread\x06\x169")


def test_a_task_due_now_does_not_wait_behind_those_with_an_eta():
    on, tasks = setup()
    for number in range(300):
        tasks.run.apply_async((1000 + number,), countdown=3600)
    sent = time.time_ns()
    tasks.run.delay(1)
    (line,) = wait_until(on.notes)
    assert line[0] - sent < 2e9, line
    assert on.parked() == 300
    assert on.client.zcard("unacked_index") <= 1
    on.client.delete("expiry:parked")


def test_a_second_relay_waits_and_takes_over():
    with Setup() as on:
        first, second = on.relay(), on.relay()
        on.worker()
        import tasks
        app = with_broker(tasks, on)
        wait_until(lambda: "serving" in first.log() or "serving" in second.log())
        if "serving" in second.log():
            first, second = second, first
        for number in range(50):
            app.send_task("tasks.run", (number,), countdown=2 + number / 50)
        first.kill()
        for number in range(50, 100):
            app.send_task("tasks.run", (number,), countdown=1)
        wait_until(lambda: len(on.notes()) == 100)
        assert sorted(int(line[1]) for line in on.notes()) == list(range(100))


def test_requests_are_taken_together_and_in_their_order():
    on, _ = setup()
    parking = Parking(on.client, "apart:", "relay")
    assert parking.hold(60)
    for id in range(1, 9):
        on.client.lpush("apart:expiry:inbox", "%s %d" % (field_of(id, 0), id))
    parking.wait(1)
    assert [entry.id for entry in parking.take(5)] == [1, 2, 3, 4, 5]
    assert [entry.id for entry in parking.take(512)] == list(range(1, 9))
    parking.finish(8)
    assert parking.take(512) == []
    parking.release()


def test_a_cancel_that_comes_late_leaves_the_next_message_its_timer():
    """A relay that stood still cancels what another relay has armed meanwhile."""
    on, _ = setup()
    parking = Parking(on.client, "late:", "relay")
    deadline = time.time_ns() + 3600 * 10**9
    on.client.eval(PARK, 2, "late:expiry:parked", "late:expiry:inbox",
                   "%d list" % deadline, "message", deadline, field_of(5, 6))
    with expiry.sync.connect("late", path=on.daemon.path, consume=False, keyed=True,
                             ack=True) as queue:
        inbox = Inbox(parking, lambda: queue, lambda message: None, Counters())
        queue.arm_many([5, 7], deadlines=[deadline] * 2, cookies=[6, 8])
        inbox._carry_out(queue, [Entry(5, 6, 0, b""), Entry(7, 8, 0, b"")])
        assert [(timer.id, timer.deadline) for timer in queue.scan()] == [(5, deadline)]


def test_a_thread_of_the_relay_goes_on_after_any_error():
    calls = []

    def run():
        calls.append(1)
        raise ValueError("unforeseen") if len(calls) < 3 else SystemExit
    relay = Relay(lambda: None, "celery", None, ())
    try:
        relay._again("test", run)
    except SystemExit:
        pass
    assert len(calls) == 3


def test_a_prefix_of_the_keys_is_kept():
    with Setup(KEY_PREFIX="shop:") as on:
        on.relay()
        on.worker()
        app = with_broker(__import__("tasks"), on)
        app.conf.broker_transport_options = {"global_keyprefix": "shop:"}
        task = app.send_task("tasks.run", (1,), countdown=60).id
        assert on.parked() == 1
        app.send_task("tasks.run", (2,), countdown=0.5)
        app.control.revoke(task)
        wait_until(on.notes)
        assert on.parked() == 0
        names = {name.decode() for name in on.client.keys()
                 if not name.startswith((b"celery-task-meta", b"notes"))}
        assert all(name.startswith("shop:") for name in names), names


def with_broker(tasks, on):
    """Returns an application like that of the tests, for another broker."""
    from celery import Celery
    return Celery("tasks", broker=on.environment["BROKER"],
                  backend=on.redis.url)


def test_the_end():
    # Results that are forgotten later would ask a Redis that has ended.
    gc.collect()
    if shared:
        shared.__exit__(None)


if __name__ == "__main__":
    tap.main()
