# SPDX-License-Identifier: LGPL-2.1-or-later
"""The threads of a daemon, and the one that serves a queue."""

import os
import re

from client import QUERY, Record


def servers(daemon):
    """Returns the ids of the daemon's threads: the first one and those with their name.
    The kernel's threads for the ring have other names."""
    base = "/proc/%d/task" % daemon.process.pid
    found = [daemon.process.pid]
    for task in sorted(os.listdir(base), key=int):
        with open(os.path.join(base, task, "comm"), encoding="utf-8") as file:
            if file.read().startswith("expiryd-"):
                found.append(int(task))
    return found


def switches(daemon):
    """Returns how often each thread went to sleep, or was preempted."""
    counts = {}
    for task in servers(daemon):
        with open("/proc/%d/task/%d/status" % (daemon.process.pid, task),
                  encoding="utf-8") as file:
            counts[task] = sum(int(count) for count in re.findall(
                r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)", file.read(),
                re.M))
    return counts


def served_by(daemon, queue):
    """Returns the thread that a request to this queue wakes."""
    before = switches(daemon)
    for _ in range(50):
        queue.request(Record(QUERY, id=1))
    after = switches(daemon)
    return max(after, key=lambda task: after[task] - before.get(task, 0))
