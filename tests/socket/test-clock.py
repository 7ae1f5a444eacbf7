#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/run: alone, because it may step the clock that other programs read.
"""The three clocks, and steps of CLOCK_REALTIME. With EXPIRY_TEST_SETTIME=1 the test
sets this machine's clock. Otherwise step-clock.c simulates the step for the daemon."""

import contextlib
import os
import time

import tap
from client import (BOOTTIME, CLOCK_SET, CONSUME, EXPIRED, HOUR, MONOTONIC,
                    OBSERVE, REALTIME, SECOND, arm, attach)
from stepper import told

CLOCKS = {REALTIME: time.CLOCK_REALTIME, MONOTONIC: time.CLOCK_MONOTONIC,
          BOOTTIME: time.CLOCK_BOOTTIME}


@contextlib.contextmanager
def stepped():
    """A function to step the clock by so many nanoseconds from where it was;
    at the end it is put back."""
    if os.environ.get("EXPIRY_TEST_SETTIME") != "1":
        raise tap.Skip("EXPIRY_TEST_SETTIME is not 1")
    offset = time.time_ns() - time.monotonic_ns()

    def step(by):
        time.clock_settime_ns(time.CLOCK_REALTIME,
                              time.monotonic_ns() + offset + by)
    try:
        yield step
    finally:
        step(0)


def test_each_step_is_told_once_to_whom_it_concerns():
    with told() as (daemon, step), contextlib.ExitStack() as stack:
        def open_queue(*arguments, **more):
            return stack.enter_context(attach(daemon.path, *arguments, **more))
        concerned = [open_queue(name, CONSUME, REALTIME)
                     for name in ("", "one", "two")]
        for queue in concerned[1:]:
            queue.credit(5)
            queue.request(arm(HOUR, 1))
        others = [open_queue("", CONSUME, MONOTONIC),
                  open_queue("", CONSUME, BOOTTIME),
                  open_queue("one", 0, REALTIME)]
        for _ in range(5):
            before = time.time_ns()
            step()
            for queue in concerned:
                record = queue.record()
                assert record.op == CLOCK_SET, record
                assert before <= record.deadline <= time.time_ns(), record
        assert all(queue.quiet() for queue in concerned + others)


def test_a_step_is_told_to_more_than_there_are_buffers_for():
    with told("buffers = 4\n") as (daemon, step), \
            contextlib.ExitStack() as stack:
        queues = [stack.enter_context(attach(daemon.path, flags=CONSUME,
                                             clock=REALTIME))
                  for _ in range(60)]
        for _ in range(3):
            step()
            for queue in queues:
                assert queue.record().op == CLOCK_SET
        assert queues[0].quiet() and queues[-1].quiet()


def test_absolute_and_relative_deadlines_on_each_clock(daemon):
    for clock, clock_id in CLOCKS.items():
        with attach(daemon.path, flags=CONSUME, clock=clock) as queue:
            queue.credit(2)
            soon = time.clock_gettime_ns(clock_id) + SECOND // 20
            assert queue.request(arm(soon, 1, flags=0)).deadline == soon
            assert queue.request(arm(SECOND // 10, 2)).deadline > soon
            for cookie in (1, 2):
                record = queue.expiration()
                assert record.cookie == cookie, record
                assert record.deadline <= time.clock_gettime_ns(clock_id)


def test_near_deadline_of_one_queue_does_not_wait_for_far_one_of_another(daemon):
    """All queues of a clock share one timeout, which then has to be moved."""
    for clock, clock_id in CLOCKS.items():
        with attach(daemon.path, flags=CONSUME, clock=clock) as far, \
                attach(daemon.path, flags=CONSUME, clock=clock) as near:
            for queue in (far, near):
                queue.credit(1)
            far.request(arm(HOUR, 1))
            far.stat()      # a turn later the timeout is set
            near.request(arm(SECOND // 10, 2))
            record = near.expiration()
            assert record.cookie == 2, record
            late = time.clock_gettime_ns(clock_id) - record.deadline
            assert 0 <= late < 5 * SECOND, (clock, late)


def test_step_forward_makes_due_what_it_passes(daemon):
    with stepped() as step, attach(daemon.path, flags=CONSUME,
                                   clock=REALTIME) as queue:
        queue.credit(10)
        queue.request(arm(HOUR, 1))
        queue.request(arm(3 * HOUR, 3))
        step(2 * HOUR)
        records = [queue.record(), queue.record()]
        assert {r.op for r in records} == {CLOCK_SET, EXPIRED}, records
        for record in records:
            assert record.deadline <= time.time_ns(), record
            if record.op == CLOCK_SET:
                assert record.deadline >= time.time_ns() - HOUR, record
            else:
                assert record.cookie == 1, record
        assert queue.quiet()
        stat = queue.stat()
        assert stat.armed == 1
        # It became due by the step: it was not late.
        assert stat.lateness_max_all < HOUR, stat


def test_step_is_told_to_consumers_without_credit_or_timers(daemon):
    with stepped() as step, attach(daemon.path, flags=CONSUME,
                                   clock=REALTIME) as queue:
        step(HOUR)
        record = queue.record()
        assert record.op == CLOCK_SET, record
        step(0)
        record = queue.record()
        assert record.op == CLOCK_SET, record
        assert queue.quiet()


def test_step_backward_holds_back_what_was_near(daemon):
    with stepped() as step, attach(daemon.path, flags=CONSUME,
                                   clock=REALTIME) as queue:
        queue.credit(10)
        armed = queue.request(arm(20 * SECOND, 1))
        step(-HOUR)
        assert queue.record().op == CLOCK_SET
        assert queue.quiet()
        time.clock_settime_ns(time.CLOCK_REALTIME,
                              armed.deadline - SECOND // 20)
        record = queue.record()
        if record.op == CLOCK_SET:
            record = queue.record()
        assert record.op == EXPIRED and record.cookie == 1, record
        assert record.deadline <= time.time_ns()


def test_step_does_not_concern_other_clocks_or_producers(daemon):
    with stepped() as step, \
            attach(daemon.path, flags=CONSUME) as monotonic, \
            attach(daemon.path, flags=CONSUME, clock=BOOTTIME) as boottime, \
            attach(daemon.path, "real", clock=REALTIME) as producer:
        for queue in (monotonic, boottime):
            queue.credit(10)
            queue.request(arm(HOUR))
        step(2 * HOUR)
        assert monotonic.quiet()
        assert boottime.quiet()
        assert producer.quiet()


def test_an_observer_gets_what_its_consumer_gets(daemon):
    with stepped() as step, \
            attach(daemon.path, "real", CONSUME, REALTIME) as consumer, \
            attach(daemon.path, "real", OBSERVE, REALTIME) as observer, \
            attach(daemon.path, "mono", CONSUME), \
            attach(daemon.path, "mono", OBSERVE) as other:
        step(HOUR)
        record = consumer.record()
        assert record.op == CLOCK_SET, record
        assert observer.record() == record
        assert other.quiet()


if __name__ == "__main__":
    tap.main()
