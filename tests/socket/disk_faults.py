# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults in a daemon's calls about its journal's files (fail-disk.c)."""

import mmap
import os
import struct
import tempfile
import time

import tap
from daemon import uring_refused
from durable import Disk

LOOPS = ("epoll",) if uring_refused() else ("io_uring", "epoll")

# As in fail-disk.c.
WRITE, SYNC, OPEN, RENAME, UNLINK, SYNC_NAMES, READ, LIST = range(8)
NAMES = ("write", "sync", "open", "rename", "unlink", "sync of names", "read", "list")
CALLS, RULES = 8, 4
SHORT = 0
EVER = 1 << 40
DELAY = 1 << 20         # and milliseconds
HELD = DELAY + 300000   # until the rule is lifted

MOST_STALL_S = 0.2      # of a machine on which waits are judged


class Faults:
    """What a daemon's calls are counted and fail by."""

    def __init__(self):
        preload = tap.preload("fail-disk.so", "the sanitizer has calls of its own")
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(8 * (CALLS + 4 * RULES))
        self.map = mmap.mmap(self.file.fileno(), 8 * (CALLS + 4 * RULES))
        self.environment = {"LD_PRELOAD": preload, "EXPIRY_FAIL_DISK": self.file.name}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.map.close()
        self.file.close()

    def calls(self):
        return struct.unpack_from("%dQ" % CALLS, self.map)

    def fail(self, rule, call, number, reason, count=1):
        """Lets @count calls fail, from number @number from now on."""
        first = self.calls()[call] + number
        at = 8 * (CALLS + 4 * rule)
        # The range is empty while the rest is written.
        struct.pack_into("4Q", self.map, at, call, 1, 0, reason)
        struct.pack_into("Q", self.map, at + 16, first + count - 1)
        struct.pack_into("Q", self.map, at + 8, first)

    def lift(self, rule):
        """Lets calls succeed again, and a delayed one return."""
        struct.pack_into("4Q", self.map, 8 * (CALLS + 4 * rule), 0, 1, 0, 0)

    def end(self):
        for rule in range(RULES):
            self.lift(rule)


def settled(faults):
    """Returns whether nothing was called for a while."""
    before = faults.calls()
    time.sleep(0.3)
    return faults.calls() == before


def fast_disk():
    """A disk in memory, if there is one: its errors are made here."""
    folder = tempfile.mkdtemp(prefix="expiry-journal-",
                              dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    disk = Disk(folder=folder)
    disk.is_mine = True
    return disk


def on_both(test):
    """Calls @test(daemon, faults) for a daemon on each loop."""
    for loop in LOOPS:
        with Faults() as faults, fast_disk() as disk, \
                disk.daemon(loop=loop, threads=1, environment=faults.environment) as daemon:
            test(daemon, faults)
