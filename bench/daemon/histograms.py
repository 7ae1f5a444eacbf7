# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the daemon's histograms cost, which are always on: it is measured beside
itself without them. One connection, refresh and fire (armed when due, and
delivered), a million timers."""

import os
import shutil
import signal
import statistics
import subprocess

from report.figures import Figure, Results
from report.tables import text
from servers import Driver, Server

TIMERS = 10**6
EVENTS = "instructions:u", "instructions:k"
# Requests of one measurement, by size of batch.
REQUESTS = {1: 20000, 16: 320000, 512: 1024000}
OPS = "refresh", "fire"
WITH, WITHOUT = "expiryd", "no-histograms"


class Counter:
    """What a process has the processor do meanwhile, where perf can say so."""

    def __init__(self, pid):
        self.ends = os.pipe(), os.pipe()
        control, ack = self.ends[0][0], self.ends[1][1]
        self.process = subprocess.Popen(
            ["perf", "stat", "-x", ",", "-D", "-1", "-e", ",".join(EVENTS),
             "--control", "fd:%d,%d" % (control, ack), "-p", str(pid)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            pass_fds=(control, ack))
        self._tell(b"enable\n")

    def _tell(self, what):
        os.write(self.ends[0][1], what)
        os.read(self.ends[1][0], 16)

    def end(self):
        """A list by EVENTS, or None."""
        self._tell(b"disable\n")
        self.process.send_signal(signal.SIGINT)
        err = self.process.communicate()[1]
        for pair in self.ends:
            for fd in pair:
                os.close(fd)
        counts = {fields[2]: fields[0] for fields in
                  (line.split(",") for line in err.splitlines())
                  if len(fields) > 2}
        try:
            return [int(counts[event]) for event in EVENTS]
        except (KeyError, ValueError):
            return None


def countable():
    if not shutil.which("perf"):
        return False
    run = subprocess.run(["perf", "stat", "-x", ",", "-e", ",".join(EVENTS),
                          "true"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True, check=False)
    return run.returncode == 0 and "<not" not in run.stderr


def options(parser):
    parser.add_argument("--rounds", type=int, default=15)


def row(driver, op, batch, counting, round):
    requests = REQUESTS[batch]
    counter = Counter(driver.server.process.pid) if counting else None
    figure = driver.measure(op, batch, 1, requests, name=driver.name,
                            round=round)
    counts = counter.end() if counter else None
    if counts:
        figure["user"], figure["kernel"] = (each / requests for each in counts)
    return figure


def measure(options, folder):
    drivers = [Driver(name, TIMERS, Server(name, folder))
               for name in (WITH, WITHOUT)]
    counting = countable()
    rows = []
    # The first round only warms up.
    for round in range(-1, options.rounds):
        rows += [row(driver, op, batch, counting, round) for op in OPS
                 for batch in REQUESTS
                 for driver in (drivers if round % 2 else drivers[::-1])]
    for driver in drivers:
        driver.close()
    return {"rows": [row for row in rows if row["round"] >= 0]}


def line(results, op, batch, field, digits):
    """Medians with and without, and the median of the differences of each
    round, with its quarters."""
    both = [results.all(field, op=op, batch=batch, name=name)
            for name in (WITH, WITHOUT)]
    more = Figure(a - b for a, b in zip(*both))
    medians = [statistics.median(values) for values in both]

    def form(value):
        return f"{value:.{digits}f}"
    return [op, batch, *map(form, medians), form(more.median),
            more.spread(form, 0.25),
            f"{100 * more.median / medians[1]:.2f} %"]


def show(results):
    results = Results(results["rows"])
    print(f"{len(results.values('round'))} rounds, in turns; a million timers, "
          "one connection\n")
    for field, what, digits in (
            ("server_ns", "Processor time, ns,", 1),
            ("user", "Instructions of its own", 2),
            ("kernel", "Instructions of the kernel", 2)):
        if not results.having(field):
            print("No instructions: perf cannot count them here.")
            break
        print(f"{what} a request, of the daemon:\n")
        print(text(["", "batch", "with", "without", "more", "its quarters", ""],
                   [line(results, op, batch, field, digits)
                    for op in OPS for batch in REQUESTS]))
