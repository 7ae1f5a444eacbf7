#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A daemon in a control group with little memory: a client that arms timers until the
memory is full gets an error, and the daemon survives."""

import contextlib
import errno
import os
import re

import tap
from client import CLEAR, HOUR, Record, arm, attach, wait_for
from daemon import ENGINE, PROGRAM, SHADOW, Daemon

MIB = 1 << 20
LIMIT = 64 * MIB
CHUNK = 10000


def need_own_memory():
    if ENGINE == "kernel":
        raise tap.Skip("timers are the module's")
    if SHADOW:
        raise tap.Skip("a sanitizer takes more than the group has")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(text, *path):
    with open(os.path.join(*path), "w", encoding="utf-8") as file:
        file.write(text)


def own_groups():
    """Where this process' groups with memory limits may be: the directory and
    the file of the limit."""
    for line in read("/proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield "/sys/fs/cgroup/memory" + group, "memory.limit_in_bytes"
        elif not controllers:
            yield "/sys/fs/cgroup" + group, "memory.max"


@contextlib.contextmanager
def memory_group():
    """A group with LIMIT bytes of memory; it goes at the end."""
    tap.need_root()
    made = None
    for parent, file in own_groups():
        folder = os.path.join(parent, "expiry-test-%d" % os.getpid())
        try:
            os.mkdir(folder)
            made = folder
            write(str(LIMIT), folder, file)
            break
        except OSError:
            if made:
                os.rmdir(made)
            made = None
    if not made:
        raise tap.Skip("no control group with a limit of memory can be made")
    try:
        yield made
    finally:
        assert wait_for(lambda: not gone(made)), "the group stays"


def gone(folder):
    try:
        os.rmdir(folder)
    except OSError as error:
        return error
    return None


def killed(group):
    """Returns how many processes of the group the OOM killer ended."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            found = re.search(r"^oom_kill (\d+)$", read(group, name), re.M)
            if found:
                return int(found[1])
    return 0


def peak(group):
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        with contextlib.suppress(OSError):
            return int(read(group, name))
    return 0


@contextlib.contextmanager
def inside(group, config=""):
    """A daemon in the group."""
    with Daemon(config, program=script(group)) as daemon:
        yield daemon


def script(group):
    """The daemon as a program that goes into the group first."""
    path = "/tmp/expiry-test-%d.sh" % os.getpid()
    write('#!/bin/sh\necho $$ >"%s/cgroup.procs" || exit 3\n'
          'exec "%s" "$@"\n' % (group, PROGRAM), path)
    os.chmod(path, 0o755)
    return path


def fill(queue, most):
    """Arms until a refusal. Returns the number of timers and the errno."""
    armed = 0
    while armed < most:
        replies = queue.batch([arm(HOUR + armed + i, i)
                               for i in range(CHUNK)])
        good = sum(r.status == 0 for r in replies)
        armed += good
        if good < CHUNK:
            return armed, {r.status for r in replies if r.status}
    return armed, set()


def test_one_user_gets_enomem_and_the_daemon_lives():
    need_own_memory()
    with memory_group() as group:
        with inside(group) as daemon:
            said = re.search(r"up to (\d+) MiB for timers, (\d+) MiB .* "
                             r"group may have (\d+) MiB", daemon.log())
            assert said, daemon.log()
            timers, backlog, limit = map(int, said.groups())
            assert limit == LIMIT // MIB, limit
            assert timers + backlog < limit and timers > limit // 2, said
            with attach(daemon.path) as queue, \
                    attach(daemon.path, "other") as other:
                assert other.request(arm(HOUR)).status == 0
                armed, why = fill(queue, LIMIT // 32)
                assert why == {-errno.ENOMEM}, (armed, why)
                # What it may have is what it has, but for tables and kept pages.
                assert armed * 48 > timers * MIB * 3 // 4, armed
                # What others have they keep, and what is given back is there.
                assert other.stat().armed == 1
                assert queue.request(Record(CLEAR)).cookie == armed
                assert wait_for(
                    lambda: other.request(arm(HOUR)).status == 0)
            assert not killed(group)
            assert peak(group) <= LIMIT
            assert daemon.alive()


def test_settings_come_before_what_is_found():
    need_own_memory()
    with memory_group() as group:
        with inside(group, "memory = %d\nbacklog_memory = %d\n" %
                    (4 * MIB, 3 * MIB)) as daemon:
            assert "up to 4 MiB for timers, 3 MiB" in daemon.log(), \
                daemon.log()
            with attach(daemon.path) as queue:
                armed, why = fill(queue, LIMIT // 32)
                assert why == {-errno.ENOMEM}, (armed, why)
                assert armed * 48 <= 4 * MIB, armed


def test_without_a_group_the_machines_memory_counts():
    need_own_memory()
    total = int(re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))[1])
    with Daemon() as daemon:
        said = re.search(r"up to (\d+) MiB for timers", daemon.log())
        assert said, daemon.log()
        assert 0 < int(said[1]) <= total // 1024 * 3 // 4 + 1, said[0]


if __name__ == "__main__":
    try:
        tap.main()
    finally:
        with contextlib.suppress(OSError):
            os.unlink("/tmp/expiry-test-%d.sh" % os.getpid())
