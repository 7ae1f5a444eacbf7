#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The thread that arms the timers of a web process: order, refusals, a daemon that is away,
any exception, fork."""

import contextlib
import os
import threading
import time

import project                          # first: it finds Django
from project import Command, timers, told, visit, wait_until

import expiry                           # noqa: E402
import expiry.sync                      # noqa: E402
from expiry_django import conf, timers as module    # noqa: E402
from expiry_django.receiver import Receiver         # noqa: E402

HOUR = time.time_ns() + 3600 * 10**9


@contextlib.contextmanager
def running(config=None, options=()):
    daemon = project.daemon(config, options)
    try:
        yield daemon
    finally:
        project.kill(daemon)
        daemon.remove()


@contextlib.contextmanager
def queue():
    with expiry.sync.connect(**module.options(), consume=False) as looked:
        yield looked


def armed(looked):
    return {timer.id: (timer.deadline, timer.cookie) for timer in looked.scan()}


def test_the_last_note_counts_in_any_batch():
    """A CANCEL in the batch of a later ARM of the same id does not undo it."""
    with running(), queue() as looked:
        for _ in range(200):
            timers.arm(1, 5, HOUR)
            timers.cancel(1)
            timers.arm(1, 6, HOUR + 1)
            timers.arm(2, 7, HOUR)
            timers.cancel(2)
        assert timers.flush(20)
        assert armed(looked) == {1: (HOUR + 1, 6)}, armed(looked)


def test_a_refused_timer_is_armed_again_when_there_is_room():
    with running("timers_per_user = 10\n"), queue() as looked:
        refused = timers.refused
        for id in range(1, 16):
            timers.arm(id, id, HOUR)
        wait_until(lambda: timers.refused > refused)
        assert len(armed(looked)) == 10 and not timers.flush(0.01)
        # A note that waits may be overtaken.
        missing = sorted(set(range(1, 16)) - set(armed(looked)))
        timers.arm(missing[0], 99, HOUR + 9)
        looked.cancel_many(list(armed(looked))[:6])
        assert timers.flush(30)
        now = armed(looked)
        assert now[missing[0]] == (HOUR + 9, 99)
        assert set(missing) <= set(now), (missing, now)


def test_a_daemon_that_is_away_gets_the_notes_later():
    with running():
        timers.arm(1, 1, HOUR)
        assert timers.flush(20)
    for id in range(2, 1000):
        timers.arm(id, id, HOUR)
    assert not timers.flush(0.3)
    with running(), queue() as looked:
        assert timers.flush(30)
        assert set(armed(looked)) == set(range(2, 1000))


def test_notes_are_bounded():
    dropped = timers.dropped
    with settings(PENDING_MAX=50):
        for id in range(1, 101):
            timers.arm(id, id, HOUR)
        wait_until(lambda: timers.dropped - dropped >= 50)
        assert len(timers.notes) <= 50
    with running(), queue() as looked:
        assert timers.flush(30)
        assert len(armed(looked)) >= 1


def test_the_thread_survives_any_exception():
    class Surprise(BaseException):
        pass

    thrown = []
    original = timers._send

    def send(notes):
        if len(thrown) < len(errors):
            thrown.append(errors[len(thrown)])
            raise thrown[-1]
        return original(notes)

    errors = [RuntimeError("one"), MemoryError(), OSError(9, "two"), Surprise(),
              SystemExit(1), KeyboardInterrupt()]
    timers._send = send
    try:
        with running(), queue() as looked:
            timers.arm(77, 1, HOUR)
            assert timers.flush(60)
            assert len(thrown) == len(errors) and 77 in armed(looked)
    finally:
        timers._send = original
    assert sum(thread.name == "expiry-sessions" for thread in threading.enumerate()) == 1


def test_a_child_has_a_thread_of_its_own():
    with running(), queue() as looked:
        timers.arm(1, 1, HOUR)
        assert timers.flush(20)
        child = os.fork()
        if not child:
            timers.arm(2, 2, HOUR)
            os._exit(0 if timers.flush(20) else 1)
        assert os.waitpid(child, 0)[1] == 0
        timers.arm(3, 3, HOUR)
        assert timers.flush(20)
        assert set(armed(looked)) == {1, 2, 3}


def test_of_two_commands_one_works_and_the_other_takes_over():
    with running(), Command() as first, Command() as second:
        keys = [visit(ttl=1)[1] for _ in range(20)]
        wait_until(lambda: told(session_key__in=keys).count() == 20)
        first.kill()
        keys += [visit(ttl=1)[1] for _ in range(20)]
        wait_until(lambda: told(session_key__in=keys).count() == 40)
        second.kill()
        first.start()
        second.start()
        keys += [visit(ttl=1)[1] for _ in range(20)]
        wait_until(lambda: told(session_key__in=keys).count() == 60)
        time.sleep(0.3)
        assert told(session_key__in=keys).count() == 60


def test_a_connection_that_breaks_while_it_restores_leaves_all_to_the_next_one():
    original, calls, armed = expiry.sync.connect, [], []

    def connect(**options):
        calls.append(options)
        if len(calls) == 1:
            options["restore"]()
            raise ConnectionError("while timers were restored")
        return original(**options)

    receiver = Receiver()
    receiver._arm_all = lambda queue: (armed.append(queue.timers), receiver.stop.set())
    limit = threading.Timer(20, receiver.stop.set)
    limit.start()
    with running(), queue() as looked:
        looked.arm_many([1], deadlines=[HOUR], cookies=[1])     # so it is not empty
        expiry.sync.connect = connect
        try:
            receiver.run()
        finally:
            expiry.sync.connect = original
            limit.cancel()
    assert armed == [1], (armed, len(calls))


def test_the_command_ends_though_the_daemon_hangs():
    receiver = Receiver()
    thread = threading.Thread(target=receiver.run, daemon=True)
    with running() as daemon, daemon.halted():
        thread.start()
        time.sleep(0.5)
        receiver.stop.set()
        thread.join(20)
        assert not thread.is_alive()


def test_a_request_does_not_wait_for_a_daemon_that_hangs():
    with running() as daemon, daemon.halted():
        begun = time.monotonic()
        for _ in range(20):
            visit(ttl=3600)
        assert time.monotonic() - begun < 4


def test_a_durable_queue_has_its_timers_after_a_kill():
    journal = os.path.join(project.FOLDER, "journal")
    os.mkdir(journal)
    with settings(DURABLE=True, QUEUE="durable"):
        timers._drop_queue()        # that of the tests before
        with running(options=("--journal", journal)):
            for id in range(1, 100):
                timers.arm(id, id, HOUR)
            assert timers.flush(30)
        with running(options=("--journal", journal)), queue() as looked:
            assert set(range(1, 100)) <= set(armed(looked))
        timers._drop_queue()


def test_the_page_has_each_setting_with_its_default():
    with open(os.path.join(project.ROOT, "docs", "django.md"), encoding="utf-8") as file:
        page = file.read()
    for name, value in conf.DEFAULTS.items():
        shown = "%g" % value if isinstance(value, float) else value
        assert "| `EXPIRY_SESSION_%s` | `%s` |" % (name, shown) in page, (name, shown)


@contextlib.contextmanager
def settings(**values):
    from django.test import override_settings
    with override_settings(**{"EXPIRY_SESSION_" + name: value
                              for name, value in values.items()}):
        yield


if __name__ == "__main__":
    project.run(globals(), contextlib.nullcontext)
