# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private expiryd: started, watched, and ended properly."""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import manager

from client import WAIT, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PROGRAM = os.environ.get("EXPIRYD", os.path.join(ROOT, "build", "expiryd"))
ENGINE = os.environ.get("EXPIRY_ENGINE", "embedded")
LOOP = os.environ.get("EXPIRY_LOOP", "auto")
IO_URING_SETUP = 425
THREADS = int(os.environ.get("EXPIRY_THREADS", "1"))

# Time that the tested engine takes for each batch, 0 = none.
SLOW_MS = int(os.environ.get("EXPIRY_SLOW_MS", "0"))

# Bytes that a sanitizer holds for each byte of the daemon.
SHADOW = int(os.environ.get("EXPIRY_TEST_SHADOW", "0"))


def uring_refused():
    """Returns whether `auto` is epoll here, as in most containers."""
    libc = ctypes.CDLL(None, use_errno=True)
    # Where it is not refused, no parameters are EFAULT.
    libc.syscall(IO_URING_SETUP, 1, None)
    return ctypes.get_errno() in (errno.EPERM, errno.EACCES, errno.ENOSYS)


# systemd's work between fork and exec: descriptors from 3 on, and their variables.
HAND_OVER = """
import os, sys
names, command = sys.argv[1], sys.argv[3:]
fds = [int(fd) for fd in sys.argv[2].split(",")]
for number, fd in enumerate(fds):
    os.dup2(fd, 3 + number, inheritable=True)
os.closerange(3 + len(fds), max(fds) + 1)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)),
                  LISTEN_FDNAMES=names)
os.execv(command[0], command)
"""


