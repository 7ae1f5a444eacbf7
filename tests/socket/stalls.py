# SPDX-License-Identifier: LGPL-2.1-or-later
"""The longest delay that the machine caused to a sleeping process."""

import subprocess
import sys

# Sleeps of 10 ms until the standard input ends, then the worst delay in seconds.
SLEEPER = """
import select, sys, time
worst = 0
while True:
    begun = time.monotonic()
    if select.select([sys.stdin], [], [], 0.01)[0]:
        break
    worst = max(worst, time.monotonic() - begun - 0.01)
print(worst)
"""


class Stalls:
    """Measures, while the context lasts, the worst delay of a sleeping process.
    A test adds worst() to its time limits: a machine that stops its processes for half
    a second stops the daemon, too."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        return self

    def worst(self):
        """Ends the measurement. Returns the worst delay in seconds."""
        return float(self.process.communicate()[0])

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.communicate()
