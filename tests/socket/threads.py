# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which thread of a daemon serves a queue."""

import os
import re

from client import QUERY, Record


def servers(daemon):
    """The ids of its threads, the first one's and those with a name of their
    own; the kernel's for the ring have others."""
    base = "/proc/%d/task" % daemon.process.pid
    found = [daemon.process.pid]
    for task in sorted(os.listdir(base), key=int):
        with open(os.path.join(base, task, "comm"), encoding="utf-8") as file:
            if file.read().startswith("expiryd-"):
                found.append(int(task))
    return found


def switches(daemon):
    """How often each thread went to sleep, or was made to wait."""
    counts = {}
    for task in servers(daemon):
        with open("/proc/%d/task/%d/status" % (daemon.process.pid, task),
                  encoding="utf-8") as file:
            counts[task] = sum(int(count) for count in re.findall(
                r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)", file.read(),
                re.M))
    return counts


def served_by(daemon, queue):
    """The thread that is woken when this queue is worked with."""
    before = switches(daemon)
    for _ in range(50):
        queue.request(Record(QUERY, id=1))
    after = switches(daemon)
    return max(after, key=lambda task: after[task] - before.get(task, 0))
