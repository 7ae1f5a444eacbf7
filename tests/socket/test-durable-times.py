#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Durable queues: what is due at a start, how it is marked, and when the rest comes."""

import fcntl
import os
import subprocess
import tempfile
import time

import tap
from client import (ACK, BOOTTIME, CONSUME, EXISTING, HOUR, REDELIVERED, SECOND,
                    Record, arm, attach, wait_for)
from daemon import ENGINE, PROGRAM
from durable import FLAGS, LATE, MILLISECOND, Disk, kill, query, rows


def test_overdue_first_in_order_and_marked():
    with Disk() as disk:
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                connection.batch([arm(number * 20 * MILLISECOND, number, id=number)
                                  for number in (1, 2, 3)])
                connection.credit(2)
                first = [connection.expiration() for _ in range(2)]
                assert [record.id for record in first] == [1, 2]
                assert connection.request(Record(ACK, id=1)).status == 0
                # Due while there is no daemon, long after its end.
                connection.batch([arm(1600 * MILLISECOND, 4, id=4), arm(HOUR, 5, id=5)])
            kill(daemon)
        time.sleep(1.7)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                connection.credit(10)
                again = [connection.expiration() for _ in range(3)]
                assert [record.id for record in again] == [2, 3, 4], again
                assert all(record.flags & LATE for record in again), again
                # Nothing says when the daemon was killed: each may have been delivered.
                assert all(record.flags & REDELIVERED for record in again), again
                assert again[0].deadline == first[1].deadline
                assert connection.request(arm(1, 9, id=9)).status == 0
                assert connection.expiration().flags == 0
                assert connection.quiet()
                connection.batch([Record(ACK, id=number) for number in (2, 3, 4, 9)])
                connection.batch([arm(1600 * MILLISECOND, 6, id=6)])
        # After a clean end number 6 cannot have been.
        time.sleep(1.7)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                connection.credit(10)
                last = connection.expiration()
                assert (last.id, last.flags) == (6, LATE), last


def test_periodic_timers_keep_their_phase():
    with Disk() as disk:
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                armed = connection.request(arm(50 * MILLISECOND, 7, id=7, period=100))
                connection.credit(1)
                first = connection.expiration().deadline
                assert (first - armed.deadline) % (100 * MILLISECOND) == 0
                acked = connection.request(Record(ACK, id=7))
                assert acked.status == 0 and acked.period == 100, acked
                # The next one; a later one, if the machine stood still.
                more = acked.deadline - first
                assert more % (100 * MILLISECOND) == 0, more
                assert 0 < more <= time.monotonic_ns() - first + 100 * MILLISECOND, more
            kill(daemon)
        time.sleep(0.55)
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                connection.credit(3)
                for number in range(3):
                    record = connection.expiration()
                    assert (record.deadline - armed.deadline) % (100 * MILLISECOND) == 0
                    assert bool(record.flags & LATE) == (number == 0), record
                    if number:
                        assert record.deadline > before, record
                    before = record.deadline


HIDE = "mount --bind /dev/null /proc/sys/kernel/random/boot_id && "


def younger(folder, seconds, hide=""):
    """Returns a program: the daemon on a machine that has run for so long, and the
    offset of its BOOTTIME. @hide: HIDE if it cannot read the boot id"""
    path = os.path.join(folder, f"younger-{seconds}")
    offset = seconds - int(time.clock_gettime(time.CLOCK_BOOTTIME))
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexec unshare --time --boottime {offset} --mount --fork "
                   f"--kill-child sh -c '{hide}exec {PROGRAM} \"$@\"' sh \"$@\"\n")
    os.chmod(path, 0o700)
    if subprocess.run([path, "--version"], capture_output=True, check=False).returncode:
        raise tap.Skip("no namespace for clocks")
    return path, offset * SECOND


def another_start(folder, boot_id):
    """Returns a program: the daemon after the machine was started anew, by its id."""
    path = os.path.join(folder, boot_id)
    with open(path + ".id", "w", encoding="ascii") as file:
        file.write(boot_id + "\n")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {path}.id "
                   f"/proc/sys/kernel/random/boot_id && exec {PROGRAM} \"$@\"' sh \"$@\"\n")
    os.chmod(path, 0o700)
    if subprocess.run([path, "--version"], capture_output=True, check=False).returncode:
        raise tap.Skip("no namespace for mounts")
    return path


