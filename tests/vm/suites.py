# SPDX-License-Identifier: LGPL-2.1-or-later
"""Suites of tests in a guest, and a table of what came of them."""

import os
import subprocess

import guest

KERNEL_REPORT = 2
WHY = {1: "the command failed", 3: "the guest hung", 4: "no guest to test in"}


class Table:
    """Results by kernel and suite."""

    def __init__(self):
        self.rows = []

    def add(self, kernel, suite, counts, seconds, note=""):
        """counts: passed, failed, skipped."""
        self.rows.append((kernel, suite, *counts, seconds, note))

    def show(self):
        """Print it; the exit status that it comes to."""
        print("%-24s %-8s %7s %7s %8s %8s"
              % ("kernel", "suite", "passed", "failed", "skipped", "seconds"))
        for *cells, note in self.rows:
            line = "%-24s %-8s %7d %7d %8d %8.0f" % tuple(cells)
            print(line + ("  " + note if note else ""))
        total = [sum(column) for column in list(zip(*self.rows))[2:5]]
        print("%d passed, %d failed, %d skipped" % tuple(total))
        return 0 if total[0] and not total[1] else 1


def read_counts(path):
    """The sum of what tests/run left there, or None if it left nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = [line.split(" ", 3)[:3] for line in file]
    except FileNotFoundError:
        return None
    return [sum(map(int, column)) for column in zip(*rows)] if rows else None


def title_of(program):
    """The title of the first report in the machine of this program, tests/NAME/run."""
    name = os.path.basename(os.path.dirname(os.path.abspath(program)))
    try:
        with open(os.path.join("build", name, "report"), encoding="utf-8") as file:
            return file.readline().strip()[:200]
    except FileNotFoundError:
        return "something"


def check(table, kernel, suites, folder, run):
    """Add a row for each suite, run in a guest by the command run.

    folder: for what the guest leaves, below the checkout. Returns the exit
    status of run.
    """
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.split(".")[0] in suites:
            os.unlink(os.path.join(folder, name))
    before = len(table.rows)
    status = subprocess.run(
        [*run, "tests/vm/guest-suites", folder, *suites], check=False,
        preexec_fn=guest.in_child).returncode
    for suite in suites:
        counts = read_counts(os.path.join(folder, suite))
        try:
            with open(os.path.join(folder, suite + ".time"),
                      encoding="ascii") as file:
                start, end = map(float, file.read().split())
        except FileNotFoundError:
            # Ended in the midst of it, or did not come that far.
            counts, start, end = counts or [0, 0, 0], 0, 0
            counts[1] += 1
        table.add(kernel, suite, counts or (0, 1, 0), end - start,
                  "" if counts else "nothing tested")
    # What a suite cannot count: a report of the kernel's, whose title is among the last
    # lines this way, and other trouble after all of them.
    if status == KERNEL_REPORT:
        table.add(kernel, "kernel", (0, 1, 0), 0, "the kernel reported " + title_of(run[0]))
    elif status and not any(row[3] for row in table.rows[before:]):
        table.add(kernel, "kernel", (0, 1, 0), 0, WHY.get(status, "?"))
    return status
