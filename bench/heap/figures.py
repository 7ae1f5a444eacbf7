# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plots of a run."""

import plot
from results import HEAPS

STYLES = {
    "binary": ("#c0392b", None),
    "binary-branch-free": ("#c0392b", "2 3"),
    "4-ary": ("#d68910", None),
    "4-ary-branch-free": ("#d68910", "2 3"),
    "priority_queue": ("#7d3c98", None),
    "subtree": ("#1f5fa8", None),
    "sorted": ("#1e8449", None),
    "control": ("#b5bdc2", None),
}
PEERS = {
    "libev": "#148f9e",
    "libevent": "#8d6e63",
    "libevent-common": "#c8a415",
    "rbtree": "#e377c2",
    "wheel": "#34495e",
}
HEAVY = {"sorted": 3.2, "subtree": 2.4}
TITLES = {
    "hold": "Hold: take the first and put in one for later",
    "drain": "Drain: take the first",
    "fill": "Fill: put in, in any order",
}
WORKLOADS = {
    "ttl": "Timers: constant time to live",
    "exponential": "Timers: exponential times to live",
    "timeouts": "Timers: 99 % cancelled",
    "sessions": "Timers: refreshed on access",
}


def curves(heaps, work):
    """{subject: [(nodes, nanoseconds)]}"""
    found = {}
    for subject in HEAPS:
        points = [(nr, heaps.median(subject=subject, timers=nr, work=work))
                  for nr in sorted(heaps.values("timers"))]
        points = [(nr, ns) for nr, ns in points if ns]
        if points:
            found[subject] = points
    return found


def heaps_plot(heaps, work):
    found = curves(heaps, work)
    every = [point for points in found.values() for point in points]
    if len({nr for nr, _ in every}) < 2:
        return None
    rounds = heaps.where(work=work).values("round")
    picture = plot.Plot(
        TITLES[work], "16-byte nodes in RAM; median of "
        f"{len(set(rounds) - {0}) or 1} interleaved rounds, processor time",
        plot.powers(min(nr for nr, _ in every), max(nr for nr, _ in every)),
        plot.finely(min(ns for _, ns in every), max(ns for _, ns in every)))
    picture.axes("Nodes in the heap", "Nanoseconds an operation")
    for subject, points in found.items():
        colour, dash = STYLES[subject]
        picture.line(points, HEAPS[subject], colour, dash=dash,
                     width=HEAVY.get(subject, 1.6))
    return picture.svg()


def peer_style(peer):
    """Of a peer of timers; plain and keyed queues have one colour."""
    name, _, kind = peer.partition("-")
    colour, _ = STYLES.get(name, (PEERS.get(peer, "#777777"), None))
    return {"colour": colour, "dash": "2 3" if kind == "keyed" else None,
            "width": HEAVY.get(name, 1.6)}


def timers_plot(timers, workload, title):
    within = timers.where(workload=workload, main=True)
    found = {}
    for peer in within.values("subject"):
        points = [(nr, within.median(subject=peer, timers=nr))
                  for nr in sorted(within.values("timers"))]
        found[peer] = [(nr, ns) for nr, ns in points if ns]
    every = [point for points in found.values() for point in points]
    if len({nr for nr, _ in every}) < 2:
        return None
    picture = plot.Plot(
        title, "in one process, processor time of batches of 512",
        plot.powers(min(nr for nr, _ in every), max(nr for nr, _ in every)),
        plot.finely(min(ns for _, ns in every), max(ns for _, ns in every)))
    picture.axes("Live timers", "Nanoseconds an operation")
    for peer, points in found.items():
        picture.line(points, HEAPS.get(peer, peer), **peer_style(peer))
    return picture.svg()


def draw(results):
    """{file name: SVG}, of what the run has."""
    heaps = results.where(bench="heaps")
    timers = results.where(bench="timers")
    plots = {f"{work}.svg": heaps_plot(heaps, work) for work in TITLES}
    plots |= {f"timers-{workload}.svg": timers_plot(timers, workload, title)
              for workload, title in WORKLOADS.items()}
    return {name: svg for name, svg in plots.items() if svg}
