#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon and its service manager: what it tells, settings
read anew, queues that outlive it."""

import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time

import tap
from client import (ACKING, CONSUME, DROP, HOUR, KEYED, WAIT,
                    Connection, Record, arm, attach, wait_for)
from daemon import ENGINE, PROGRAM, Daemon

REDELIVERED = 2


def status(daemon):
    return daemon.manager.value("STATUS") or ""


def reload(daemon):
    daemon.reload()


def need_kernel():
    if ENGINE != "kernel":
        raise tap.Skip("needs the kernel engine")


def test_status_tells_of_timers():
    with Daemon(environment={"WATCHDOG_USEC": "200000"}) as daemon:
        assert "0 timers in 0 queues" in status(daemon), status(daemon)
        assert "Engine %s" % ENGINE in status(daemon), status(daemon)
        with attach(daemon.path, "leases", CONSUME) as queue:
            queue.batch([arm(HOUR, i) for i in range(7)])
            queue.request(arm(1000, 8))
            queue.credit(10)
            assert queue.expiration().cookie == 8
            due = time.gmtime(time.time() + 3600)
            assert wait_for(lambda: "7 timers in 1 queues, 1 clients, next "
                            in status(daemon)), status(daemon)
            assert time.strftime("%Y-%m-%dT%H:", due) in status(daemon) or \
                time.gmtime().tm_hour != (due.tm_hour - 1) % 24
            late = re.search(r"worst lateness (\d+)(us|ms|s);", status(daemon))
            assert late and int(late[1]) < 10**6, status(daemon)
        if ENGINE == "embedded":
            assert "end with the daemon" in status(daemon), status(daemon)
        else:
            assert wait_for(lambda: "1 queues kept" in status(daemon)), \
                status(daemon)


def test_status_is_told_without_a_watchdog_too():
    with Daemon() as daemon:
        with attach(daemon.path, "late") as queue:
            queue.request(arm(HOUR))
            assert wait_for(lambda: "1 timers in 1 queues" in status(daemon)), \
                status(daemon)


def test_reload_changes_limits():
    with Daemon("timers_per_user = 5\nbuffers = 64\n") as daemon:
        with attach(daemon.path) as queue:
            replies = queue.batch([arm(HOUR) for _ in range(6)])
            assert [r.status for r in replies] == [0] * 5 + [-122], replies
            daemon.configure("timers_per_user = 7\nbuffers = 128\n"
                             "connections_per_user = 2\n")
            before = time.clock_gettime(time.CLOCK_MONOTONIC)
            reload(daemon)
            after = time.clock_gettime(time.CLOCK_MONOTONIC)
            assert daemon.manager.has("RELOADING=1")
            at = int(daemon.manager.value("MONOTONIC_USEC")) / 1e6
            assert before - 0.001 <= at <= after, (before, at, after)
            replies = queue.batch([arm(HOUR) for _ in range(3)])
            assert [r.status for r in replies] == [0, 0, -122], replies
            # What has to wait for a start is said, and the rest is not.
            assert "buffers: changes with the next start" in daemon.log()
            assert "timers_per_user:" not in daemon.log(), daemon.log()
            with attach(daemon.path):
                assert refused(daemon) == -122      # EDQUOT


def refused(daemon):
    """The status with which a connection is refused, before it says a word."""
    with Connection(daemon.path) as connection:
        return connection.record().status


def test_reload_of_bad_settings_changes_nothing():
    with Daemon("timers_per_user = 2\n") as daemon:
        daemon.configure("timers_per_user = 3\nnonsense = 1\n")
        reload(daemon)
        assert "config:2: 'nonsense' is not a key" in daemon.log()
        assert "stay in force" in daemon.log()
        with attach(daemon.path) as queue:
            replies = queue.batch([arm(HOUR) for _ in range(3)])
            assert [r.status for r in replies] == [0, 0, -122], replies


def test_reload_raises_and_lowers_connections():
    with Daemon("connections = 1\n") as daemon:
        with attach(daemon.path):
            assert refused(daemon) == -16           # EBUSY
            daemon.configure("connections = 3\n")
            reload(daemon)
            with attach(daemon.path), attach(daemon.path) as third:
                daemon.configure("connections = 1\n")
                reload(daemon)
                # Those who are there may stay.
                assert refused(daemon) == -16
                assert third.request(arm(HOUR)).status == 0


def test_log_level():
    with Daemon("log_level = warning\n") as daemon:
        assert "engine" not in daemon.log(), daemon.log()
        daemon.reload("log_level = info\n")
        assert "settings reloaded" in daemon.log()
        daemon.reload("log_level = err\n")
        said = daemon.log()
        reload(daemon)
        assert daemon.log() == said, daemon.log()
    with Daemon("log_level = info\n") as daemon:
        assert "engine" in daemon.log(), daemon.log()


def drop_ins(folder, **files):
    """A configuration of a main file and what is dropped in beside it."""
    path = os.path.join(folder, "conf")
    os.mkdir(path + ".d")
    for name, text in files.items():
        name = {"main": "conf"}.get(name, "conf.d/" + name.replace("_", "."))
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return path


def check_config(path):
    return subprocess.run([PROGRAM, "--config", path, "--check-config"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=WAIT)


def test_drop_ins_are_read_in_order_of_their_names():
    with tempfile.TemporaryDirectory() as folder:
        path = drop_ins(folder, main="timers_per_user = 9\n",
                        **{"20-b_conf": "timers_per_user = 3\n",
                           "10-a_conf": "timers_per_user = 5\n",
                           "30-c_conf~": "timers_per_user = 1\n",
                           "_conf": "nonsense\n"})
        assert check_config(path).returncode == 0
        with Daemon(options=["--config", path]) as daemon:
            with attach(daemon.path) as queue:
                replies = queue.batch([arm(HOUR) for _ in range(4)])
                assert [r.status for r in replies] == [0, 0, 0, -122], replies


def test_drop_in_that_is_wrong_is_named():
    with tempfile.TemporaryDirectory() as folder:
        path = drop_ins(folder, main="", **{"10-a_conf": "\nqueues = none\n"})
        done = check_config(path)
        assert done.returncode == 2, done
        assert "conf.d/10-a.conf:2: queues: 'none' is not a number" \
            in done.stdout, done.stdout


def test_check_config_of_a_good_one_says_so():
    with tempfile.TemporaryDirectory() as folder:
        done = check_config(drop_ins(folder, main="memory = 1000\n"))
        assert (done.returncode, done.stdout) == \
            (0, "expiryd: the configuration is good\n"), done


def test_manager_that_does_not_read_holds_nobody_up():
    with Daemon("log_level = err\n") as daemon:
        daemon.manager.pause()
        with attach(daemon.path) as queue:
            end = time.monotonic() + 2 * WAIT
            # Two messages each; sockets take ten datagrams, or some hundred.
            for _ in range(600):
                daemon.process.send_signal(signal.SIGHUP)
                assert queue.request(arm(HOUR)).status == 0
            assert time.monotonic() < end
        daemon.manager.read()
        reload(daemon)


def test_status_and_watchdog_wait_for_nobody():
    """Each time that it stops reading is another chance to wait for it."""
    with Daemon(environment={"WATCHDOG_USEC": "20000"}) as daemon, \
            attach(daemon.path) as queue:
        shortest = WAIT
        for _ in range(10):
            daemon.manager.hang()
            end, longest = time.monotonic() + 0.2, 0
            while time.monotonic() < end:
                begun = time.monotonic()
                assert queue.request(arm(HOUR)).status == 0
                longest = max(longest, time.monotonic() - begun)
            daemon.manager.read()
            before = daemon.manager.count("WATCHDOG=1")
            assert wait_for(lambda: daemon.manager.count("WATCHDOG=1")
                            > before + 1)
            shortest = min(shortest, longest)
        # It was two tenths of a second, each time.
        assert shortest < 0.15, shortest


def test_a_reload_is_told_before_it_is_over_however_late():
    with Daemon("") as daemon:
        daemon.manager.hang()
        ready = daemon.manager.count("READY=1")
        daemon.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: "settings reloaded" in daemon.log())
        daemon.manager.read()
        assert wait_for(lambda: daemon.manager.count("READY=1") > ready)
        said = daemon.manager.messages[-2:]
        assert said[0].startswith("RELOADING=1\nMONOTONIC_USEC="), said
        assert said[1].startswith("READY=1"), said


def connected(daemon):
    try:
        return attach(daemon.path)
    except OSError:
        return None


def test_manager_that_is_behind_hears_of_readiness_later():
    daemon = Daemon(hang=True, environment={"WATCHDOG_USEC": "60000000"})
    try:
        with wait_for(lambda: connected(daemon)) as queue:
            assert queue.request(arm(HOUR)).status == 0
        # Some attempts in vain.
        time.sleep(0.5)
        daemon.manager.read()
        assert daemon.wait_ready(), daemon.log()
        assert "timers in" in status(daemon)
        assert daemon.end() == 0
    finally:
        daemon.remove()


def test_embedded_queues_are_not_stored():
    if ENGINE != "embedded":
        raise tap.Skip("the embedded engine's")
    with Daemon() as daemon:
        with attach(daemon.path, "named"):
            reload(daemon)
            assert daemon.manager.names() == []


def test_named_queues_are_stored_by_name_and_dropped():
    need_kernel()
    uid = os.getuid()
    with Daemon() as daemon:
        with attach(daemon.path, "leases"), attach(daemon.path), \
                attach(daemon.path, "a.b-c_9"):
            assert wait_for(lambda: len(daemon.manager.names()) == 2)
            assert daemon.manager.names() == ["a.b-c_9@%d" % uid,
                                              "leases@%d" % uid]
        with attach(daemon.path, "leases") as queue:
            assert queue.request(Record(DROP)).status == 0
        assert wait_for(lambda: daemon.manager.names() == ["a.b-c_9@%d" % uid])
        assert not [text for text in daemon.manager.messages
                    if "FDSTORE=1" in text and "FDPOLL=0" not in text]


def test_queue_that_was_not_taken_is_kept_later():
    need_kernel()
    with Daemon() as daemon:
        other = attach(daemon.path)
        reload(daemon)
        daemon.manager.hang()
        # As many queues and clients as before: there is nothing else to tell.
        other.close()
        with attach(daemon.path, "late"):
            assert wait_for(lambda: "not kept yet" in daemon.log())
            # Longer than it is until the first attempt, which is in vain.
            time.sleep(12)
            daemon.manager.read()
            assert wait_for(lambda: daemon.manager.names() ==
                            ["late@%d" % os.getuid()])


def test_queues_outlive_a_killed_daemon():
    need_kernel()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "socket")
        first = Daemon(path=path)
        assert first.wait_ready(), first.log()
        with attach(path, "acked", CONSUME | ACKING) as queue:
            queue.batch([arm(HOUR, 1), arm(1000, 2), arm(500 * 10**6, 3)])
            queue.credit(1)
            assert queue.expiration().cookie == 2
        with attach(path, "keyed", KEYED) as queue:
            queue.batch([arm(HOUR, i, id=i) for i in range(1, 1001)])
        first.process.kill()
        first.process.wait()
        assert wait_for(lambda: len(first.manager.names()) == 2)
        stored = first.manager.take_store()
        first.remove()

        with Daemon(path=path, stored=stored) as second:
            for _, fd in stored:
                os.close(fd)
            assert "1003 timers in 2 queues" in status(second), status(second)
            assert "2 queues kept" in status(second), status(second)
            # Nothing is stored twice.
            assert second.manager.names() == []
            with attach(path, "keyed", KEYED) as queue:
                assert queue.stat().armed == 1000
                assert queue.request(Record(DROP)).status == 0
            assert wait_for(lambda: second.manager.has("FDSTOREREMOVE=1"))
            assert second.manager.value("FDNAME").startswith("keyed@")
            with attach(path, "acked", CONSUME | ACKING) as queue:
                queue.credit(10)
                again, new = queue.expiration(), queue.expiration()
                assert (again.cookie, new.cookie) == (2, 3)
                assert again.flags & REDELIVERED
                assert not new.flags & REDELIVERED


def test_what_is_no_queue_is_taken_from_the_store():
    null = os.open("/dev/null", os.O_RDWR)
    try:
        with Daemon(stored=[("nothing@0", null)]) as daemon:
            with attach(daemon.path) as queue:
                assert queue.request(arm(HOUR)).status == 0
            if ENGINE == "kernel":
                assert wait_for(lambda: daemon.manager.has("FDSTOREREMOVE=1"))
                assert daemon.manager.value("FDNAME") == "nothing@0"
            else:
                assert "are not served" in daemon.log(), daemon.log()
    finally:
        os.close(null)


def test_queues_in_the_store_forbid_the_embedded_engine():
    null = os.open("/dev/null", os.O_RDWR)
    daemon = Daemon(stored=[("nothing@0", null)], engine="auto",
                    options=["--device", "/nonexistent/expiry"])
    try:
        assert daemon.process.wait(WAIT) == 1, daemon.log()
        assert "in the service manager's store" in daemon.log(), daemon.log()
    finally:
        daemon.remove()
        os.close(null)


def test_device_that_udev_has_yet_to_give_away_is_waited_for():
    tap.need_root()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        device = os.path.join(folder, "device")
        with open(device, "wb"):
            os.chmod(device, 0o600)
        daemon = Daemon(engine="auto", user="nobody",
                        options=["--device", device])
        try:
            time.sleep(0.2)
            assert daemon.alive() and not daemon.manager.messages
            os.chmod(device, 0o666)
            assert daemon.wait_ready(), daemon.log()
            assert "engine kernel" in daemon.log(), daemon.log()
            daemon.end()
        finally:
            daemon.remove()
        os.chmod(device, 0o600)
        with Daemon(engine="auto", user="nobody",
                    options=["--device", device]) as daemon:
            assert "engine embedded: %s: Permission denied" % device \
                in daemon.log(), daemon.log()


def test_several_sockets_are_refused():
    pairs = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        for i, one in enumerate(pairs):
            one.bind(os.path.join(folder, str(i)))
            one.listen()
        daemon = Daemon(listen=pairs[0], stored=[("b", pairs[1].fileno())])
        try:
            assert daemon.process.wait(WAIT) == 1, daemon.log()
            assert "one is expected" in daemon.log(), daemon.log()
        finally:
            daemon.remove()
    for one in pairs:
        one.close()


def test_fewer_queues_are_kept_than_may_be():
    need_kernel()
    with Daemon("kept_queues = 3\nkept_queues_per_user = 2\n",
                environment={"FDSTORE": "5"}) as daemon:
        with attach(daemon.path, "q1"), attach(daemon.path, "q2"), \
                attach(daemon.path, "q3"):
            reload(daemon)
            assert len(daemon.manager.names()) == 2, daemon.manager.names()
            assert "q3@%d" % os.getuid() in daemon.log(), daemon.log()
            assert "2 queues kept" in status(daemon), status(daemon)


def test_never_more_names_than_the_next_daemon_can_be_given():
    need_kernel()
    most = 16000
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    settings = "kept_queues = 100000\nkept_queues_per_user = 100000\n"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "socket")
        with Daemon(settings, path=path) as first:
            for i in range(5000):
                attach(path, "%024d" % i).close()
            # As many as go into a string of 128 KiB, and some room.
            assert wait_for(lambda: len(":".join(first.manager.names())) >
                            125 * 1024), len(first.manager.names())
            reload(first)
            stored = first.manager.take_store()
            names = ":".join(name for name, _ in stored)
            assert len(names) < 127 * 1024, len(names)
        with Daemon(settings, path=path, stored=stored) as second:
            for _, fd in stored:
                os.close(fd)
            assert "%d queues kept" % len(stored) in status(second)


if __name__ == "__main__":
    tap.main()
