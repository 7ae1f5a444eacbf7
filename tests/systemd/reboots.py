# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a machine that reboots and the program that judges it both know: queues,
timers and requests of each start."""

import errno
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("socket", "power")]

from client import (ACKING, ARM, BOOTTIME, DURABLE, KEYED, MONOTONIC,  # noqa: E402
                    REALTIME, REFRESH, RELATIVE, SECOND)
import workload  # noqa: E402

FLAGS = DURABLE | KEYED | ACKING
CLOCKS = {"real": REALTIME, "boot": BOOTTIME, "mono": MONOTONIC}
LATE = 16
PERIOD_MS = 700

# Ids of a start are above this, times its number.
START = 1000
WORK_S, OFF_S = 8, 15
SOON, OFF, FAR, PERIODIC = range(100, 500, 100)
EACH, NR_PERIODIC = 60, 3
# Of requests at random in each batch.
BATCHES = 1, 10, 100
FINE = 0, -errno.ENOENT


def kind_of(number):
    return number % START // 100 * 100


def timers(start, name):
    """Returns (id, ns from now, period in ms) of the timers that a start arms: due
    while it works, due while it is off or soon after, due much later, and periodic."""
    chance = random.Random(f"{start} {name}")
    found = []
    for kind, least, most in ((SOON, 1, WORK_S), (OFF, 2 * WORK_S, 3 * WORK_S),
                              (FAR, 3600, 7200)):
        found += [(start * START + kind + number,
                   chance.randrange(least * SECOND, most * SECOND), 0)
                  for number in range(EACH)]
    found += [(start * START + PERIODIC + number,
               chance.randrange(SECOND, 2 * SECOND), PERIOD_MS)
              for number in range(NR_PERIODIC)]
    return found


class Churn(workload.Queue):
    """Requests at random with absolute times. @seed and @base give all of them, and so
    each state of their queue."""

    def __init__(self, start, seed, base):
        self.name, self.base = f"churn-{start}", base
        self.random = random.Random(f"{seed} {self.name}")
        self.timers = {}
        self.sums, self.round_ends = [0], [0]

    def round(self):
        """Returns the requests of the next round."""
        requests = []
        for _ in range(self.random.choice(BATCHES)):
            request = self.request()
            if request.flags & RELATIVE:
                request = request._replace(flags=0, deadline=self.base + request.deadline)
            requests.append(request)
        return requests

    def expect(self, requests):
        """Notes the replies that a round must have."""
        for request in requests:
            old = self.timers.get(request.id)
            if request.op != ARM and not old:
                request = request._replace(status=-errno.ENOENT)
            elif request.op == REFRESH:
                request = old._replace(op=REFRESH, deadline=request.deadline)
            ends = self.round_ends[:]
            self.note([request])
            self.round_ends = ends
        self.round_ends.append(len(self.sums) - 1)
