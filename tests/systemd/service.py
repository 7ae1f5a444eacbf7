# SPDX-License-Identifier: LGPL-2.1-or-later
"""The installed service, as systemd's own tools and expiryctl show it."""

import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "socket"))

import tap                                      # noqa: E402
from client import SCALE, scaled, wait_for      # noqa: E402,F401

ROOT = os.path.dirname(os.path.dirname(HERE))
RESULTS = os.environ.get("EXPIRY_TEST_RESULTS",
                         os.path.join(ROOT, "build", "systemd"))
UNIT = "expiryd.service"
SOCKET = "/run/expiryd/socket"
SETTINGS = "/etc/expiry/expiryd.conf.d"
PROGRAM = "/usr/sbin/expiryd"
LATER = os.path.join(ROOT, "build", "later", "expiryd")

# systemd's own steps are none of the daemon's: generous.
LIMIT = 60 if SCALE == 1 else 300


def output_of(*command, check=True):
    """What it prints, without the last newline."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=2 * LIMIT,
                          check=False)
    assert not check or not done.returncode, (command, done.returncode,
                                              done.stdout)
    return done.stdout.rstrip("\n")


def systemctl(*arguments, check=True):
    return output_of("systemctl", *arguments, check=check)


def show(name, unit=UNIT):
    """A property of the unit, as text."""
    return systemctl("show", "--property", name, "--value", unit)


def shows(*names):
    """Several properties at once, by name."""
    lines = systemctl("show", *("--property=" + name for name in names), UNIT)
    return dict(line.split("=", 1) for line in lines.splitlines())


def ctl(*arguments, check=True):
    return output_of("expiryctl", *arguments, check=check)


def status(*arguments):
    """expiryctl status, as a dictionary."""
    return json.loads(ctl("--json", *arguments, "status"))


def main_pid():
    return int(show("MainPID"))


def serves(but=0):
    """Wait until a process other than @but has said that it is ready: its id."""
    def ready():
        now = shows("ActiveState", "SubState", "MainPID")
        pid = int(now["MainPID"])
        return (now["ActiveState"], now["SubState"]) == ("active", "running") \
            and pid not in (0, but) and pid
    pid = wait_for(ready, LIMIT)
    assert pid, systemctl("status", UNIT, check=False)
    return pid


def kept():
    """How many queues systemd holds."""
    return int(show("NFileDescriptorStore"))


def timers(queue, *options):
    """How many are armed there, 0 where there is no such queue."""
    out = ctl("--json", "--queue", queue, *options, "status", check=False)
    return 0 if "no queue" in out else \
        int(json.loads(out)["armed"])


def drop(*names, user=None):
    """Queues of @user's, or root's, where they are not lost."""
    for name in names:
        done = subprocess.run(["expiryctl", "--queue", name, "drop"],
                              user=user, capture_output=True, text=True,
                              check=False, timeout=LIMIT)
        assert not done.returncode or "no queue" in done.stderr, done


def settings(text):
    """Settings in force from the next start or reload on; None: the defaults."""
    path = os.path.join(SETTINGS, "test.conf")
    if text is not None:
        os.makedirs(SETTINGS, exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    elif os.path.exists(path):
        os.unlink(path)


def systemd_version():
    return int(re.match(r"systemd (\d+)", output_of("systemctl", "--version"))[1])


class Cursor:
    """A place in the journal: what is read is what came after it."""

    def __init__(self):
        output_of("journalctl", "--sync")
        text = output_of("journalctl", "--lines=0", "--show-cursor")
        self.place = text.rpartition("-- cursor: ")[2]

    def all(self):
        """Returns all entries since then: dictionaries. journalctl itself is not
        asked to choose: its --after-cursor leaves out the first that it would have
        chosen."""
        output_of("journalctl", "--sync")
        text = output_of("journalctl", "--after-cursor", self.place,
                         "--output=json", "--no-pager", "--all")
        return [json.loads(line) for line in text.splitlines()
                if line.startswith("{")]

    def about(self, unit):
        """Returns those of a unit whose name begins so, or about it."""
        return [e for e in self.all()
                if e.get("_SYSTEMD_UNIT", "").startswith(unit) or
                e.get("UNIT", "").startswith(unit)]

    def entries(self, **fields):
        """Returns those with such @fields, without any those of the service or
        about it."""
        entries = self.all()
        if not fields:
            return [e for e in entries
                    if UNIT in (e.get("_SYSTEMD_UNIT"), e.get("UNIT"))]
        return [e for e in entries
                if all(e.get(name) == str(value)
                       for name, value in fields.items())]


# ---------------------------------------------------------------------------
# The table

FIGURES = []


def figure(text):
    """A figure for the row of the test that runs."""
    FIGURES.append(text)


def keep(name, text):
    """A file for whoever wants to see it afterwards."""
    with open(os.path.join(RESULTS, name), "w", encoding="utf-8") as file:
        file.write(text + "\n")


class Table(tap.Group):
    """Writes a row for each test."""

    def run(self, name, function, *args):
        failed, start = self.failed, time.monotonic()
        FIGURES.clear()
        super().run(name, function, *args)
        with open(os.path.join(RESULTS, "table"), "a", encoding="utf-8") as file:
            file.write("%-56s %-6s %6.1f s  %s\n" % (
                name, "FAILED" if self.failed > failed else "ok",
                time.monotonic() - start, "; ".join(FIGURES)))


def main():
    tap.main(kind=Table)
