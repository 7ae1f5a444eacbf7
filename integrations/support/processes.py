# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes of a test that are killed and started again. tests/socket is in sys.path."""

import os
import signal
import subprocess
import sys
import time

from daemon import Daemon

# A test that takes too long is ended so: it must end its programs, too.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def wait_until(condition, seconds=30):
    """Returns the value of @condition, which became true."""
    limit = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < limit, "not within %d s: %s" % (seconds, condition)
        time.sleep(0.02)


class Program:
    """A process that may be killed with its children, and started again."""

    def __init__(self, command, environment, log, folder=None):
        self.command = command
        self.folder = folder
        self.environment = environment
        self.log_path = log
        self.process = None
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self, number=signal.SIGKILL):
        """Ends it with all its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        self.process.wait(60)

    def resident(self):
        """Returns resident memory in bytes, and that of children."""
        total = 0
        for pid in [self.process.pid, *self.children()]:
            with open("/proc/%d/statm" % pid, encoding="utf-8") as file:
                total += int(file.read().split()[1])
        return total * os.sysconf("SC_PAGESIZE")

    def children(self):
        path = "/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)
        with open(path, encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]

    def processor(self):
        """Returns seconds of processor time so far."""
        ticks = 0
        for pid in [self.process.pid, *self.children()]:
            with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


class Expiryd:
    """A daemon that keeps its socket's path over a kill."""

    def __init__(self, *options):
        self.options = options
        self.ended = []
        self.daemon = Daemon(engine="embedded", options=options).__enter__()
        self.path = self.daemon.path

    def kill(self):
        """Ends it by SIGKILL, and starts another one on the same socket."""
        self.stop()
        self.start()

    def stop(self):
        self.daemon.process.kill()
        self.daemon.process.wait()
        os.unlink(self.path)
        self.ended.append(self.daemon)

    def start(self):
        self.daemon = Daemon(engine="embedded", path=self.path, options=self.options)
        assert self.daemon.wait_ready(), self.daemon.log()

    def resident(self):
        return self.daemon.resident()

    def remove(self):
        for daemon in [self.daemon, *self.ended]:
            daemon.remove()
