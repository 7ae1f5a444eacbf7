# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon under more load than it can take: from a tenth to ten times what
was found to be its capacity, at a rate that does not slow down with the daemon,
in so many rounds with each of so many daemons."""

import subprocess

from lateness import Lateness
from report import plots
from report.figures import Results
from report.tables import Aims, number, text
from servers import BUILD, Server

PEAK_PART = 0.95
FLAT = 1.5
STORM = "0.8, a storm"
QUARTER = 0.25


def options(parser):
    parser.add_argument("--daemons", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)


def measure(options, folder):
    rows = []
    for daemon in range(options.daemons):
        server = Server("expiryd", folder)
        done = subprocess.run(
            [BUILD / "overload", "--socket", server.socket, "--seconds",
             str(options.seconds), "--rounds", str(options.rounds)],
            stdout=subprocess.PIPE, text=True, check=True)
        server.close()
        rows += [row | {"round": row["round"] + daemon * options.rounds}
                 for row in Results.parse(done.stdout).rows]
    return {"loads": rows}


def order(load):
    return load == "all", load != "all" and float(load.split(",")[0]), load


def show(results):
    results = Results(results["loads"])
    loads = sorted(results.values("load"), key=order)
    print("REFRESH by batches of 64 over 32 connections, 10^6 timers; load 1 is"
          " what was\nanswered when as much was offered as the sockets took"
          f" (all); medians of {len(results.values('round'))} rounds\nwith the"
          " middle half of them, and lateness, us, of all their samples\n")
    rows = []
    for load in loads:
        here = results.where(load=load)
        late = Lateness(here)
        goodput = here.figure("goodput")
        rows.append([load, number(here.median("offered")),
                     number(goodput.median), goodput.spread(number, QUARTER)] +
                    [number(here.median(field))
                     for field in ("p50_us", "p99_us", "refused")] +
                    [number(us) for field in ("late_us", "timerfd_us")
                     for us in late.quantiles(field)[:2]])
    print(text(["load", "offered", "answered", "middle half", "p50 us",
                "p99 us", "refused", "late p50", "p99", "timerfd p50", "p99"],
               rows))
    print(aims_of(results, loads).text())


def aims_of(results, loads):
    """Of all rounds, and the middle half of them."""
    peak = max((load for load in loads if load != STORM),
               key=lambda load: results.median("goodput", load=load))
    aims = Aims()

    def add(add, what, aim, value, figure):
        add(what, aim, value, "{:.2f}",
            f"{value:.2f} ({figure.spread('{:.2f}'.format, QUARTER)})")

    def ratio(add_one, what, aim, field, load, other):
        figure = results.ratio({"load": load}, {"load": other}, field)
        add(add_one, what, aim, figure.median, figure)

    ratio(aims.at_least, f"answered at 10x, of the peak (at {peak})", PEAK_PART,
          "goodput", "10", peak)
    ratio(aims.at_least, "answered at 0.8 in a storm, of that without",
          PEAK_PART, "goodput", STORM, "0.8")
    ratio(aims.at_most, "latency p99 of what was taken at 10x, of that at 1x",
          FLAT, "p99_us", "10", "1")
    add(aims.at_most, "lateness p99 at 10x, of a timerfd's then", FLAT,
        *Lateness(results.where(load="10")).ratio())
    return aims


def pictures(results):
    results = Results(results["loads"])
    loads = sorted((load for load in results.values("load")
                    if load not in ("all", STORM)), key=float)
    picture = plots.Plot(
        "Overload", "load 1: what was answered when the sockets were kept full",
        "offered load, of the capacity", "million requests a second",
        "milliseconds", ("log", "linear", "log"),
        [(float(load), load) for load in loads])

    def line(value, unit, *name, **look):
        picture.line([(float(load), value(results.where(load=load)) / unit)
                      for load in loads], *name, **look)

    line(lambda here: here.median("goodput"), 1e6, "answered",
         plots.COLOURS[2])
    line(lambda here: here.median("p99_us"), 1e3,
         "latency of what was taken, p99", plots.COLOURS[1], right=True)
    line(lambda here: Lateness(here).quantiles("late_us")[1], 1e3,
         "lateness of expirations, p99", plots.COLOURS[3], right=True)
    line(lambda here: Lateness(here).quantiles("timerfd_us")[1], 1e3,
         "of a timerfd's, p99", plots.COLOURS[4], right=True, dash=plots.DOTS)
    return {"daemon-overload.svg": picture}