class Daemon:
    """A running daemon on a socket of its own.

    @config: text of a configuration file
    @options: further arguments
    @listen: a listening socket to be handed over as systemd does
    @stored: likewise descriptors from its store: a list of (name, fd)
    @environment: further variables
    @user: run it as this one
    @threads: how many it has, None = as configured
    @hang: the manager does not read until the test starts it
    @journal: standard error is the journal
    @files: limit of descriptors
    @program: another program than the default
    @stderr: a descriptor for it, instead of the file that log() reads
    @umask: -1 = as it is here
    @given: settings on the command line; the others are in the configuration
    """

    def __init__(self, config=None, options=(), engine=ENGINE, listen=None,
                 path=None, stored=(), environment=None, journal=False,
                 user=None, hang=False, threads=THREADS, files=None,
                 program=PROGRAM, stderr=None, umask=-1,
                 given=("engine", "loop", "threads", "socket"), loop=LOOP):
        self.started = time.monotonic()
        self.folder = tempfile.mkdtemp(prefix="expiryd-")
        os.chmod(self.folder, 0o755)
        self.path = path or os.path.join(self.folder, "socket")
        self.log_path = os.path.join(self.folder, "log")
        if user:
            os.chown(self.folder, pwd.getpwnam(user).pw_uid, -1)
        self.manager = manager.Manager(os.path.join(self.folder, "notify"))
        if hang:
            self.manager.hang()
        self.config_path = os.path.join(self.folder, "config")

        if user is not None:
            # Other users may have no access to the checkout.
            program = shutil.copy(program, self.folder)
        command = [program]
        if "engine" in given:
            command += ["--engine", engine]
        if "loop" in given:
            command += ["--loop", loop]
        if "threads" in given and threads is not None:
            command += ["--threads", str(threads)]
        if "socket" in given and listen is None:
            command += ["--socket", self.path]
        if config is not None:
            self.configure(config)
            command += ["--config", self.config_path]
        command += options
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("LISTEN_", "WATCHDOG_",
                                             "JOURNAL_"))}
        variables["NOTIFY_SOCKET"] = self.manager.path
        variables.update(environment or {})

        handed = [(name, fd) for name, fd in stored]
        if listen is not None:
            handed.insert(0, ("expiryd.socket", listen.fileno()))
        # Move the descriptors away from their final numbers.
        fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3 + 2 * len(handed) + 32)
               for _, fd in handed]
        if fds:
            command = [sys.executable, "-c", HAND_OVER,
                       ":".join(name for name, _ in handed),
                       ",".join(str(fd) for fd in fds)] + command
        if files:
            command = ["sh", "-c", 'ulimit -n %d; exec "$@"' % files,
                       "sh"] + command
        with open(self.log_path, "wb") as log:
            if journal:
                entry = os.fstat(log.fileno())
                variables["JOURNAL_STREAM"] = "%d:%d" % (entry.st_dev,
                                                         entry.st_ino)
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log if stderr is None else stderr,
                env=variables, pass_fds=fds, user=user,
                umask=umask)
        for fd in fds:
            os.close(fd)

    def configure(self, text):
        """Write the configuration file."""
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(text)

    def wait_ready(self, seconds=None):
        """Waits for READY=1. Returns whether it came."""
        wait_for(lambda: self.manager.has("READY=1") or
                 self.process.poll() is not None, seconds)
        return self.manager.has("READY=1")

    def log_thread(self):
        """Returns id and state of the thread that writes the log, or None."""
        tasks = "/proc/%d/task" % self.process.pid
        with contextlib.suppress(OSError):      # the daemon has ended
            for task in os.listdir(tasks):
                try:
                    with open(os.path.join(tasks, task, "stat"),
                              encoding="utf-8") as file:
                        name, state = file.read().rsplit(")", 1)
                except OSError:     # a worker of a ring, which has ended
                    continue
                if name.endswith("(expiry-log"):
                    return int(task), state.split()[0]
        return None

    def _logging(self):
        """Returns whether lines are still queued: the thread is awake from when a line
        is queued until it waits for the next. It sets its name when it first runs."""
        if not self.alive():
            return False
        thread = self.log_thread()
        return not thread or thread[1] != "S"

    def wait_logged(self):
        """Waits until the log's lines so far are written, or cannot be."""
        wait_for(lambda: not self._logging())

    def reload(self, text=None):
        """Sends SIGHUP, with other settings if there is a @text, and waits until the
        reload is done."""
        if text is not None:
            self.configure(text)
        before = self.manager.count("READY=1")
        self.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: self.manager.count("READY=1") > before), \
            self.manager.messages

    @contextlib.contextmanager
    def halted(self):
        """Stops the daemon: all threads find meanwhile sent data at the same moment."""
        self.process.send_signal(signal.SIGSTOP)

        def stopped():
            with open("/proc/%d/stat" % self.process.pid,
                      encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] in "tT"
        try:
            assert wait_for(stopped)
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def log(self):
        """Returns the log so far."""
        self.wait_logged()
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process.poll() is None

    def resident(self):
        """Returns the daemon's resident memory in bytes."""
        with open("/proc/%d/statm" % self.process.pid,
                  encoding="utf-8") as file:
            pages = int(file.read().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") // (1 + SHADOW)

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def end(self, signal_nr=signal.SIGTERM):
        """Ends the daemon. Returns its exit status, or the reason for having none."""
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
        self.manager.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        assert self.wait_ready(), "not ready: " + self.log()
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                status = self.end()
                assert status == 0, "exit status %s: %s" % (status, self.log())
        finally:
            self.remove()


def as_user(who, function, *args):
    """Runs @function() in a child process of the user @who: a name, a number, or a tuple
    of user, group and supplementary groups. Returns its value (None, a number, text, a
    list or a dict)."""
    if isinstance(who, tuple):
        uid, gid, groups = who
    elif isinstance(who, int):
        uid, gid, groups = who, who, []
    else:
        _, _, uid, gid, *_ = pwd.getpwnam(who)
        groups = []
    end, start = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            value = function(*args)
            os.write(start, json.dumps(value).encode())
            os._exit(0)
        except BaseException as problem:    # pass it to the parent
            os.write(start, json.dumps("%r" % problem).encode())
            os._exit(1)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        value = json.loads(pipe.read() or b"null")
    _, status = os.waitpid(pid, 0)
    assert status == 0, value
    return value