def kill_child(daemon, disk):
    """Kills a program whose child the daemon is, which ends a little later."""
    kill(daemon)
    folder = os.open(disk.folder, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
    finally:
        os.close(folder)


def has_logged(daemon, text):
    with open(daemon.log_path, encoding="utf-8") as file:
        return text in file.read()


def test_reboots_where_the_boot_id_is_unknown():
    """Deadlines move once for each reboot, which the clocks tell."""
    if ENGINE != "embedded":
        raise tap.Skip("the module's clock is not the namespace's")
    ends = {}       # the deadlines, on the clock of the tests' own machine
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        for number, seconds in enumerate((1000, 100, 10), 1):
            program, offset = younger(folder, seconds, HIDE)
            with disk.daemon(program=program) as daemon:
                # The daemon is a child of the program, whose threads log() waits for.
                assert wait_for(lambda daemon=daemon: has_logged(
                    daemon, "cannot read /proc/sys/kernel/random/boot_id"))
                with attach(daemon.path, "queue", FLAGS, BOOTTIME) as connection:
                    assert connection.request(
                        arm(number * HOUR, id=number)).status == 0
                    ends[number] = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + \
                        number * HOUR
                    found = {id: row.deadline - offset
                             for id, row in rows(connection).items()}
                    assert found.keys() == ends.keys(), found
                    wrong = {id: (found[id] - ends[id]) / SECOND for id in ends
                             if abs(found[id] - ends[id]) > SECOND}
                    assert not wrong, f"start {number}: {wrong}"
                kill_child(daemon, disk)


def test_deadlines_before_the_clock_was_0():
    """They keep their marks, and periodic timers their phase."""
    if ENGINE != "embedded":
        raise tap.Skip("the module's clock is not the namespace's")
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon() as daemon:
            with attach(daemon.path, "queue", FLAGS | CONSUME, BOOTTIME) as connection:
                first = connection.batch(
                    [arm(MILLISECOND, 1, id=1), arm(MILLISECOND, 2, id=2, period=700),
                     arm(MILLISECOND, 3, id=3, period=60000)])
                connection.credit(3)
                assert {connection.expiration().id for _ in range(3)} == {1, 2, 3}
        time.sleep(3.3)
        program, offset = younger(folder, 1)
        with disk.daemon(program=program) as daemon:
            with attach(daemon.path, "queue", FLAGS | EXISTING | CONSUME,
                        BOOTTIME) as connection:
                connection.credit(3)
                came = {record.id: record for record in
                        (connection.expiration() for _ in range(3))}
                assert len(came) == 3, came
                assert came[1].flags == came[3].flags == LATE | REDELIVERED, came
                # Not what was delivered, but a later time.
                assert came[2].flags == LATE, came
                assert came[1].deadline == came[3].deadline == 0, came
                assert connection.request(Record(ACK, id=2)).status == 0
                for armed in first[1:]:
                    moved = query(connection, armed.id).deadline - offset - armed.deadline
                    late = (moved + 50 * MILLISECOND) % (armed.period * MILLISECOND)
                    assert late <= 100 * MILLISECOND, (armed, moved)
            kill(daemon)


def test_monotonic_after_a_loss_of_power():
    """It goes on from the journal's last time, and the machine may have run for a minute
    longer: what is due in the first minute may have been delivered."""
    if ENGINE != "embedded":
        raise tap.Skip("the machine's own start is another one there, too")
    tap.need_root()
    with tempfile.TemporaryDirectory() as folder:
        for is_clean in (False, True):
            with Disk() as disk:
                with disk.daemon() as daemon:
                    with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                        assert connection.request(arm(2 * SECOND, id=1)).status == 0
                    if not is_clean:
                        kill(daemon)
                program = another_start(folder, "%032x" % (1 + is_clean))
                with disk.daemon(program=program) as daemon:
                    with attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
                        left = query(connection, 1).deadline - \
                            time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                        # The journal's last time may be some moments before the ARM.
                        assert 0 < left <= 3 * SECOND, left
                        connection.credit(1)
                        came = connection.expiration()
                        assert came.flags == (0 if is_clean else REDELIVERED), \
                            (is_clean, came)
                    kill(daemon)


if __name__ == "__main__":
    tap.main()
