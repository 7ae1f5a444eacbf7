#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the daemon starts: wrong calls, the socket's folder, how many files."""

import os
import resource
import shutil
import subprocess
import tempfile

import tap
from client import WAIT, accepted, wait_for
from daemon import PROGRAM, Daemon


def called(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=WAIT, check=False)


def test_wrong_calls_have_status_2():
    for arguments in (["--nonsense"], ["--threads"], ["--threads", "x"],
                      ["surplus"], ["--config", "/nonexistent/config"]):
        run = called(*arguments)
        assert run.returncode == 2 and run.stdout == "" and run.stderr, run
    assert called("--help").returncode == 0
    assert called("--version").returncode == 0


def test_folder_of_the_socket_is_made():
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        inner = os.path.join(folder, "new")
        with Daemon(path=os.path.join(inner, "socket")) as daemon:
            assert os.stat(inner).st_mode & 0o7777 == 0o755, os.stat(inner)
            accepted(daemon.path).close()


def test_where_it_listens_by_default():
    """In a mount namespace with a /run of its own, so as not to meet another."""
    tap.need_root()
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
               'mount -t tmpfs none /run && exec "$@"', "sh"]
    if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        raise tap.Skip("no mount namespace of its own")
    run = subprocess.Popen([*command, PROGRAM, "--engine", "embedded"],
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def served():
        try:
            return accepted("/proc/%d/root/run/expiryd/socket" % run.pid)
        except OSError:     # not yet
            return None
    try:
        wait_for(served).close()
        run.terminate()
        assert run.wait(WAIT) == 0
    finally:
        run.kill()
        run.wait()


def test_a_device_of_others_is_tried_once_where_no_manager_waits():
    """With a manager it may be about to become ours (test-manager.py)."""
    tap.need_root()
    if not shutil.which("strace"):
        raise tap.Skip("no strace")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        device, calls = (os.path.join(folder, name) for name in ("device", "calls"))
        with open(device, "wb"):
            os.chmod(device, 0o600)
        program = shutil.copy(PROGRAM, folder)
        variables = {name: value for name, value in os.environ.items()
                     if name != "NOTIFY_SOCKET"}
        run = subprocess.run(
            ["strace", "-u", "nobody", "-f", "-e", "trace=openat", "-o", calls,
             program, "--engine", "kernel", "--device", device, "--socket",
             os.path.join(folder, "socket")], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=WAIT, check=False, env=variables)
        assert run.returncode not in (0, 2) and device in run.stderr, run
        with open(calls, encoding="utf-8") as file:
            tries = [line for line in file if '"%s"' % device in line]
        assert len(tries) == 1 and "EACCES" in tries[0], tries


def test_as_many_files_as_it_may_have():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 256:
        raise tap.Skip("no more than %d files" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with Daemon() as daemon:
            assert resource.prlimit(daemon.process.pid,
                                    resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


if __name__ == "__main__":
    tap.main()
