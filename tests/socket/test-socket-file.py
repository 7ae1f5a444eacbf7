#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The socket's path when several daemons want it: one has it, and none removes
what is another's."""

import concurrent.futures
import errno
import os
import pwd
import signal
import socket
import subprocess
import tempfile
import threading

import tap
from client import HOUR, WAIT, arm, attach, scaled, wait_for
from daemon import ENGINE, PROGRAM, THREADS, Daemon

PLAIN = THREADS == 1 and "EXPIRYD" not in os.environ
# With threads and other engines it is the same code.
ROUNDS = scaled(100 if PLAIN else 20, 4)
AT_ONCE = 5             # rounds; most of one is spent waiting for the path


def start(path, log, **more):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("NOTIFY_", "LISTEN_"))}
    return subprocess.Popen(
        [PROGRAM, "--engine", ENGINE, "--socket", path],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
        **more)


def run(path):
    """Run one that must end by itself."""
    with tempfile.TemporaryFile("w+") as log:
        with start(path, log) as process:
            try:
                status = process.wait(WAIT)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        log.seek(0)
        return status, log.read()


def answers(path):
    try:
        with attach(path) as queue:
            return queue.request(arm(HOUR)).status == 0
    except OSError:
        return False


def one_round(number):
    """Start 2 to 4 at the same moment: what is wrong, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        # In every third round there is what a killed daemon leaves.
        if number % 3 == 0:
            left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            left.bind(path)
            left.close()
            with open(path + ".lock", "w", encoding="utf-8"):
                os.chmod(path + ".lock", 0o600)
        logs = [tempfile.TemporaryFile("w+") for _ in range(2 + number % 3)]
        barrier = threading.Barrier(len(logs))
        processes = [None] * len(logs)

        def begin(index):
            barrier.wait()
            processes[index] = start(path, logs[index])

        threads = [threading.Thread(target=begin, args=(index,))
                   for index in range(len(logs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        try:
            def running():
                return [process for process in processes
                        if process.poll() is None]

            if not wait_for(lambda: len(running()) <= 1):
                return "%d daemons stay up" % len(running())
            if not wait_for(lambda: answers(path) or not running()) or \
                    not running():
                return "nobody serves: %s" % [p.poll() for p in processes]
            winner = running()[0]
            for process, log in zip(processes, logs):
                if process is winner:
                    continue
                log.seek(0)
                said = log.read()
                if process.returncode <= 0 or path not in said or \
                        "another expiryd" not in said:
                    return "ended with %d, saying %r" % (process.returncode,
                                                         said)
            winner.terminate()
            if winner.wait(WAIT) != 0:
                return "the winner ended with %d" % winner.returncode
            if os.listdir(folder):
                return "left behind: %s" % os.listdir(folder)
            return None
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                process.wait()
            for log in logs:
                log.close()


def test_of_several_started_together_exactly_one_stays():
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = [said for said in pool.map(one_round, range(ROUNDS)) if said]
    assert not wrong, "%d of %d rounds: %s" % (len(wrong), ROUNDS, wrong[:3])


def test_socket_that_was_replaced_is_left_alone():
    daemon = Daemon()
    try:
        assert daemon.wait_ready(), daemon.log()
        os.unlink(daemon.path)
        other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        other.bind(daemon.path)
        other.listen(1)
        assert daemon.end() == 0, daemon.log()
        assert os.path.exists(daemon.path), "another's socket was removed"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(daemon.path)
        other.close()
    finally:
        daemon.remove()


def test_lock_that_was_replaced_is_left_alone():
    daemon = Daemon()
    try:
        assert daemon.wait_ready(), daemon.log()
        lock = daemon.path + ".lock"
        os.unlink(lock)
        with open(lock, "w", encoding="utf-8") as file:
            file.write("another's\n")
        assert daemon.end() == 0, daemon.log()
        assert os.path.exists(lock), "another's lock was removed"
    finally:
        daemon.remove()


def test_second_one_leaves_the_lock_alone():
    with Daemon() as daemon:
        lock = daemon.path + ".lock"
        before = os.stat(lock)
        assert before.st_mode & 0o777 == 0o600, oct(before.st_mode)
        status, said = run(daemon.path)
        assert status > 0 and daemon.path in said, (status, said)
        assert os.stat(lock).st_ino == before.st_ino
        assert answers(daemon.path)
    assert not os.path.exists(lock)


def firsts(count):
    """So many daemons, one after the other, each the first at its path; it is
    removed however its round ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        for _ in range(count):
            first = Daemon(path=path)
            try:
                assert first.wait_ready(), first.log()
                yield first
            finally:
                first.remove()


def test_path_of_a_killed_one_is_free_at_once():
    for first in firsts(scaled(20, 3)):
        path = first.path
        held = attach(path)
        held.send(arm(HOUR))
        first.end(signal.SIGKILL)
        assert os.path.exists(path) and os.path.exists(path + ".lock")
        with Daemon(path=path):
            assert answers(path)
        held.close()


def test_one_that_is_about_to_end_is_waited_for():
    for first in firsts(scaled(10, 2)):
        # It has its signal before the second one looks.
        first.process.send_signal(signal.SIGTERM)
        with Daemon(path=first.path):
            assert first.process.wait(WAIT) == 0
            assert answers(first.path), "the first took the second's socket"


def test_socket_of_one_that_takes_no_lock_is_left_alone():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(path)
            other.listen(64)
            status, said = run(path)
            assert status > 0 and path in said and "another" in said, said
            assert os.listdir(folder) == ["socket"], os.listdir(folder)


def hostile(prepare, *words):
    """The line of a daemon that finds a lock that is not one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        lock = path + ".lock"
        prepare(lock)
        before = os.lstat(lock)
        status, said = run(path)
        assert status > 0, "started with a hostile lock"
        assert lock in said, said
        for word in words:
            assert word in said, said
        assert not os.path.exists(path)
        after = os.lstat(lock)
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


def test_hostile_locks_are_refused():
    hostile(lambda lock: os.symlink("/etc/passwd", lock),
            os.strerror(errno.ELOOP))
    hostile(lambda lock: os.symlink("nowhere", lock),
            os.strerror(errno.ELOOP))
    hostile(os.mkdir, os.strerror(errno.EISDIR))
    hostile(os.mkfifo, os.strerror(errno.EEXIST))

    def open_to_all(lock):
        with open(lock, "w", encoding="utf-8"):
            os.chmod(lock, 0o644)

    hostile(open_to_all, os.strerror(errno.EPERM), "own")


def test_lock_of_another_user_is_refused():
    tap.need_root()

    def another(lock):
        with open(lock, "w", encoding="utf-8"):
            os.chmod(lock, 0o600)
        os.chown(lock, pwd.getpwnam("nobody").pw_uid, -1)

    hostile(another, os.strerror(errno.EPERM), "own")


def test_socket_from_systemd_has_no_lock():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(16)
            with Daemon(listen=listener, path=path):
                assert answers(path)
                assert os.listdir(folder) == ["socket"], os.listdir(folder)


if __name__ == "__main__":
    tap.main()
