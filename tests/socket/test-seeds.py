#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The embedded engine's keyed queues hash ids by a secret of 16 random bytes, each
by its own. Who knows it makes all ids meet in one place of the index."""

import re
import shutil
import signal
import subprocess
import tempfile

import tap
from client import HOUR, KEYED, WAIT, arm, attach
from daemon import ENGINE, Daemon

RANDOM = re.compile(r'getrandom\("([^"]*)", 16, 0\) += 16$')


class Trace:
    """The daemon's calls for random numbers while the with statement lasts."""

    def __init__(self, daemon):
        if ENGINE != "embedded":
            raise tap.Skip("the module's seeds are the kernel's")
        if not shutil.which("strace"):
            raise tap.Skip("no strace")
        self.pid = daemon.process.pid
        self.lines = []

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile("r")
        self.strace = subprocess.Popen(
            ["strace", "-f", "-x", "-s", "64", "-e", "trace=getrandom", "-o",
             self.file.name, "-p", str(self.pid)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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


def test_each_queue_has_a_seed_of_its_own():
    with Daemon() as daemon:
        trace = Trace(daemon)
        with trace:
            for name in ("one", "two", "three"):
                with attach(daemon.path, name, KEYED) as queue:
                    assert queue.request(arm(HOUR, id=7)).status == 0
        seeds = [match[1] for match in map(RANDOM.search, trace.lines) if match]
        assert len(seeds) == 3 and len(set(seeds)) == 3, trace.lines


if __name__ == "__main__":
    tap.main()
