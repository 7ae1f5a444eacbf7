# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much a well-behaved client, the victim, loses by an abuser: it works at a
fixed rate alone, with an abuser of its daemon, and beside an abuser of another
daemon on the same processor."""

import json
import os
import pathlib
import subprocess

from lateness import Lateness
from report.figures import Results
from report.tables import Aims, text
from servers import BUILD, Server

AIM = 1.10
NOBODY = 65534
CONFIG = "timers_per_user = 2000000\n"
KINDS = {
    "unread": "64 that send STAT and never read, then come anew",
    "trickle": "64 full ones that read a byte a second",
    "connects": "connects as fast as it can",
    "quota": "fills its quota and asks for more",
    "dies": "dies inside a record with expirations on their way",
    "scans": "8 that ask for the largest SCAN of 10^6 timers",
    "empty-scans": "the same where 10^6 were cancelled",
    "floods": "64 that send nothing but good requests",
}
WAYS = "alone", "abuser", "beside"
FIELDS = {"answer": "answered after", "late": "late by"}


def options(parser):
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("kinds", nargs="*", metavar="KIND",
                        help="; ".join(map(": ".join, KINDS.items())))


def pin(process, processor, nice=0, realtime=False):
    """Sets processor and priority; without the right to, leaves them."""
    try:
        os.sched_setaffinity(process, {processor})
        if nice:
            os.setpriority(os.PRIO_PROCESS, process, nice)
        if realtime:
            os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


class Phases:
    def __init__(self, folder, seconds):
        self.seconds = seconds
        self.processors = sorted(os.sched_getaffinity(0))
        os.chmod(folder, 0o755)
        config = pathlib.Path(folder) / "config"
        config.write_text(CONFIG, encoding="utf-8")
        self.daemons = [Server("expiryd", folder, config=config)
                        for _ in range(2)]
        for daemon in self.daemons:
            os.chmod(daemon.socket, 0o666)
            pin(daemon.process.pid, self.processors[0], nice=-20)

    def abuser(self, kind, daemon):
        user = ["--user", str(NOBODY)] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [BUILD / "abuser", "--socket", daemon.socket, *user, kind],
            stdout=subprocess.PIPE, text=True)
        pin(process.pid, self.processors[-1])
        if not process.stdout.readline():
            raise RuntimeError(f"abuser {kind} ended")
        return process

    def victim(self):
        process = subprocess.Popen(
            [BUILD / "victim", "--samples", "--socket", self.daemons[0].socket,
             "--seconds", str(self.seconds)], stdout=subprocess.PIPE, text=True)
        pin(process.pid, self.processors[-1], realtime=True)
        said = process.communicate()[0]
        if process.returncode:
            raise RuntimeError(f"victim: exit status {process.returncode}")
        return json.loads(said)

    def measure(self, kind, way):
        if way == "alone":
            return self.victim()
        abuser = self.abuser(kind, self.daemons[way == "beside"])
        try:
            row = self.victim()
            if abuser.poll() is not None:
                raise RuntimeError(f"abuser {kind} ended early")
        finally:
            abuser.kill()
            abuser.communicate()
        return row


def measure(options, folder):
    phases = Phases(folder, options.seconds)
    rows = []
    for round in range(options.rounds):
        for kind in options.kinds or KINDS:
            # Neither is always the one that comes after another.
            turn = round % len(WAYS)
            for way in WAYS[turn:] + WAYS[:turn]:
                rows.append(phases.measure(kind, way) | {
                    "kind": kind, "way": way, "round": round})
    return {"rows": rows}


def ratio(here, field, way):
    return here.ratio({"way": "abuser"}, {"way": way}, field + "_p99_us")


def show(results):
    results = Results(results["rows"])
    print("the victim: 2000 batches of 16 REFRESH and an ARM a second; "
          f"microseconds,\n{len(results.values('round'))} rounds pooled; ratios "
          "of p99 are medians over rounds, and their quarters\n")
    aims = Aims()
    for field, what in FIELDS.items():
        rows = []
        for kind in results.values("kind"):
            here = results.where(kind=kind)
            cells = [kind]
            for way in WAYS:
                late = Lateness(here.where(way=way)).pooled(field + "_us")
                cells.append(f"{late.at(0.5):.0f}, {late.at(0.99):.0f}")
            both = [ratio(here, field, way) for way in ("alone", "beside")]
            rows.append(cells + [one.text("{:.2f}".format, 0.25)
                                 for one in both])
            aims.at_most(f"{kind}: {what}, p99 to that alone", AIM,
                         both[0].median, "{:.2f}",
                         f"{both[0].median:.2f}, to the machine's: "
                         f"{both[1].median:.2f}")
        print(text([what] + [way + ": p50, p99" for way in WAYS] +
                   ["p99 to alone", "p99 to beside"], rows))
    print(aims.text())
