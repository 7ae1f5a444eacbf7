#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The embedded engine's keyed queues hash ids by a secret of 16 random bytes, each
by its own. Who knows it makes all ids meet in one place of the index."""

import re

import tap
from client import HOUR, KEYED, arm, attach
from daemon import ENGINE, Daemon
from strace import Trace

RANDOM = re.compile(r'getrandom\("([^"]*)", 16, 0\) += 16$')


def test_each_queue_has_a_seed_of_its_own():
    if ENGINE != "embedded":
        raise tap.Skip("the module's seeds are the kernel's")
    with Daemon() as daemon:
        with Trace(daemon, "-x", "-s", "64", "-e", "trace=getrandom") as trace:
            for name in ("one", "two", "three"):
                with attach(daemon.path, name, KEYED) as queue:
                    assert queue.request(arm(HOUR, id=7)).status == 0
        seeds = [match[1] for match in map(RANDOM.search, trace.lines) if match]
        assert len(seeds) == 3 and len(set(seeds)) == 3, trace.lines


if __name__ == "__main__":
    tap.main()
