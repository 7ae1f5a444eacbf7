#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A daemon in a time namespace, where clocks are ahead of or behind the host's:
timers come when a timerfd does, and waiting costs nothing."""

import contextlib
import ctypes
import os
import struct
import subprocess
import tempfile
import time
import traceback

import tap
from client import (BOOTTIME, CONSUME, HOUR, MONOTONIC, REALTIME, SCALE,
                    SECOND, WAIT, arm, attach)
from daemon import PROGRAM, Daemon

CLONE_NEWTIME = 0x80
OFFSETS = "/proc/self/timens_offsets"
TFD_TIMER_ABSTIME = 1
TIMERS = 5
STEP = SECOND // 50

# Opens as the module's device does.
DEVICE = ["--device", "/dev/null"]

LATE = SCALE * SECOND // 4      # later than a timerfd by at most this
TRIES = 5                       # in one of so many

libc = ctypes.CDLL(None, use_errno=True)


def enter(monotonic_ns, boottime_ns):
    """Have children in a namespace with these offsets."""
    if libc.unshare(CLONE_NEWTIME) < 0:
        raise tap.Skip("no time namespace: " +
                       os.strerror(ctypes.get_errno()))
    with open(OFFSETS, "w", encoding="utf-8") as file:
        for name, ns in (("monotonic", monotonic_ns),
                         ("boottime", boottime_ns)):
            file.write("%s %d %d\n" % (name, ns // SECOND, ns % SECOND))


def in_child(function):
    """Run @function in a child process; what went wrong there."""
    end, start = os.pipe()
    pid = os.fork()
    if not pid:
        said = ""
        try:
            function()
        except tap.Skip as reason:
            said = "SKIP %s" % reason
        except BaseException:               # to the parent with it
            said = traceback.format_exc()
        os.write(start, said.encode()[-4000:])
        os._exit(0)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(pid, 0)
    return said


def inside(monotonic_ns, boottime_ns, function):
    """Run @function in such a namespace."""
    if not os.path.exists(OFFSETS):
        raise tap.Skip("no time namespaces")

    def outer():
        enter(monotonic_ns, boottime_ns)
        said = in_child(function)
        if said.startswith("SKIP "):
            raise tap.Skip(said[5:])
        assert not said, said

    said = in_child(outer)
    if said.startswith("SKIP "):
        raise tap.Skip(said[5:])
    assert not said, said


def now(clock):
    return time.clock_gettime_ns(clock)


def timerfd_lateness(clock):
    """The worst of as many timerfds as there are timers."""
    worst = 0
    fd = libc.timerfd_create(clock, 0)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    for _ in range(TIMERS):
        deadline = now(clock) + STEP
        setting = struct.pack("=4q", 0, 0, deadline // SECOND,
                              deadline % SECOND)
        assert libc.timerfd_settime(fd, TFD_TIMER_ABSTIME, setting, None) == 0
        os.read(fd, 8)
        worst = max(worst, now(clock) - deadline)
    os.close(fd)
    return worst


def timer_lateness(path, clock):
    """The worst of timers that are armed absolutely; none may be early."""
    worst = 0
    with attach(path, flags=CONSUME, clock=clock) as queue, \
            attach(path, clock=clock) as other:
        queue.credit(TIMERS)
        # What is far away has been waited for before.
        assert other.request(arm(HOUR)).status == 0
        queue.socket.settimeout(10 * SCALE)
        for _ in range(TIMERS):
            deadline = now(clock) + STEP
            reply = queue.request(arm(deadline, flags=0))
            assert reply.status == 0 and reply.deadline == deadline, reply
            assert queue.expiration().deadline == deadline
            late = now(clock) - deadline
            assert late >= 0, "%d ns early on clock %d" % (-late, clock)
            worst = max(worst, late)
        # One that counts from now, too.
        queue.credit(1)
        begin = now(clock)
        queue.request(arm(STEP))
        queue.expiration()
        assert now(clock) - begin >= STEP
    return worst


def processor_time(pid):
    """Nanoseconds that it has used."""
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * SECOND // \
        os.sysconf("SC_CLK_TCK")


def serves():
    with Daemon(engine="embedded") as daemon:
        for clock in (REALTIME, MONOTONIC, BOOTTIME):
            # Where the machine is busy, not each time. A wrong clock is late each time.
            tried = []
            for _ in range(TRIES):
                beside = timerfd_lateness(clock)
                late = timer_lateness(daemon.path, clock)
                tried.append((late, beside))
                if late <= beside + LATE:
                    break
            else:
                raise AssertionError("clock %d, ns late, a timerfd beside it: %s"
                                     % (clock, tried))
        # One on each clock is waited for, by which nothing is burnt.
        with contextlib.ExitStack() as stack:
            queues = [stack.enter_context(attach(daemon.path, flags=CONSUME,
                                                 clock=clock))
                      for clock in (REALTIME, MONOTONIC, BOOTTIME)]
            for queue in queues:
                queue.credit(1)
                queue.request(arm(SECOND // 2))
            before = processor_time(daemon.process.pid)
            for queue in queues:
                queue.expiration()
            used = processor_time(daemon.process.pid) - before
            assert used < SECOND // 10, "%d ns of work in 0.5 s" % used


def back():
    """As far back as this machine's clocks can be put, up to 300 s."""
    seconds = min(300, now(MONOTONIC) // SECOND // 2)
    if seconds < 1:
        raise tap.Skip("the machine has only just started")
    return -seconds * SECOND


def test_offset_of_zero():
    inside(0, 0, serves)


def test_clocks_ahead_of_the_hosts():
    inside(100000 * SECOND, 100000 * SECOND, serves)


def test_clocks_behind_the_hosts():
    inside(back(), back(), serves)


def test_clocks_with_offsets_of_their_own():
    inside(0, 5000 * SECOND + 1, serves)
    inside(back() // 2 + 12345, 100000 * SECOND, serves)
    inside(5000 * SECOND, back(), serves)


def test_small_offsets():
    inside(SECOND * 4 // 5, -SECOND * 4 // 5, serves)
    inside(-SECOND // 20, SECOND // 20, serves)


def test_several_threads():
    def threads():
        with Daemon(engine="embedded", threads=3) as daemon:
            for clock in (MONOTONIC, BOOTTIME):
                for _ in range(3):
                    timer_lateness(daemon.path, clock)

    inside(100000 * SECOND, back(), threads)


def test_module_is_not_taken_where_its_clocks_are_others():
    def refused():
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [PROGRAM, "--engine", "kernel", *DEVICE, "--socket",
                 os.path.join(folder, "socket")], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=WAIT)
            assert done.returncode > 0, done
            assert "time namespace" in done.stdout, done.stdout
        with Daemon(engine="auto", options=DEVICE) as daemon:
            assert "engine embedded" in daemon.log(), daemon.log()
            assert "time namespace" in daemon.log(), daemon.log()
            timer_lateness(daemon.path, MONOTONIC)

    inside(SECOND * 7, 0, refused)


def test_refused_where_the_offsets_cannot_be_read():
    """Without /proc nothing tells how far to go."""
    tap.need_root()

    def hidden():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "socket")
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c",
                 'mount -t tmpfs none /proc && exec "$@"', "sh", PROGRAM,
                 "--engine", "embedded", "--socket", path],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=WAIT)
            if "mount" in done.stdout or "unshare" in done.stdout:
                raise tap.Skip(done.stdout.strip())
            assert done.returncode == 1, done
            assert "time namespace" in done.stdout and \
                OFFSETS in done.stdout, done.stdout

    inside(100000 * SECOND, 0, hidden)
    inside(0, back(), hidden)


if __name__ == "__main__":
    tap.main()
