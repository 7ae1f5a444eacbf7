#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon as systemd and the administrator see it: start, readiness, its
socket, its engine, its end."""

import errno
import os
import signal
import socket
import stat
import subprocess
import tempfile
import time

import tap
from client import (CONSUME, HOUR, WAIT, Connection, Record, arm, attach,
                    scaled, wait_for)
from daemon import ENGINE, PROGRAM, Daemon, as_user

ENGINES = {"embedded": 1, "kernel": 2}


def run(*arguments, **more):
    """Run the daemon with what must make it end at once."""
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=WAIT, **more)


def test_notifies_readiness_when_it_can_be_connected_to():
    daemon = Daemon()
    try:
        assert daemon.wait_ready(), daemon.log()
        attach(daemon.path).close()
        assert daemon.end() == 0
        assert wait_for(lambda: daemon.manager.has("STOPPING=1")), \
            daemon.manager.messages
    finally:
        daemon.remove()


def test_runs_without_anybody_to_notify():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        environment = dict(os.environ)
        environment.pop("NOTIFY_SOCKET", None)
        process = subprocess.Popen(
            [PROGRAM, "--engine", ENGINE, "--socket", path], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            assert wait_for(lambda: os.path.exists(path))

            def connected():
                try:
                    return attach(path)
                except OSError:
                    return None
            connection = wait_for(connected)
            assert connection.request(arm(HOUR)).status == 0
            connection.close()
            process.terminate()
            assert process.wait(WAIT) == 0
        finally:
            process.kill()
            process.wait()


def test_takes_its_socket_from_systemd():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(16)
        # A client that comes before the daemon is served, too.
        early = Connection(path)
        with Daemon(listen=listener, path=path) as daemon:
            os.chmod(path, 0o666)
            assert early.hello().status == 0
            with attach(daemon.path) as late:
                assert late.request(arm(HOUR)).status == 0
            early.close()
        # It is systemd's, which goes on listening on it.
        assert os.path.exists(path)
        Connection(path).close()
        listener.close()


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_the_sockets_mode_is_as_configured_whatever_the_umask():
    for config, mode in ((None, 0o666), ("socket_mode = 0600\n", 0o600),
                         ("socket_mode = 0660\n", 0o660),
                         ("socket_mode = 0666\n", 0o666),
                         ("socket_mode = 0\n", 0)):
        for umask in (0, 0o022, 0o177):
            with Daemon(config, umask=umask) as daemon:
                assert mode_of(daemon.path) == mode, \
                    (config, oct(umask), oct(mode_of(daemon.path)))


def connect_error(path):
    """The errno with which nobody can connect, else 0."""
    try:
        Connection(path).close()
    except OSError as problem:
        return problem.errno
    return 0


def test_the_sockets_mode_says_who_may_connect():
    tap.need_root()
    for mode, error in (("0600", errno.EACCES), ("0660", errno.EACCES),
                        ("0666", 0)):
        with Daemon("socket_mode = %s\n" % mode) as daemon:
            assert as_user("nobody", connect_error, daemon.path) == error, mode


def test_the_sockets_folder_is_made_for_everybody_to_enter():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "made", "socket")
        for umask in (0, 0o022, 0o077):
            with Daemon(path=path, umask=umask) as daemon:
                assert mode_of(os.path.dirname(path)) == 0o755, oct(umask)
                assert mode_of(path) == 0o666
                attach(daemon.path).close()
            os.rmdir(os.path.dirname(path))
        # One that is there is left as it is.
        os.mkdir(os.path.dirname(path), 0o710)
        with Daemon(path=path, umask=0):
            assert mode_of(os.path.dirname(path)) == 0o710


def test_sigterm_ends_it_cleanly_and_removes_the_socket():
    daemon = Daemon()
    try:
        assert daemon.wait_ready(), daemon.log()
        queue = attach(daemon.path, flags=CONSUME)
        queue.credit(1000)
        queue.batch([arm(i * 1000, i) for i in range(scaled(1000, 50))])
        assert stat.S_ISSOCK(os.stat(daemon.path).st_mode)
        assert daemon.end() == 0, daemon.log()
        assert not os.path.exists(daemon.path)
        queue.close()
    finally:
        daemon.remove()


def test_sigint_ends_it_too():
    daemon = Daemon()
    try:
        assert daemon.wait_ready(), daemon.log()
        assert daemon.end(signal.SIGINT) == 0
        assert not os.path.exists(daemon.path)
    finally:
        daemon.remove()


def test_sigterm_during_a_storm():
    daemon = Daemon()
    try:
        assert daemon.wait_ready(), daemon.log()
        queues = [attach(daemon.path, flags=CONSUME) for _ in range(10)]
        for queue in queues:
            queue.credit(10**6)
            queue.socket.settimeout(0)
            try:
                for _ in range(50):
                    queue.socket.send(b"".join(
                        bytes(arm(i * 100000, i)) for i in range(200)))
            except BlockingIOError:
                pass
        assert daemon.end() == 0, daemon.log()
        for queue in queues:
            queue.close()
    finally:
        daemon.remove()


def test_stale_socket_file_is_replaced():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        gone = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        gone.bind(path)
        gone.close()
        assert os.path.exists(path)
        with Daemon(path=path) as daemon:
            attach(daemon.path).close()


def test_live_socket_is_refused_and_left_alone():
    with Daemon() as daemon:
        done = run("--engine", ENGINE, "--socket", daemon.path)
        assert done.returncode > 0, done
        assert daemon.path in done.stdout, done.stdout
        attach(daemon.path).close()


def test_file_in_the_sockets_place_is_not_removed():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "precious")
        with open(path, "w", encoding="utf-8") as file:
            file.write("precious\n")
        done = run("--engine", ENGINE, "--socket", path)
        assert done.returncode > 0, done
        with open(path, encoding="utf-8") as file:
            assert file.read() == "precious\n"


def test_socket_path_that_is_too_long_is_refused():
    done = run("--engine", ENGINE, "--socket", "/tmp/" + "x" * 200)
    assert done.returncode > 0 and done.stdout, done


def test_says_in_one_line_which_engine_and_why():
    with Daemon(engine="auto") as daemon:
        with attach(daemon.path) as queue:
            engine = queue.stat().engine
        there = os.access("/dev/expiry", os.R_OK | os.W_OK)
        assert engine == ENGINES["kernel" if there else "embedded"], engine
        lines = [line for line in daemon.log().splitlines()
                 if "engine" in line]
        assert len(lines) == 1, daemon.log()
        assert ("kernel" if there else "embedded") in lines[0], lines
        assert "/dev/expiry" in lines[0], lines


def test_engine_asked_for_is_the_engine_taken():
    with Daemon() as daemon:
        with attach(daemon.path) as queue:
            assert queue.stat().engine == ENGINES[ENGINE]


def test_auto_takes_the_embedded_engine_without_a_device():
    with Daemon(engine="auto",
                options=["--device", "/nonexistent/expiry"]) as daemon:
        with attach(daemon.path) as queue:
            assert queue.stat().engine == ENGINES["embedded"]
        assert "/nonexistent/expiry" in daemon.log(), daemon.log()


def test_kernel_engine_without_a_device_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        done = run("--engine", "kernel", "--device", "/nonexistent/expiry",
                   "--socket", os.path.join(folder, "socket"))
        assert done.returncode > 0, done
        assert "/nonexistent/expiry" in done.stdout, done.stdout


def test_wrong_arguments_are_a_usage_error():
    for arguments in (["--no-such-option"], ["--engine", "steam"],
                      ["--socket"], ["argument"]):
        done = run(*arguments)
        assert done.returncode > 0 and done.stdout, (arguments, done)


def test_idle_daemon_sleeps():
    with Daemon() as daemon:
        with attach(daemon.path, flags=CONSUME) as queue:
            queue.credit(10)
            queue.request(arm(HOUR))
            time.sleep(0.2)
            check_rests(daemon, "of rest")


def cpu_ticks(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def check_rests(daemon, when):
    """Checks that the daemon rests. It may still be at work in the first second, or in
    the second one: a daemon that spins does so in each."""
    for _ in range(3):
        before = cpu_ticks(daemon.process.pid)
        time.sleep(1)
        used = cpu_ticks(daemon.process.pid) - before
        if used <= 5:
            return
    raise AssertionError("%d ticks in a second %s" % (used, when))


def test_due_without_credit_does_not_spin():
    with Daemon() as daemon:
        with attach(daemon.path, flags=CONSUME) as queue:
            queue.batch([arm(0, i) for i in range(100)])
            time.sleep(0.2)
            check_rests(daemon, "while nobody takes anything")
            queue.credit(100)
            for _ in range(100):
                queue.expiration()


def test_slow_reader_held_back_does_not_spin():
    with Daemon() as daemon:
        with attach(daemon.path) as queue:
            queue.socket.settimeout(0)
            data = bytes(Record(99)) * 1024
            end = time.monotonic() + 1
            while time.monotonic() < end:
                try:
                    queue.socket.send(data)
                except BlockingIOError:
                    time.sleep(0.01)
            check_rests(daemon, "while the client does not read")


if __name__ == "__main__":
    tap.main(above_the_engine=(
        test_runs_without_anybody_to_notify,
        test_takes_its_socket_from_systemd,
        test_the_sockets_mode_is_as_configured_whatever_the_umask,
        test_the_sockets_mode_says_who_may_connect,
        test_the_sockets_folder_is_made_for_everybody_to_enter,
        test_sigint_ends_it_too,
        test_stale_socket_file_is_replaced,
        test_live_socket_is_refused_and_left_alone,
        test_file_in_the_sockets_place_is_not_removed,
        test_socket_path_that_is_too_long_is_refused,
        test_wrong_arguments_are_a_usage_error))
