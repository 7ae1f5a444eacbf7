# SPDX-License-Identifier: LGPL-2.1-or-later
"""strace(1) of a daemon."""

import shutil
import signal
import subprocess
import tempfile

import tap
from client import WAIT


class Trace:
    """Traces a daemon's threads during the with statement; then @lines has the calls.
    @options: strace's options"""

    def __init__(self, daemon, *options):
        if not shutil.which("strace"):
            raise tap.Skip("no strace")
        self.pid = daemon.process.pid
        self.options = options
        self.lines = []

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile("r")
        self.strace = subprocess.Popen(
            ["strace", "-f", *self.options, "-o", self.file.name, "-p",
             str(self.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        said = self.strace.stderr.readline()
        if "attached" not in said:
            self.strace.wait()
            raise tap.Skip("may not be traced: " + said.strip())
        return self

    def __exit__(self, *_):
        self.strace.send_signal(signal.SIGINT)
        self.strace.wait(WAIT)
        self.strace.stderr.close()
        self.lines = self.file.read().splitlines()
        self.file.close()
