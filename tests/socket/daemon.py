# SPDX-License-Identifier: LGPL-2.1-or-later
"""An expiryd of one's own: started, watched, and ended properly."""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from client import WAIT, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PROGRAM = os.environ.get("EXPIRYD", os.path.join(ROOT, "build", "expiryd"))
ENGINE = os.environ.get("EXPIRY_ENGINE", "embedded")


class Daemon:
    """A running daemon on a socket of its own.

    @config: text of a configuration file
    @options: further arguments
    @listen: a listening socket to be handed over as systemd does
    """

    def __init__(self, config=None, options=(), engine=ENGINE, listen=None,
                 path=None):
        self.folder = tempfile.mkdtemp(prefix="expiryd-")
        os.chmod(self.folder, 0o755)
        self.path = path or os.path.join(self.folder, "socket")
        self.log_path = os.path.join(self.folder, "log")
        self.notified = b""
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(os.path.join(self.folder, "notify"))

        command = [PROGRAM, "--engine", engine]
        if listen is None:
            command += ["--socket", self.path]
        if config is not None:
            config_path = os.path.join(self.folder, "config")
            with open(config_path, "w", encoding="utf-8") as file:
                file.write(config)
            command += ["--config", config_path]
        command += options
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("LISTEN_")}
        environment["NOTIFY_SOCKET"] = self.notify.getsockname()

        with open(self.log_path, "wb") as log:
            if listen is None:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env=environment)
            else:
                # The variables name the process that the shell becomes.
                self.process = subprocess.Popen(
                    ["/bin/sh", "-c",
                     "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\" 3<&%d"
                     % listen.fileno(), "sh"] + command,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env=environment, pass_fds=[listen.fileno()])

    def wait_ready(self):
        """Wait for READY=1; whether it came."""
        self.notify.settimeout(0.1)

        def told():
            try:
                self.notified += self.notify.recv(4096) + b"\n"
            except socket.timeout:
                pass
            return b"READY=1" in self.notified or \
                self.process.poll() is not None
        wait_for(told)
        return b"READY=1" in self.notified

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process.poll() is None

    def resident(self):
        """Bytes of memory it holds."""
        with open("/proc/%d/statm" % self.process.pid,
                  encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def end(self, signal_nr=signal.SIGTERM):
        """End it: its exit status, or a reason why that cannot be had."""
        if not self.alive():
            return "it was dead before: %s" % self.process.returncode
        self.process.send_signal(signal_nr)
        try:
            return self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "it had to be killed"

    def remove(self):
        if self.alive():
            self.process.kill()
            self.process.wait()
        self.notify.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        assert self.wait_ready(), "not ready: " + self.log()
        # Who may connect is the unit file's business; here everybody may.
        if os.path.exists(self.path):
            os.chmod(self.path, 0o666)
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                status = self.end()
                assert status == 0, "exit status %s: %s" % (status, self.log())
        finally:
            self.remove()


def as_user(name, function, *args):
    """The value (None, a number, text or a list) of @function(), run in a
    child process that belongs to the user @name."""
    user = pwd.getpwnam(name)
    end, start = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            value = function(*args)
            os.write(start, json.dumps(value).encode())
            os._exit(0)
        except BaseException as problem:    # to the parent with it
            os.write(start, json.dumps("%r" % problem).encode())
            os._exit(1)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        value = json.loads(pipe.read() or b"null")
    _, status = os.waitpid(pid, 0)
    assert status == 0, value
    return value
